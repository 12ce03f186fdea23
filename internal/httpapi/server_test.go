package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/httpapi"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/telemetry"
)

// TestDrain: a server that is asked to stop says so to whoever asks whether it is ready, refuses what is new before it has any effect,
// and ends what is under way (case J8, C11).
func TestDrain(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.table(t, "t", 1)
	gate := s.objects.Hold(tagPut(), objtest.Before)
	under := async(func() reply { return s.send(t, tagCall("under-way")) })
	within(t, "the one under way", gate.Reached())
	if r := s.get(t, "/readyz"); r.status != http.StatusOK || !strings.Contains(r.body, `"ready":true`) {
		t.Errorf("readyz before: %d %s", r.status, r.body)
	}
	s.handler.Drain()
	if r := s.get(t, "/readyz"); r.status != http.StatusServiceUnavailable || !strings.Contains(r.body, `"ready":false`) || !strings.Contains(r.body, "shutting down") {
		t.Errorf("readyz: %d %s, want 503 that says why", r.status, r.body)
	}
	if r := s.get(t, "/healthz"); r.status != http.StatusOK {
		t.Errorf("healthz: %d, want 200: the process lives", r.status)
	}
	refused := s.send(t, call{path: "/v1/namespace/n/create", body: `{}`})
	refused.fails(t, http.StatusServiceUnavailable, api.CodeServiceUnavailable, "shutting down")
	if refused.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.handler.Wait(ended); err == nil {
		t.Error("Wait returned although one is under way")
	}
	gate.Release()
	if r := within(t, "the one under way", under); r.status != http.StatusOK {
		t.Errorf("the one under way: %d %s, want success", r.status, r.body)
	}
	if err := s.handler.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	other := s.lake.serve(t)
	other.send(t, call{path: "/v1/namespace/n/exists"}).fails(t, http.StatusNotFound, api.CodeNamespaceNotFound)
}

// bomb is an engine that panics, with a secret in what it says.
type bomb struct{}

func (bomb) Do(context.Context, string, any) (any, error) { panic("boom hunter2") }

// TestPanic: a panic is an answer of code 18 that tells nothing, a line in the log that tells all, and no harm to others.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := newServer(t, limited(httpapi.Limits{Concurrent: 1, QueueLength: 1}), func(o *httpapi.Options) { o.Engine = bomb{} })
	for range 3 {
		r := s.send(t, call{path: "/v1/table/t/restore", body: `{"version":1}`})
		r.fails(t, http.StatusInternalServerError, api.CodeInternal, r.header.Get("X-Request-Id"))
		if strings.Contains(r.body, "boom") || strings.Contains(r.body, ".go") {
			t.Errorf("the answer tells of the inside: %s", r.body)
		}
		line := s.log.of(t, r.header.Get("X-Request-Id"))
		if text, _ := line["error"].(string); !strings.Contains(text, "boom") || !strings.Contains(text, ".go:") || line["level"] != "ERROR" {
			t.Errorf("logged %v, want the panic and where", line)
		}
	}
	s.must(t, "/v1/namespace/n/create", map[string]any{})
	s.handler.Drain()
	if err := s.handler.Wait(t.Context()); err != nil {
		t.Errorf("a request that panicked counts as under way: %v", err)
	}
}

// TestLogLine: each request is one line with its id, operation, table, status, code and duration.
func TestLogLine(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.declare(t, "t")
	for name, c := range map[string]struct {
		call
		want map[string]any
	}{
		"success": {call{path: "/v1/table/t/describe", body: `{}`}, map[string]any{
			"level": "INFO", "operation": "DescribeTable", "id": []any{"t"}, "status": 200.0, "code": nil}},
		"failure": {call{path: "/v1/table/n$t/exists", body: `{}`}, map[string]any{
			"level": "INFO", "operation": "TableExists", "id": []any{"n", "t"}, "status": 404.0, "code": 1.0}},
		"no operation": {call{path: "/v1/nothing"}, map[string]any{"operation": "", "id": nil, "status": 404.0, "code": 13.0}},
	} {
		t.Run(name, func(t *testing.T) {
			s.send(t, c.with("X-Request-Id", name[:2]))
			line := s.log.of(t, name[:2])
			for key, want := range c.want {
				if toJSON(t, line[key]) != toJSON(t, want) {
					t.Errorf("%s is %v, want %v: %v", key, line[key], want, line)
				}
			}
			if took, ok := line["took"].(float64); !ok || took <= 0 {
				t.Errorf("took %v, want how long it took", line["took"])
			}
		})
	}
}

