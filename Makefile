# What is done around the code. `make help` lists the targets.
#
# Needs Go, Python 3.10 or newer with its venv module, git, and the package registries. Nothing is installed outside this folder.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(CURDIR)/bin/lancerest
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --quiet
PIP_INPUTS := python/requirements-test.txt python/lancerest/pyproject.toml

# Google's library speaks HTTP here: without what it has for gRPC the binary is 20 MB smaller. A build without the tag works as well.
export GOFLAGS := $(strip $(GOFLAGS) -tags=disable_grpc_modules)

# The race detector needs a C compiler. Where there is none the tests run without it, and `make check` says so.
RACE := $(shell test "$$(go env CGO_ENABLED)" = 1 && command -v $$(go env CC) >/dev/null && echo -race)

# One block of output for each step, where this make can do it (4.0 and newer).
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

# Packages of Go tests that have a step of their own: the wire suite needs Python for the reference server, the model of the
# commit has no concurrency of its own that the race detector could look at.
OWN_STEP := /test/(wire|model)$$
STEPS := check-format check-vet check-go check-model check-wire check-postgres check-s3 check-stores check-ruff check-mypy check-clients

.PHONY: help
help: ## Say what can be done.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: check
check: ## Pass every test: all of CI, in the steps below.
	@start=$$SECONDS; $(if $(RACE),,echo "No C compiler: the Go tests run without the race detector.";) \
	if $(MAKE) --no-print-directory --keep-going --jobs=$(JOBS) $(SYNC) $(STEPS); \
	then echo "make check: all $(words $(STEPS)) steps passed in $$((SECONDS - start)) s"; \
	else echo "make check: failed after $$((SECONDS - start)) s; the lines with *** above name the steps that failed"; exit 1; fi

# $(call step,NAME,COMMAND) runs a command between a headline and a line that says how long it took.
step = @echo "=== $(1)"; start=$$SECONDS; $(2); echo "--- $(1): passed in $$((SECONDS - start)) s"

.PHONY: check-format
check-format: ## Go code is formatted.
	$(call step,$@,bad=$$(git ls-files -z '*.go' | xargs -0 gofmt -l); \
	if [ -n "$$bad" ]; then echo "gofmt would change:"; echo "$$bad"; exit 1; fi)

.PHONY: check-vet
check-vet: ## Go code is free of what go vet finds.
	$(call step,$@,go vet ./...)

.PHONY: postgres
postgres:
	@test/withpostgres/install.sh

# Emulators of Google Cloud Storage and of Azure Blob Storage, which the tests start.
TOOLS := .tools
FAKE_GCS := $(TOOLS)/fake-gcs-server-1.56.1.installed
AZURITE := $(TOOLS)/azurite-3.37.0.installed
# LanceDB's SDK for TypeScript, which tests of the engine run.
NODE_SDK := $(TOOLS)/lancedb-0.37.1.installed

.PHONY: tools
tools: $(FAKE_GCS) $(AZURITE) $(NODE_SDK)

$(FAKE_GCS):
	@echo "Building fake-gcs-server into $(TOOLS). That takes a minute or more."
	@GOBIN=$(CURDIR)/$(TOOLS) GOFLAGS= CGO_ENABLED=0 go install github.com/fsouza/fake-gcs-server@v1.56.1
	@touch $@

$(NODE_SDK):
	@command -v npm >/dev/null || { echo "The tests of LanceDB's TypeScript SDK need npm and Node.js 20 or newer: install them (on Debian and Ubuntu: apt install nodejs npm)."; exit 1; }
	@echo "Installing LanceDB's TypeScript SDK into $(TOOLS). That downloads about 100 MB."
	@npm install --silent --no-audit --no-fund --no-save --prefix $(TOOLS)/lancedb @lancedb/lancedb@0.37.1 apache-arrow@18.1.0
	@touch $@

$(AZURITE):
	@command -v npm >/dev/null || { echo "The tests of Azure need npm and Node.js 20 or newer: install them (on Debian and Ubuntu: apt install nodejs npm)."; exit 1; }
	@echo "Installing Azurite into $(TOOLS). That downloads about 70 MB."
	@npm install --silent --no-audit --no-fund --no-save --ignore-scripts --prefix $(TOOLS)/azurite azurite@3.37.0
	@touch $@

.PHONY: check-go
check-go: postgres tools $(VENV)/ready ## Go tests, with the race detector where there is a C compiler.
	$(call step,$@,LANCEREST_PYTHON=$(CURDIR)/$(VENV)/bin/python go test $(RACE) $$(go list ./... | grep -vE '$(OWN_STEP)'))

.PHONY: check-model
check-model: ## Every interleaving of the commit keeps its promises.
	$(call step,$@,go test ./test/model/...)

.PHONY: check-wire
check-wire: $(VENV)/ready ## 54 operations over HTTP, here and on the reference server.
	$(call step,$@,LANCEREST_PYTHON=$(CURDIR)/$(VENV)/bin/python go test -count=1 -timeout 15m ./test/wire)

# The clients' tests of what depends on the state; `make check-clients` has all of them.
STATEFUL := $(addprefix test/clients/test_,crash.py transactions.py transactions_in_doubt.py transactions_together.py writers.py lancedb.py \
	engine_write.py engine_connection.py)

.PHONY: check-postgres
check-postgres: postgres $(VENV)/ready $(BIN) ## The rules, the wire suite and the clients' commits again, with the state in PostgreSQL.
	$(call step,$@,go run ./test/withpostgres go test -count=1 ./internal/catalog; \
	go run ./test/withpostgres go test -count=1 -timeout 15m ./test/wire; \
	LANCEREST_BIN=$(BIN) go run ./test/withpostgres $(VENV)/bin/python -m pytest -q -n $(JOBS) $(STATEFUL))

