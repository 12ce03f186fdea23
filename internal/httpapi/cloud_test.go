package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/auth"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/httpapi"
	"github.com/lancerest/lancerest/internal/lance"
)

// queue makes a job for a table and begins it.
func (s *server) queue(t *testing.T, operation string, table ...string) lance.TransactionID {
	t.Helper()
	id, err := s.catalog.QueueTask(t.Context(), catalog.QueuedTask{Task: catalog.Task{Operation: operation}, Kind: "work", ID: table})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// decoded returns the answer to a request as JSON, without the members that are named.
func (s *server) decoded(t *testing.T, path, body string, without ...string) map[string]any {
	t.Helper()
	resp, text := s.ask(t, path, body, cloudHeader)
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s", path, body, resp.StatusCode, text)
	}
	for _, name := range without {
		if got[name] == nil {
			t.Errorf("%s: %s lacks %s", path, text, name)
		}
		delete(got, name)
	}
	return got
}

// TestJobsOfTheCloud: LanceDB's remote SDK is told of jobs in its own words.
func TestJobsOfTheCloud(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *httpapi.Options) { o.JobKinds = []string{"work"} })
	s.declare(t, "t")
	describe := func(id lance.TransactionID) map[string]any {
		t.Helper()
		return s.decoded(t, "/v1/jobs/describe", `{"job_id":"`+string(id)+`"}`, "creation_ms")
	}
	table := map[string]any{"table": "t"}
	end := func(id lance.TransactionID, results map[string]string, failed *api.Error) {
		t.Helper()
		if err := s.catalog.EndTask(t.Context(), id, results, failed); err != nil {
			t.Fatal(err)
		}
	}
	fill, refresh, index, wrong := s.queue(t, "AlterTableBackfillColumns", "t"), s.queue(t, "RefreshMaterializedView", "t"), s.queue(t, "CreateTableIndex", "t"), s.queue(t, "CreateTableScalarIndex", "t")
	want := map[string]any{"job_id": string(fill), "job_type": "refresh_column", "job_state": "IN_PROGRESS", "spec": table}
	if diff := cmp.Diff(want, describe(fill)); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
	if got := s.decoded(t, "/v1/jobs/list", "{}")["jobs"].([]any); len(got) != 4 || got[0].(map[string]any)["table"] != "t" || got[0].(map[string]any)["state"] != "in_progress" {
		t.Errorf("jobs: %v", got)
	}
	end(fill, map[string]string{"rows": "3", "version": "7"}, nil)
	want["job_state"] = "DONE"
	want["result"] = map[string]any{"rows_assigned": 3.0, "rows_failed": 0.0, "rows_remaining": 0.0, "source_version": 7.0, "published_version": 7.0}
	if diff := cmp.Diff(want, describe(fill)); diff != "" {
		t.Errorf("filled (-want +got):\n%s", diff)
	}
	end(refresh, map[string]string{"rows": "3", "version": "7", "source_version": "5", "mode": "incremental"}, nil)
	want = map[string]any{
		"job_id": string(refresh), "job_type": "refresh_materialized_view", "job_state": "DONE", "spec": table,
		"result": map[string]any{"mode": "incremental", "rows_written": 3.0, "source_version": 5.0, "version": 7.0},
	}
	if diff := cmp.Diff(want, describe(refresh)); diff != "" {
		t.Errorf("refreshed (-want +got):\n%s", diff)
	}
	end(wrong, nil, api.Errorf(api.CodeInvalidInput, "no such column"))
	want = map[string]any{
		"job_id": string(wrong), "job_type": "create_index", "job_state": "FAILED", "spec": table,
		"failure": map[string]any{"phase": "execute", "message": "no such column", "retryable": false},
	}
	if diff := cmp.Diff(want, describe(wrong)); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
	for range 2 { // a job that has ended is left as it is
		s.decoded(t, "/v1/jobs/cancel", `{"job_id":"`+string(index)+`"}`)
		s.decoded(t, "/v1/jobs/cancel", `{"job_id":"`+string(wrong)+`"}`)
	}
	if got := describe(index)["job_state"]; got != "CANCELLED" {
		t.Errorf("canceled: %v", got)
	}
	if got := describe(wrong)["job_state"]; got != "FAILED" {
		t.Errorf("canceled after it failed: %v", got)
	}
	if got := s.decoded(t, "/v1/jobs/list", "{}")["jobs"].([]any); len(got) != 0 {
		t.Errorf("jobs that have not ended: %v", got)
	}
}

