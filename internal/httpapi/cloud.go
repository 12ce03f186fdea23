package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
)

// LanceDB's remote SDK asks after jobs, and lists, opens and drops views, by requests that the specification does not have. The few that it needs
// to make use of the operations of the specification are served beside those (docs/engine.md); observed with its version 0.40.

// jobRequest names a job. The target is of no use but to be put into a database.
type jobRequest struct {
	api.Target
	JobID string `json:"job_id" required:"true"`
}

// listJobsRequest asks for the jobs that have not ended.
type listJobsRequest struct {
	api.Target
}

// jobDescription is what the SDK wants to know of a job. Result depends on the kind of job.
type jobDescription struct {
	JobID      string         `json:"job_id"`
	JobType    string         `json:"job_type"`
	JobState   string         `json:"job_state"`
	CreationMS int64          `json:"creation_ms"`
	Spec       map[string]any `json:"spec"`
	Result     map[string]any `json:"result,omitempty"`
	Failure    *jobFailure    `json:"failure,omitempty"`
}

type jobFailure struct {
	Phase     string `json:"phase"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// jobCanceled answers a cancellation.
type jobCanceled struct {
	JobID string `json:"job_id"`
}

// listedJob is one element of a list of jobs.
type listedJob struct {
	JobID     string `json:"job_id"`
	Table     string `json:"table"`
	JobType   string `json:"job_type"`
	State     string `json:"state"`
	CreatedAt int64  `json:"created_at_millis"`
}

type listJobsResponse struct {
	Jobs []listedJob `json:"jobs"`
}

// listViewsResponse holds bare names.
type listViewsResponse struct {
	Views     []string `json:"views"`
	PageToken *string  `json:"page_token,omitempty"`
}

// viewDescription is what the SDK needs to open a view.
type viewDescription struct {
	Name        string `json:"name"`
	SourceTable string `json:"source_table"`
	Query       string `json:"query"`
}

// viewRequest names a view.
type viewRequest struct {
	api.Target
}

// beside returns the operations that the specification does not have. kinds are those of the engine's jobs.
func beside(c *catalog.Catalog, kinds []string) []row {
	op := func(name, method, path string, request, response any) api.Operation {
		body := api.OptionalJSONBody
		if method == http.MethodGet {
			body = api.NoBody
		}
		return api.Operation{Name: name, Method: method, Path: path, Success: http.StatusOK, Body: body, Request: request, Response: response}
	}
	return []row{
		{op: op("DescribeJob", http.MethodPost, "/v1/jobs/describe", jobRequest{}, jobDescription{}), call: on(describeJob(c))},
		{op: op("CancelJob", http.MethodPost, "/v1/jobs/cancel", jobRequest{}, jobCanceled{}), call: on(cancelJob(c))},
		{op: op("ListJobs", http.MethodPost, "/v1/jobs/list", listJobsRequest{}, listJobsResponse{}), call: on(listJobs(c, kinds))},
		{op: op("DescribeMaterializedView", http.MethodPost, "/v1/materialized_view/{id}/describe", viewRequest{}, viewDescription{}), call: on(describeView(c))},
		{op: op("ListMaterializedViews", http.MethodGet, "/v1/namespace/{id}/materialized_view/list", api.ListTablesRequest{}, listViewsResponse{}), call: on(listViews(c))},
		{op: op("DropMaterializedView", http.MethodPost, "/v1/materialized_view/{id}/drop", viewRequest{}, api.DropTableResponse{}), call: on(dropView(c))},
	}
}

// job finds the record of a job. One of another database is none.
func job(ctx context.Context, c *catalog.Catalog, req *jobRequest) (*api.DescribeTransactionResponse, error) {
	missing := api.Errorf(api.CodeTransactionNotFound, "there is no job %q: give the job_id that an answer named", req.JobID)
	resp, err := c.DescribeTransaction(ctx, &api.DescribeTransactionRequest{Target: api.At(req.JobID)})
	if err != nil && api.CodeOf(err) == api.CodeTransactionNotFound {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	var table []string
	if json.Unmarshal([]byte(resp.Properties[catalog.TaskTable]), &table) != nil || !within(table, req.ID) {
		return nil, missing
	}
	return resp, nil
}

// within reports whether a table lies in a namespace, at any depth.
func within(table, namespace []string) bool {
	return len(table) > len(namespace) && slices.Equal(table[:len(namespace)], namespace)
}

func describeJob(c *catalog.Catalog) func(context.Context, *jobRequest) (*jobDescription, error) {
	return func(ctx context.Context, req *jobRequest) (*jobDescription, error) {
		found, err := job(ctx, c, req)
		if err != nil {
			return nil, err
		}
		p := found.Properties
		created, err := time.Parse(time.RFC3339Nano, p["created_at"])
		if err != nil {
			return nil, err
		}
		d := &jobDescription{
			JobID: req.JobID, JobType: jobType(p[catalog.TaskOperation]), JobState: jobState(found.Status), CreationMS: created.UnixMilli(),
			Spec: map[string]any{"table": shownTable(p, req.ID)},
		}
		switch found.Status {
		case api.TransactionSucceeded:
			d.Result = jobResult(p)
		case api.TransactionFailed:
			d.Failure = &jobFailure{Phase: "execute", Message: p[catalog.TaskError]}
		}
		return d, nil
	}
}

// shownTable names the table of a job as a client of the namespace that it sees does.
func shownTable(properties map[string]string, namespace []string) string {
	var table []string
	if json.Unmarshal([]byte(properties[catalog.TaskTable]), &table) != nil || !within(table, namespace) {
		return ""
	}
	return lance.JoinID(table[len(namespace):], lance.DefaultDelimiter)
}

func jobType(operation string) string {
	switch operation {
	case "AlterTableBackfillColumns":
		return "refresh_column"
	case "RefreshMaterializedView":
		return "refresh_materialized_view"
	}
	return "create_index"
}

func jobState(status api.TransactionStatus) string {
	switch status {
	case api.TransactionSucceeded:
		return "DONE"
	case api.TransactionFailed:
		return "FAILED"
	case api.TransactionCanceled:
		return "CANCELLED"
	}
	return "IN_PROGRESS"
}

// jobResult says what a job came to, with the fields that the SDK wants for its kind.
func jobResult(properties map[string]string) map[string]any {
	number := func(name string, or int64) int64 {
		n, err := strconv.ParseInt(properties[catalog.TaskResult+name], 10, 64)
		if err != nil {
			return or
		}
		return n
	}
	version, rows := number("version", 0), number("rows", 0)
	switch properties[catalog.TaskOperation] {
	case "AlterTableBackfillColumns":
		return map[string]any{
			"rows_assigned": rows, "rows_failed": 0, "rows_remaining": number("rows_remaining", 0),
			"source_version": number("source_version", version), "published_version": version,
		}
	case "RefreshMaterializedView":
		mode := properties[catalog.TaskResult+"mode"]
		if mode == "" {
			mode = "rebuild"
		}
		return map[string]any{"mode": mode, "rows_written": rows, "source_version": number("source_version", 0), "version": version}
	}
	return map[string]any{}
}

// cancelJob ends a job that has not ended. Another one stays as it is, which is no error: so the SDK promises.
func cancelJob(c *catalog.Catalog) func(context.Context, *jobRequest) (*jobCanceled, error) {
	return func(ctx context.Context, req *jobRequest) (*jobCanceled, error) {
		if _, err := job(ctx, c, req); err != nil {
			return nil, err
		}
		canceled := api.TransactionCanceled
		_, err := c.AlterTransaction(ctx, &api.AlterTransactionRequest{
			Target:  api.At(req.JobID),
			Actions: []api.AlterTransactionAction{{SetStatusAction: &api.AlterTransactionSetStatus{Status: &canceled}}},
		})
		if err != nil && api.CodeOf(err) != api.CodeInvalidInput {
			return nil, err
		}
		return &jobCanceled{JobID: req.JobID}, nil
	}
}

func listJobs(c *catalog.Catalog, kinds []string) func(context.Context, *listJobsRequest) (*listJobsResponse, error) {
	return func(ctx context.Context, req *listJobsRequest) (*listJobsResponse, error) {
		open, err := c.OpenTasks(ctx, kinds)
		if err != nil {
			return nil, err
		}
		resp := &listJobsResponse{Jobs: []listedJob{}}
		for _, t := range open {
			table := shownTable(t.Properties, req.ID)
			if table == "" {
				continue
			}
			resp.Jobs = append(resp.Jobs, listedJob{
				JobID: string(t.ID), Table: table, JobType: jobType(t.Properties[catalog.TaskOperation]), State: "in_progress", CreatedAt: t.CreatedAt.UnixMilli(),
			})
		}
		return resp, nil
	}
}

// definitionKey is the metadata of a table's schema that makes it a view, in LanceDB's own layout.
const definitionKey = "mv.definition"

// errNoView says that a table is not a view.
var errNoView = errors.New("not a view")

// viewQuery returns the query of a view. The error is errNoView for a table that is none.
func viewQuery(ctx context.Context, c *catalog.Catalog, id []string) (string, error) {
	yes, no := true, false
	resp, err := c.DescribeTable(ctx, &api.DescribeTableRequest{Target: api.At(id...), LoadDetailedMetadata: &yes, VendCredentials: &no})
	if err != nil {
		return "", err
	}
	var d struct{ Query string }
	if resp.Schema == nil || json.Unmarshal([]byte(resp.Schema.Metadata[definitionKey]), &d) != nil || d.Query == "" {
		return "", errNoView
	}
	return d.Query, nil
}

func describeView(c *catalog.Catalog) func(context.Context, *viewRequest) (*viewDescription, error) {
	return func(ctx context.Context, req *viewRequest) (*viewDescription, error) {
		query, err := viewQuery(ctx, c, req.ID)
		if errors.Is(err, errNoView) {
			return nil, api.Errorf(api.CodeInvalidInput, "table %q is not a materialized view", lance.JoinID(req.ID, lance.DefaultDelimiter))
		}
		if err != nil {
			return nil, err
		}
		return &viewDescription{Name: req.ID[len(req.ID)-1], SourceTable: sourceOf(query), Query: query}, nil
	}
}

// sourceOf returns the name after the word FROM of a query, without its quotes; a path's parts are joined by dots.
func sourceOf(query string) string {
	var parts []string
	tokens := sqlTokens(query)
	at := slices.IndexFunc(tokens, func(t string) bool { return strings.EqualFold(t, "from") })
	for i := at + 1; at >= 0 && i < len(tokens); i += 2 {
		parts = append(parts, strings.Trim(tokens[i], "\"`"))
		if i+1 == len(tokens) || tokens[i+1] != "." {
			break
		}
	}
	return strings.Join(parts, ".")
}