# The clients' tests of what depends on where tables lie.
STORED := $(addprefix test/clients/test_,tables.py transactions.py transactions_together.py writers.py lancedb.py engine_write.py engine_query.py)

.PHONY: check-s3
check-s3: $(VENV)/ready $(BIN) ## The rules and the clients' commits again, with tables on an S3 server.
	$(call step,$@,go run ./test/withs3 go test -count=1 ./internal/catalog; \
	LANCEREST_BIN=$(BIN) go run ./test/withs3 $(VENV)/bin/python -m pytest -q -n $(JOBS) $(STORED))

.PHONY: check-stores
check-stores: tools ## The rules again, with tables on emulators of Google Cloud Storage and Azure Blob Storage.
	$(call step,$@,go run ./test/withgcs go test -count=1 -timeout 15m ./internal/catalog; \
	go run ./test/withazure go test -count=1 -timeout 15m ./internal/catalog)

SOAK ?= 10m
.PHONY: soak
soak: postgres $(VENV)/ready ## Kill servers, replicas, databases and clients under load, at random, for SOAK (10m).
	$(call step,$@,LANCEREST_SOAK=$(SOAK) LANCEREST_PYTHON=$(CURDIR)/$(VENV)/bin/python go test -count=1 -timeout 24h -parallel 16 -v \
	-run 'KillUnderLoad|PowerFailure|Replicas' ./test/faults)

.PHONY: check-ruff
check-ruff: $(VENV)/ready ## Python code is formatted and free of what ruff finds.
	$(call step,$@,$(VENV)/bin/ruff check --quiet --config python/lancerest/pyproject.toml $(PY_SOURCES); \
	$(VENV)/bin/ruff format --check --quiet --config python/lancerest/pyproject.toml $(PY_SOURCES))

.PHONY: check-mypy
check-mypy: $(VENV)/ready ## Python code is typed.
	$(call step,$@,MYPYPATH=python/lancerest/src:workers/lance:test/clients $(VENV)/bin/mypy --config-file python/lancerest/pyproject.toml \
	python/lancerest/src workers/lance/lancerest_worker examples test/clients test/faults)

.PHONY: check-clients
check-clients: tools $(VENV)/ready $(BIN) ## pylance, lancedb and the Python package against running servers.
	$(call step,$@,cd test/clients && LANCEREST_BIN=$(BIN) ../../$(VENV)/bin/python -m pytest -q -n $(JOBS) .)

PY_SOURCES := python workers test/clients test/faults test/wire examples

.PHONY: bench
bench: $(VENV)/ready postgres ## Load this server beside the reference server, on PostgreSQL beside pgbench, commits on S3, and the engine beside pylance (20 to 35 minutes).
	@LANCEREST_PYTHON=$(CURDIR)/$(VENV)/bin/python go run ./bench $(BENCH)
	@$(BENCH_POSTGRES)
	@go run ./test/s3bench $(S3BENCH)
	@$(BENCH_ENGINE)

BENCH_POSTGRES = go run ./test/withpostgres -durable go run ./bench -postgres $(BENCH)

.PHONY: bench-postgres
bench-postgres: postgres ## The part with the state in PostgreSQL alone.
	@$(BENCH_POSTGRES)

BENCH_ENGINE = LANCEREST_PYTHON=$(CURDIR)/$(VENV)/bin/python go run ./bench -engine $(BENCH)

.PHONY: bench-engine
bench-engine: $(VENV)/ready ## The engine beside pylance alone (4 to 6 minutes).
	@$(BENCH_ENGINE)

.PHONY: bench-update
bench-update: BENCH += -update
bench-update: S3BENCH += -update
bench-update: bench ## All of it, and write the results into docs/performance.md.

.PHONY: bench-postgres-update
bench-postgres-update: BENCH += -update
bench-postgres-update: bench-postgres

.PHONY: bench-engine-update
bench-engine-update: BENCH += -update
bench-engine-update: bench-engine

.PHONY: quickstart
quickstart: $(VENV)/ready $(BIN) ## Serve, fill three tables in multi-table commits, and keep serving.
	@$(VENV)/bin/python examples/quickstart.py $(BIN)

.PHONY: generate
generate: ## Write docs/operations.md, docs/errors.md and docs/configuration.md anew.
	@go generate ./...

.PHONY: build
build: $(BIN) ## Build bin/lancerest.

# Go knows best whether anything changed.
.PHONY: $(BIN)
$(BIN):
	@go build -o $@ ./cmd/lancerest

# The Python environment: the pinned clients, the test tools and the package of this repository. Brought up to date when the
# pins change.
$(VENV)/ready: $(PIP_INPUTS)
	@echo "Preparing the Python environment in $(VENV). The first time downloads about 300 MB and takes some minutes."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	{ echo "$(PYTHON) is missing or older than 3.10: install Python, or name one with make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	{ echo "$(PYTHON) cannot make environments: install its venv module (on Debian and Ubuntu: apt install python3-venv)."; exit 1; }
	@$(VENV)/bin/python -c '' 2>/dev/null || { rm -rf $(VENV); $(PYTHON) -m venv $(VENV); }
	@$(PIP) install --requirement python/requirements-test.txt
	@$(PIP) install --no-deps --editable python/lancerest
	@touch $@

.PHONY: clean
clean: ## Remove what was built and the Python environment; tables and state stay.
	@rm -rf bin $(VENV) $(TOOLS)