// TestNoJob: what is no job, or one of another database, is not found.
func TestNoJob(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *httpapi.Options) { o.JobKinds, o.Databases = []string{"work"}, httpapi.DatabaseNamespace })
	s.must(t, "/v1/namespace/lake/create", map[string]any{})
	s.must(t, "/v1/namespace/other/create", map[string]any{})
	s.must(t, "/v1/table/lake$t/declare", map[string]any{})
	var declared api.BatchCommitTablesResponse
	one := map[string]any{"operations": []any{map[string]any{"declare_table": map[string]any{"id": []string{"other", "t"}}}}}
	if err := json.Unmarshal([]byte(s.must(t, "/v1/table/batch-commit", one).body), &declared); err != nil {
		t.Fatal(err)
	}
	mine, others := s.queue(t, "CreateTableIndex", "lake", "t"), s.queue(t, "CreateTableIndex", "other", "t")
	if got := s.decoded(t, "/v1/jobs/describe", `{"job_id":"`+string(mine)+`"}`)["spec"]; !cmp.Equal(got, map[string]any{"table": "t"}) {
		t.Errorf("spec: %v", got)
	}
	if got := s.decoded(t, "/v1/jobs/list", "{}")["jobs"].([]any); len(got) != 1 || got[0].(map[string]any)["job_id"] != string(mine) {
		t.Errorf("jobs: %v", got)
	}
	for _, id := range []string{string(others), *declared.TransactionID, "none", ""} {
		for _, path := range []string{"/v1/jobs/describe", "/v1/jobs/cancel"} {
			if resp, text := s.ask(t, path, `{"job_id":"`+id+`"}`, cloudHeader); resp.StatusCode != http.StatusNotFound || !strings.Contains(text, "there is no job") {
				t.Errorf("%s of %q: %d %s", path, id, resp.StatusCode, text)
			}
		}
	}
	if resp, text := s.ask(t, "/v1/jobs/describe", "{}", cloudHeader); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("without an id: %d %s", resp.StatusCode, text)
	}
	if resp, text := s.ask(t, "/v1/jobs/pause", `{"job_id":"x"}`, cloudHeader); resp.StatusCode != http.StatusNotAcceptable {
		t.Errorf("pause: %d %s", resp.StatusCode, text)
	}
}

