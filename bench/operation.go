package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// operation is one line of the result.
type operation struct {
	name string
	unit string // what is counted
	each int    // how many of those one request does
	// goal is what the project asks of it: so many times the reference, or so many a second where the reference has no such
	// operation.
	goal      float64
	reference bool
	// sources prepares what one cell needs, outside of what is measured, and returns the clients' requests.
	sources func(context.Context, *target, time.Duration) ([]source, error)
}

// operations returns all that is measured, in the order of the result.
func operations() []operation {
	return []operation{
		{name: "declare", unit: "declared", each: 1, goal: 40, reference: true, sources: declares},
		{name: "describe", unit: "described", each: 1, goal: 25, reference: true, sources: describes},
		{name: "details", unit: "described", each: 1, goal: 20, reference: true, sources: details},
		{name: "latest", unit: "read", each: 1, goal: 25, reference: true, sources: latests},
		{name: "list", unit: "pages of 100", each: 1, goal: 20, reference: true, sources: lists},
		{name: "create", unit: "versions", each: 1, goal: 8, reference: true, sources: creates},
		{name: "batch", unit: "versions", each: batchTables, goal: 3000, sources: batches},
	}
}

// title is how the result calls an operation.
func (op operation) title() string {
	return map[string]string{
		"declare":  "declare a table",
		"describe": "describe a table",
		"details":  "describe in full, tables of 10,000 fragments",
		"latest":   "latest version (`version/list`, 1, descending)",
		"list":     "list 100 tables",
		"create":   "`version/create`, own tables",
		"batch":    "`batch-create` of 10 own tables, in versions",
	}[op.name]
}

const (
	// namespace holds all tables.
	namespace = "w"
	// batchTables is how many tables one batch changes.
	batchTables = 10
	// query stands behind every path, as pylance writes it.
	query = "?delimiter=%24"
)

// loaded is the name of the table with the given number among those that a catalog is loaded with.
func loaded(i int) string {
	digits := strconv.Itoa(loadedMost + i)
	return "t" + digits[1:]
}

// loadedMost is above every such number, so that all names are of one length.
const loadedMost = 10_000_000

func path(table, operation string) string {
	return "/v1/table/" + namespace + "%24" + table + "/" + operation + query
}

func idBody(table string) []byte { return []byte(`{"id":["` + namespace + `","` + table + `"]}`) }

// each returns a source for each client, all made in the same way.
func (t *target) each(make func(client int) source) []source {
	sources := []source{}
	for i := range t.clients {
		sources = append(sources, make(i))
	}
	return sources
}

// declares names tables that nobody has named before.
func declares(_ context.Context, t *target, _ time.Duration) ([]source, error) {
	t.cells++
	return t.each(func(client int) source {
		n := 0
		prefix := fmt.Sprintf("d%d-%d-", t.cells, client)
		return func() []byte {
			n++
			table := prefix + strconv.Itoa(n)
			return request(http.MethodPost, path(table, "declare"), t.address, idBody(table))
		}
	}), nil
}

// describes asks for tables at random, with the options that pylance always writes out.
func describes(_ context.Context, t *target, _ time.Duration) ([]source, error) {
	return t.each(func(int) source {
		return func() []byte {
			table := loaded(rand.IntN(t.tables))
			body := []byte(`{"id":["` + namespace + `","` + table + `"],"with_table_uri":false,"check_declared":false}`)
			return request(http.MethodPost, path(table, "describe")+"&with_table_uri=false&check_declared=false", t.address, body)
		}
	}), nil
}

// latests asks for the newest version of tables at random: what opening a table costs beside describe.
func latests(_ context.Context, t *target, _ time.Duration) ([]source, error) {
	return t.each(func(int) source {
		return func() []byte {
			return request(http.MethodPost, path(loaded(rand.IntN(t.tables)), "version/list")+"&limit=1&descending=true", t.address, nil)
		}
	}), nil
}

// lists asks for the first page of all tables' names.
func lists(_ context.Context, t *target, _ time.Duration) ([]source, error) {
	r := request(http.MethodGet, "/v1/namespace/"+namespace+"/table/list"+query+"&limit=100&include_declared=true", t.address, nil)
	return t.each(func(int) source { return func() []byte { return r } }), nil
}

// stagedVersion is the part of a request to commit that stands in single requests and in batches alike, in pylance's order.
type stagedVersion struct {
	ID           []string `json:"id"`
	Version      int64    `json:"version"`
	ManifestPath string   `json:"manifest_path"`
	ManifestSize int      `json:"manifest_size"`
	ETag         string   `json:"e_tag"`
	NamingScheme string   `json:"naming_scheme"`
}

// creates lets each client commit versions of a table of its own, whose manifests are staged beforehand.
func creates(ctx context.Context, t *target, duration time.Duration) ([]source, error) {
	queues, err := t.stage(ctx, "create", 1, duration)
	if err != nil {
		return nil, err
	}
	return t.each(func(client int) source {
		return func() []byte {
			v, ok := queues[client].next()
			if !ok {
				return nil
			}
			return request(http.MethodPost, path(v[0].ID[1], "version/create"), t.address, encode(v[0]))
		}
	}), nil
}

// batches lets each client commit versions of ten tables of its own at a time.
func batches(ctx context.Context, t *target, duration time.Duration) ([]source, error) {
	queues, err := t.stage(ctx, "batch", batchTables, duration)
	if err != nil {
		return nil, err
	}
	return t.each(func(client int) source {
		return func() []byte {
			v, ok := queues[client].next()
			if !ok {
				return nil
			}
			body := encode(map[string]any{"entries": v})
			return request(http.MethodPost, "/v1/table/version/batch-create"+query, t.address, body)
		}
	}), nil
}

func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // only strings and numbers are ever encoded
	}
	return body
}