// secret is in every place of a request that may hold one.
const secret = "hunter2-do-not-tell"

// TestSecretsAreNotLogged: whatever a request holds and however it fails, its secrets stay out of the log.
func TestSecretsAreNotLogged(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *httpapi.Options) { o.Engine = bomb{} })
	s.declare(t, "t")
	options := "storage_options=%7B%22aws_secret_access_key%22%3A%22" + secret + "%22"
	identity := `"identity":{"api_key":"` + secret + `","auth_token":"` + secret + `"}`
	for _, c := range []call{
		{path: "/v1/table/t/describe?" + options + "%7D", body: `{` + identity + `}`},
		{path: "/v1/table/t/describe?x=%zz&password=" + secret, body: `{}`},
		{path: "/v1/table/t/create?mode=create&" + options, body: "no arrow"},
		{path: "/v1/table/t/create?" + options + "%7D", body: "no arrow"},
		{path: "/v1/table/none/describe?" + options, body: `{` + identity + `}`},
		{path: "/v1/table/t/describe", body: `{` + identity + `,`},
		{path: "/v1/table/t/describe", body: `{"identity":"` + secret + `"}`},
		{path: "/v1/table/t/describe", body: `{"identity":{"api_key":["` + secret + `"]}}`},
		{path: "/v1/table/t/describe", body: `{"version":"` + secret + `"}`},
		{path: "/v1/table/t/describe?token=" + secret, body: secret},
		{path: "/v1/namespace/n/create", body: `{"properties":{"password":"` + secret + `"},` + identity + `}`},
		{path: "/v1/table/u/declare", body: `{"properties":{"a":"` + secret + `"},"context":{"token":"` + secret + `"}}`},
		{path: "/v1/nowhere?token=" + secret, body: secret},
	} {
		for name, value := range map[string]string{
			"x-api-key": secret, "Authorization": "Bearer " + secret, "Cookie": "session=" + secret, "X-Amz-Security-Token": secret,
			"x-lance-ctx-password": secret, "Content-Encoding": "", "Idempotency-Key": "",
		} {
			c = c.with(name, value)
		}
		r := s.send(t, c)
		s.log.of(t, r.header.Get("X-Request-Id"))
	}
	if text := s.log.String(); strings.Contains(text, secret) {
		for line := range strings.Lines(text) {
			if strings.Contains(line, secret) {
				t.Errorf("the log tells a secret: %s", line)
			}
		}
	}
}

// TestContextIsRecorded: what callers say of themselves, in the body or in headers, stands in the record of a commit; what may be a
// secret does not, wherever it was said.
func TestContextIsRecorded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := call{
		path: "/v1/table/batch-commit",
		body: `{"operations":[{"declare_table":{"id":["t"]}}],"context":{"job":"7","header.x-team":"ours","Author":"Ann",
			"token":"` + secret + `","header.authorization":"` + secret + `","db_password":"` + secret + `"}}`,
		header: map[string]string{
			"x-lance-ctx-run": "12", "X-Lance-Ctx-Job": "lost to the body", "X-Team": "lost to the body", "X-Department": "north", "x-lance-ctx-api-key": secret,
			"x-api-key": secret, "Authorization": "Bearer " + secret, "X-Auth-Request": secret, "Cookie": secret, "X-Amz-Security-Token": secret,
			"traceparent": "00-1-1-01", "User-Agent": "agent",
		},
	}
	var done api.BatchCommitTablesResponse
	if err := json.Unmarshal([]byte(s.send(t, c).body), &done); err != nil || done.TransactionID == nil {
		t.Fatalf("%+v, %v", done, err)
	}
	var told api.DescribeTransactionResponse
	body := s.must(t, "/v1/transaction/"+*done.TransactionID+"/describe", map[string]any{}).body
	if err := json.Unmarshal([]byte(body), &told); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"context.job": "7", "context.run": "12", "context.header.x-team": "ours", "context.header.x-department": "north", "context.Author": "Ann"}
	for key, value := range told.Properties {
		if strings.HasPrefix(key, "context.") && want[key] != value {
			t.Errorf("%s is %q, want %q", key, value, want[key])
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("missing %v in %s", want, body)
	}
	if strings.Contains(body, secret) {
		t.Errorf("a secret is on record: %s", body)
	}
	if p := told.Properties["principal"]; !strings.HasPrefix(p, "api_key:") {
		t.Errorf("principal %q, want a fingerprint of the key", p)
	}
}