// TestJobStatuses: what makes a job is answered 202, and 201 for a view; LanceDB's remote SDK has its own form of that, and its own status.
func TestJobStatuses(t *testing.T) {
	t.Parallel()
	job := "j"
	e := &fakeEngine{do: func(_ context.Context, operation string, request any) (any, error) {
		switch r := request.(type) {
		case *api.CreateMaterializedViewRequest:
			if r.Kind != "query" || r.SourceQuery != "SELECT a FROM t" {
				t.Errorf("asked for %+v", r)
			}
			if r.WithNoData != nil && !*r.WithNoData {
				return &api.CreateMaterializedViewResponse{Version: 1, JobID: &job}, nil
			}
			return &api.CreateMaterializedViewResponse{Version: 1}, nil
		case *api.RefreshMaterializedViewRequest:
			return &api.RefreshMaterializedViewResponse{JobID: job}, nil
		case *api.CreateTableIndexRequest:
			return &api.CreateTableIndexResponse{TransactionID: &job}, nil
		}
		return &api.AlterTableBackfillColumnsResponse{JobID: job}, nil
	}}
	s := newServer(t, withEngine(e))
	const view = "/v1/materialized_view/v/create"
	for _, c := range []struct {
		path, body, header string
		status             int
		want               string
	}{
		{"/v1/table/t/backfill_column", `{"column":"c"}`, "x-other: 1", 202, `{"job_id":"j"}`},
		{"/v1/table/t/backfill_column", `{"column":"c"}`, cloudHeader, 202, `{"job_id":"j"}`},
		{"/v1/materialized_view/v/refresh", ``, "x-other: 1", 202, `{"job_id":"j"}`},
		{"/v1/materialized_view/v/refresh", `{"full":false}`, cloudHeader, 202, `{"job_id":"j"}`},
		{view, `{"kind":"query","source_query":"SELECT a FROM t","output_schema":""}`, "x-other: 1", 201, `{"version":1}`},
		{view, `{"kind":"query","source_query":"SELECT a FROM t","output_schema":"","with_no_data":false}`, "x-other: 1", 201, `{"version":1,"job_id":"j"}`},
		{view, `{"query":"SELECT a FROM t","with_no_data":true}`, cloudHeader, 201, `{"version":1}`},
		{view, `{"query":"SELECT a FROM t","with_no_data":false}`, cloudHeader, 202, `{"version":1,"job_id":"j"}`},
		{"/v1/table/t/create_index", `{"column":"a","index_type":"BTREE"}`, "x-other: 1", 200, `{"transaction_id":"j"}`},
		{"/v1/table/t/create_index", `{"column":"a","index_type":"BTREE"}`, cloudHeader, 200, `{"transaction_id":"j","job_id":"j"}`},
	} {
		if resp, text := s.ask(t, c.path, c.body, c.header); resp.StatusCode != c.status || text != c.want {
			t.Errorf("%s %s, %s: %d %s, want %d %s", c.path, c.body, c.header, resp.StatusCode, text, c.status, c.want)
		}
	}
	if resp, text := s.ask(t, view, `{"query":"SELECT a FROM t"}`, "x-other: 1"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("the SDK's form from somebody else: %d %s", resp.StatusCode, text)
	}
}

// TestDelegate: for whom a job works is believed only of the engine, and what it commits is refused once it has ended.
func TestDelegate(t *testing.T) {
	t.Parallel()
	s := newServer(t, withEngine(&fakeEngine{}))
	declare := func(name string, headers ...string) (int, string) {
		t.Helper()
		resp, text := s.ask(t, "/v1/table/batch-commit", `{"operations":[{"declare_table":{"id":["`+name+`"]}}]}`, headers...)
		var got api.BatchCommitTablesResponse
		_ = json.Unmarshal([]byte(text), &got)
		if got.TransactionID == nil {
			return resp.StatusCode, text
		}
		d, err := s.catalog.DescribeTransaction(t.Context(), &api.DescribeTransactionRequest{Target: api.At(*got.TransactionID)})
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, d.Properties["principal"]
	}
	const principal = "X-Lancerest-Principal: ann+%C3%A9"
	if _, who := declare("a", principal, "X-Lancerest-Engine-Token: inside"); who != "ann é" {
		t.Errorf("by %q", who)
	}
	for _, token := range []string{"", "other"} {
		if _, who := declare("b"+token, principal, "X-Lancerest-Engine-Token: "+token); who != "anonymous" {
			t.Errorf("token %q: by %q", token, who)
		}
	}
	id := s.queue(t, "CreateTableIndex", "a")
	job := "X-Lancerest-Job: " + string(id)
	if status, text := declare("c", principal, job, "X-Lancerest-Engine-Token: inside"); status != http.StatusOK {
		t.Errorf("of a job: %d %s", status, text)
	}
	if err := s.catalog.EndTask(auth.WithPrincipal(t.Context(), auth.Principal{}), id, nil, nil); err != nil {
		t.Fatal(err)
	}
	if status, text := declare("d", principal, job, "X-Lancerest-Engine-Token: inside"); status != http.StatusBadRequest || !strings.Contains(text, "has ended") {
		t.Errorf("of a job that has ended: %d %s", status, text)
	}
	if status, _ := declare("e", principal, job); status != http.StatusOK {
		t.Errorf("of somebody else who names a job: %d", status)
	}
}