// sqlTokens splits a query into words, quoted names and texts, and single characters.
func sqlTokens(query string) []string {
	var tokens []string
	word := func(c byte) bool {
		return c == '_' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for i := 0; i < len(query); {
		end := i + 1
		switch c := query[i]; {
		case c == '"' || c == '`' || c == '\'':
			if n := strings.IndexByte(query[end:], c); n >= 0 {
				end += n + 1
			}
		case word(c):
			for end < len(query) && word(query[end]) {
				end++
			}
		}
		if t := strings.TrimSpace(query[i:end]); t != "" {
			tokens = append(tokens, t)
		}
		i = end
	}
	return tokens
}

// listViews goes through the tables of a namespace, a page of them at a time.
func listViews(c *catalog.Catalog) func(context.Context, *api.ListTablesRequest) (*listViewsResponse, error) {
	return func(ctx context.Context, req *api.ListTablesRequest) (*listViewsResponse, error) {
		declared := false
		req.IncludeDeclared = &declared
		tables, err := c.ListTables(ctx, req)
		if err != nil {
			return nil, err
		}
		resp := &listViewsResponse{Views: []string{}, PageToken: tables.PageToken}
		for _, name := range tables.Tables {
			_, err := viewQuery(ctx, c, append(slices.Clone(req.ID), name))
			if errors.Is(err, errNoView) || err != nil && api.CodeOf(err) == api.CodeTableNotFound {
				continue
			}
			if err != nil {
				return nil, err
			}
			resp.Views = append(resp.Views, name)
		}
		return resp, nil
	}
}

func dropView(c *catalog.Catalog) func(context.Context, *viewRequest) (*api.DropTableResponse, error) {
	return func(ctx context.Context, req *viewRequest) (*api.DropTableResponse, error) {
		if _, err := viewQuery(ctx, c, req.ID); errors.Is(err, errNoView) {
			return nil, api.Errorf(api.CodeInvalidInput, "table %q is not a materialized view: drop it as a table", lance.JoinID(req.ID, lance.DefaultDelimiter))
		} else if err != nil {
			return nil, err
		}
		return c.DropTable(ctx, &api.DropTableRequest{Target: req.Target})
	}
}

// cloudView is a request of LanceDB's remote SDK for a view: a query, and nothing of the schema that it gives.
type cloudView struct {
	Query       *string `json:"query"`
	SourceQuery *string `json:"source_query"`
	WithNoData  *bool   `json:"with_no_data"`
	AutoRefresh *bool   `json:"auto_refresh"`
}

// bindCloudView takes the SDK's form of CreateMaterializedView for what the specification has, and reports whether it was one.
func bindCloudView(r *http.Request, body []byte, request any) bool {
	view, ok := request.(*api.CreateMaterializedViewRequest)
	var given cloudView
	if !ok || !dialectOf(r).cloud || json.Unmarshal(bytes.TrimSpace(body), &given) != nil || given.Query == nil || given.SourceQuery != nil {
		return false
	}
	view.Kind, view.SourceQuery, view.WithNoData, view.AutoRefresh = "query", *given.Query, given.WithNoData, given.AutoRefresh
	return true
}

// asCloudAnswer makes of a response and its status what LanceDB's remote SDK wants: the id of a job under that name, and 202 for a view that is
// being filled.
func asCloudAnswer(d dialect, status int, response any) (int, any) {
	if !d.cloud {
		return status, response
	}
	type accepted struct {
		TransactionID *string `json:"transaction_id,omitempty"`
		JobID         *string `json:"job_id,omitempty"`
	}
	switch r := response.(type) {
	case *api.CreateMaterializedViewResponse:
		if r.JobID != nil {
			status = http.StatusAccepted
		}
	case *api.CreateTableIndexResponse:
		return status, &accepted{TransactionID: r.TransactionID, JobID: r.TransactionID}
	case *api.CreateTableScalarIndexResponse:
		return status, &accepted{TransactionID: r.TransactionID, JobID: r.TransactionID}
	case *api.ListTableTagsResponse:
		return status, r.Tags // bare (client contract, fact 101)
	}
	return status, response
}