// TestRequestID: a client's own id is taken over if it can stand in a log and a header; otherwise the server makes one.
func TestRequestID(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	seen := map[string]bool{}
	for given, taken := range map[string]bool{
		"abc-123": true, strings.Repeat("a", 128): true, "!~": true,
		"": false, strings.Repeat("a", 129): false, "a b": false, "caf\u00e9": false, "a\tb": false,
	} {
		r := s.send(t, call{path: "/v1/table/none/exists"}.with("X-Request-Id", given))
		got := r.header.Get("X-Request-Id")
		if (got == given) != taken || got == "" || seen[got] {
			t.Errorf("%q: the answer has %q, want it taken over: %v", given, got, taken)
		}
		seen[got] = true
		r.fails(t, http.StatusNotFound, api.CodeTableNotFound)
		s.log.of(t, got)
	}
}

// standing is a backlog that does not change.
type standing struct{}

func (standing) Backlog(context.Context) (pending, jobs int, err error) { return 3, 4, nil }

// TestMetrics: operations are counted by name and outcome; the rest is what package telemetry was given.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *httpapi.Options) {
		o.Metrics = telemetry.New(standing{}, []telemetry.Count{{Name: "lancerest_things_total", Help: "Things.", Value: func() float64 { return 5 }}})
	})
	s.must(t, "/v1/namespace/n/create", map[string]any{})
	s.send(t, call{path: "/v1/namespace/n/create", body: `{}`})
	s.send(t, call{path: "/v1/namespace/n/create", body: `{}`})
	s.send(t, call{path: "/v1/nothing"})
	r := s.get(t, "/metrics")
	if !strings.HasPrefix(r.header.Get("Content-Type"), "text/plain") {
		t.Errorf("Content-Type %q", r.header.Get("Content-Type"))
	}
	for _, want := range []string{
		`lancerest_request_duration_seconds_count{code="ok",operation="CreateNamespace"} 1`,
		`lancerest_request_duration_seconds_count{code="2",operation="CreateNamespace"} 2`,
		`lancerest_request_duration_seconds_bucket{code="ok",operation="CreateNamespace",le="+Inf"} 1`,
		"lancerest_things_total 5", "lancerest_transactions_pending 3", "lancerest_jobs_waiting 4", "go_goroutines ",
		"lancerest_operations_running 0", "lancerest_operations_queued 0",
	} {
		if !strings.Contains(r.body, "\n"+want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(r.body, `operation=""`) {
		t.Error("a path that is no operation is counted: callers can make any number of series")
	}
}

// TestTagsAsTheCallerReadsThem: LanceDB's SDK gets the tags bare, clients of the specification in their object (client contract, fact
// 101).
func TestTagsAsTheCallerReadsThem(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.table(t, "t", 1)
	s.must(t, "/v1/table/t/tags/create", map[string]any{"tag": "v", "version": 1})
	c := call{path: "/v1/table/t/tags/list/"}
	for name, bare := range map[string]call{
		"database header": c.with("x-lancedb-database", "db"), "user agent": c.with("User-Agent", "LanceDB-Python-Client"),
	} {
		var tags map[string]api.TagContents
		if err := json.Unmarshal([]byte(s.send(t, bare).body), &tags); err != nil || tags["v"].Version != 1 || len(tags) != 1 {
			t.Errorf("%s: %v, %v; want the tags by name", name, tags, err)
		}
	}
	for name, whole := range map[string]call{
		"plain": c, "delimiter": call{path: c.path + "?delimiter=$"}.with("x-lancedb-database", "db"),
	} {
		var tags api.ListTableTagsResponse
		if err := json.Unmarshal([]byte(s.send(t, whole).body), &tags); err != nil || tags.Tags["v"].Version != 1 {
			t.Errorf("%s: %v, %v; want an object with tags", name, tags, err)
		}
	}
}
