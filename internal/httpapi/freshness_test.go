package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
)

// TestEngineTellsVersions: whoever changes a table is told the version in a header, also when the answer is repeated; whoever reads is not, and a
// refusal has none.
func TestEngineTellsVersions(t *testing.T) {
	t.Parallel()
	version := int64(7)
	e := &fakeEngine{do: func(_ context.Context, operation string, request any) (any, error) {
		switch operation {
		case "UpdateTable":
			if request.(*api.UpdateTableRequest).Updates[0][0] == "bad" {
				return nil, api.Errorf(api.CodeInvalidInput, "no such column")
			}
			return &api.UpdateTableResponse{UpdatedRows: 1, Version: version}, nil
		case "InsertIntoTable":
			return &api.InsertIntoTableResponse{Version: &version}, nil
		case "CountTableRows":
			return &api.CountTableRowsResponse{Count: 7}, nil
		}
		return &api.DropTableIndexResponse{}, nil
	}}
	s := newServer(t, withEngine(e))
	const update = `{"updates":[["a","1"]]}`
	for _, c := range []struct{ path, body, want string }{
		{"/v1/table/t/update/", update, "7"},
		{"/v1/table/t/update/", update, "7"}, // with the same id
		{"/v1/table/t/insert/", "rows", "7"},
		{"/v1/table/t/update/", `{"updates":[["bad","1"]]}`, ""},
		{"/v1/table/t/index/i/drop/", "", ""},
		{"/v1/table/t/count_rows/", `{"predicate":"a = 1"}`, ""},
	} {
		resp, text := s.ask(t, c.path, c.body, cloudHeader, "x-request-id: 1")
		if got := resp.Header.Get("x-lancedb-version"); got != c.want {
			t.Errorf("%s %s: version %q, want %q (%d %s)", c.path, c.body, got, c.want, resp.StatusCode, text)
		}
	}
}

// TestEngineTimeoutAsked: a read ends when its caller does not wait for it any more, which it says beforehand; a change does not.
func TestEngineTimeoutAsked(t *testing.T) {
	t.Parallel()
	e := &fakeEngine{do: func(ctx context.Context, operation string, _ any) (any, error) {
		if operation == "UpdateTable" {
			if until, ok := ctx.Deadline(); !ok || time.Until(until) < time.Minute {
				t.Errorf("a change ends at %s", until)
			}
			return &api.UpdateTableResponse{Version: 1}, nil
		}
		<-ctx.Done()
		return nil, api.Errorf(api.CodeServiceUnavailable, "took too long: %v", context.Cause(ctx))
	}}
	s := newServer(t, withEngine(e))
	for _, path := range []string{"query/", "count_rows/"} {
		resp, text := s.ask(t, "/v1/table/t/"+path, `{"vector":{},"k":1,"predicate":"a = 1"}`, cloudHeader, "x-request-timeout-ms: 20")
		if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "deadline exceeded") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
	if resp, text := s.ask(t, "/v1/table/t/update/", `{"updates":[["a","1"]]}`, cloudHeader, "x-request-timeout-ms: 1"); resp.StatusCode != http.StatusOK {
		t.Errorf("update: %d %s", resp.StatusCode, text)
	}
	for _, wrong := range []string{"0", "-1", "soon", "1.5", "99999999999999999999"} {
		resp, text := s.ask(t, "/v1/table/t/query/", `{"vector":{},"k":1}`, cloudHeader, "x-request-timeout-ms: "+wrong)
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "milliseconds") {
			t.Errorf("%s: %d %s", wrong, resp.StatusCode, text)
		}
	}
}
