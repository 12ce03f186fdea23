package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/client"
)

// seen is what a server was sent.
type seen struct {
	Method, Path, Query, ContentType, Body string
	Header                                 http.Header
}

// serve starts a server that answers every request alike, and returns its URL and the place where it notes the last request.
func serve(t *testing.T, status int, answer string) (string, *seen) {
	t.Helper()
	last := &seen{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the body: %v", err)
		}
		*last = seen{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type"), string(body), r.Header}
		w.WriteHeader(status)
		io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL, last
}

// TestEveryOperation calls all 54 methods by name and compares what arrives with the table of operations.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	for _, op := range api.Operations() {
		t.Run(op.Name, func(t *testing.T) {
			t.Parallel()
			url, last := serve(t, op.Success, answerTo(op))
			method := reflect.ValueOf(client.New(url, client.Options{})).MethodByName(op.Name)
			if !method.IsValid() {
				t.Fatalf("client has no method %s", op.Name)
			}
			request := reflect.New(reflect.TypeOf(op.Request))
			path := op.Path
			if id := request.Elem().FieldByName("ID"); id.IsValid() {
				id.Set(reflect.ValueOf([]string{"a b", "c+/~é"}))
				path = strings.Replace(path, "{id}", "a+b%24c%2B%2F~%C3%A9", 1)
			}
			if index := request.Elem().FieldByName("IndexName"); index.IsValid() {
				index.SetString("i/1")
				path = strings.Replace(path, "{index_name}", "i%2F1", 1)
			}
			results := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), request})
			if err := results[len(results)-1].Interface(); err != nil {
				t.Fatal(err)
			}
			contentType := map[api.BodyKind]string{
				api.JSONBody: api.JSONType, api.OptionalJSONBody: api.JSONType, api.ArrowBody: api.ArrowStreamType,
			}[op.Body]
			want := seen{Method: op.Method, Path: path, Query: "delimiter=%24", ContentType: contentType}
			got := *last
			got.Header, got.Body = nil, ""
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if hasBody := last.Body != ""; hasBody != (op.Body == api.JSONBody || op.Body == api.OptionalJSONBody) {
				t.Errorf("body is %q for body kind %d", last.Body, op.Body)
			}
		})
	}
}

// answerTo is a successful answer of the operation's shape.
func answerTo(op api.Operation) string {
	switch op.Response.(type) {
	case api.CountTableRowsResponse:
		return "3"
	case api.ExplainTableQueryPlanResponse, api.AnalyzeTableQueryPlanResponse:
		return `"plan"`
	}
	if op.Returns == api.ReturnsNothing {
		return ""
	}
	return "{}"
}

func TestRequestsOnTheWire(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		send  func(context.Context, *client.Client) error
		path  string
		query string
		body  string
	}{
		"root namespace, one page": {
			send: func(ctx context.Context, c *client.Client) error {
				_, err := c.ListNamespaces(ctx, &api.ListNamespacesRequest{Page: api.Page{Limit: new(int64(5)), PageToken: new("a=b")}})
				return err
			},
			path: "/v1/namespace/%24/list", query: "delimiter=%24&limit=5&page_token=a%3Db",
		},
		"describe says it twice": {
			send: func(ctx context.Context, c *client.Client) error {
				_, err := c.DescribeTable(ctx, &api.DescribeTableRequest{Target: api.At("t"), Version: new(int64(2)), CheckDeclared: new(false)})
				return err
			},
			path: "/v1/table/t/describe", query: "check_declared=false&delimiter=%24", body: `{"id":["t"],"version":2,"check_declared":false}`,
		},
		"create has maps in the query": {
			send: func(ctx context.Context, c *client.Client) error {
				_, err := c.CreateTable(ctx, &api.CreateTableRequest{
					Target: api.At("t"), ArrowStream: api.ArrowStream{Data: strings.NewReader("ARROW")}, Properties: map[string]string{"k": "v w"},
				})
				return err
			},
			path: "/v1/table/t/create", query: "delimiter=%24&properties=%7B%22k%22%3A%22v+w%22%7D", body: "ARROW",
		},
		"merge repeats on": {
			send: func(ctx context.Context, c *client.Client) error {
				_, err := c.MergeInsertIntoTable(ctx, &api.MergeInsertIntoTableRequest{
					Target: api.At("t"), On: []string{"a", "b"}, WhenMatchedUpdateAll: new(true), Branch: new("x/y"),
				})
				return err
			},
			path: "/v1/table/t/merge_insert", query: "branch=x%2Fy&delimiter=%24&on=a&on=b&when_matched_update_all=true",
		},
		"schema metadata is bare": {
			send: func(ctx context.Context, c *client.Client) error {
				_, err := c.UpdateTableSchemaMetadata(ctx, &api.UpdateTableSchemaMetadataRequest{
					Target: api.At("t"), Metadata: map[string]string{"k": "v"}, Branch: new("b"),
				})
				return err
			},
			path: "/v1/table/t/schema_metadata/update", query: "branch=b&delimiter=%24", body: `{"k":"v"}`,
		},
		"batch has no id": {
			send: func(ctx context.Context, c *client.Client) error {
				_, err := c.BatchCreateTableVersions(ctx, &api.BatchCreateTableVersionsRequest{Entries: []api.CreateTableVersionEntry{
					{ID: []string{"t"}, StagedVersion: api.StagedVersion{Version: 1, ManifestPath: "p"}},
				}})
				return err
			},
			path: "/v1/table/version/batch-create", query: "delimiter=%24",
			body: `{"entries":[{"id":["t"],"version":1,"manifest_path":"p"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, last := serve(t, 200, `{}`)
			if err := test.send(t.Context(), client.New(url+"/", client.Options{})); err != nil {
				t.Fatal(err)
			}
			got := seen{Path: last.Path, Query: last.Query, Body: last.Body}
			if diff := cmp.Diff(seen{Path: test.path, Query: test.query, Body: test.body}, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	options := client.Options{APIKey: "key", AuthToken: "token", Headers: map[string]string{"X-Mine": "1", "X-Other": "2"}}
	caller := api.Caller{
		Identity: &api.Identity{APIKey: new("request key")}, Context: map[string]string{"header.X-Mine": "request", "trace": "7"},
	}
	target := api.Target{ID: []string{"t"}, Caller: caller}
	url, last := serve(t, 200, `{}`)
	c := client.New(url, options)
	if _, err := c.DropTable(t.Context(), &api.DropTableRequest{Target: target}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"x-api-key": "request key", "authorization": "Bearer token", "x-mine": "request", "x-other": "2", "x-lance-ctx-trace": "7",
	}
	for name, value := range want {
		if got := last.Header.Get(name); got != value {
			t.Errorf("header %s is %q, want %q", name, got, value)
		}
	}
	if _, err := c.DescribeTransaction(t.Context(), &api.DescribeTransactionRequest{Target: target}); err != nil {
		t.Fatal(err)
	}
	body := `{"id":["t"],"identity":{"api_key":"request key"},"context":{"header.X-Mine":"request","trace":"7"}}`
	if diff := cmp.Diff(body, last.Body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if got := last.Header.Values("x-lance-ctx-trace"); got != nil {
		t.Errorf("context is in the body and in the header x-lance-ctx-trace: %q", got)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		answer string
		want   api.Error
	}{
		"error of the server": {
			404, `{"error":"no such table","code":4,"detail":"d","instance":"r1","type":"x","context":{"a":"b"}}`,
			api.Error{Message: "no such table", Code: 4, Detail: "d", Instance: "r1", Context: map[string]string{"a": "b"}},
		},
		"code zero": {406, `{"code":0}`, api.Error{}},
		"empty":     {404, ``, api.Error{Code: 18, Message: `TableExists: the answer has status 404 Not Found and no error body: ""`}},
		"page": {
			502, `<html>`, api.Error{Code: 18, Message: `TableExists: the answer has status 502 Bad Gateway and no error body: "<html>"`},
		},
		"code as text": {
			400, `{"code":"4"}`,
			api.Error{Code: 18, Message: `TableExists: the answer has status 400 Bad Request and no error body: "{\"code\":\"4\"}"`},
		},
		"no code": {
			400, `{"error":"x"}`,
			api.Error{Code: 18, Message: `TableExists: the answer has status 400 Bad Request and no error body: "{\"error\":\"x\"}"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := serve(t, test.status, test.answer)
			err := client.New(url, client.Options{}).TableExists(t.Context(), &api.TableExistsRequest{Target: api.At("t")})
			got, ok := errors.AsType[*api.Error](err)
			if !ok {
				t.Fatalf("error is %v, want an *api.Error", err)
			}
			if diff := cmp.Diff(test.want, *got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOtherFailures holds that what is no answer of the server is no *api.Error of it, and that errors tell no secrets of the URL.
func TestOtherFailures(t *testing.T) {
	t.Parallel()
	empty, _ := serve(t, 200, ``)
	down := httptest.NewServer(nil)
	down.Close()
	for name, test := range map[string]struct{ url, text string }{
		"empty success": {empty, "CreateTable: read the answer with status 200 OK: EOF"},
		"no server":     {down.URL, "CreateTable: dial tcp"},
		"bad URL":       {"http://[::1", "CreateTable: missing ']' in host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client.New(test.url, client.Options{}).CreateTable(t.Context(), &api.CreateTableRequest{
				Target: api.At("t"), StorageOptions: map[string]string{"secret": "hunter2"},
			})
			if err == nil || !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error is %v, want %q and no secret", err, test.text)
			}
		})
	}
}

func TestDelimiter(t *testing.T) {
	t.Parallel()
	url, last := serve(t, 200, `{}`)
	request := &api.DescribeTableRequest{Target: api.At("a$b", "c")}
	_, err := client.New(url, client.Options{}).DescribeTable(t.Context(), request)
	if api.CodeOf(err) != api.CodeInvalidInput || last.Method != "" {
		t.Errorf("a name with the delimiter gave %v and sent %q, want code 13 and nothing sent", err, last.Path)
	}
	if _, err := client.New(url, client.Options{Delimiter: "::"}).DescribeTable(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if got, want := last.Path+"?"+last.Query, "/v1/table/a%24b%3A%3Ac/describe?delimiter=%3A%3A"; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

// closeCounter is a stream that knows how often it was closed.
type closeCounter struct {
	io.Reader
	closed int
}

func (c *closeCounter) Close() error { c.closed++; return nil }

func TestStreams(t *testing.T) {
	t.Parallel()
	url, last := serve(t, 200, `{"version":4}`)
	stream := &closeCounter{Reader: strings.NewReader("ARROW")}
	got, err := client.New(url, client.Options{}).InsertIntoTable(t.Context(), &api.InsertIntoTableRequest{
		Target: api.At("t"), ArrowStream: api.ArrowStream{Data: stream},
	})
	if err != nil || got.Version == nil || *got.Version != 4 {
		t.Fatalf("insert gave %+v, %v, want version 4", got, err)
	}
	if last.Body != "ARROW" || stream.closed != 0 {
		t.Errorf("sent %q and closed the stream %d times, want ARROW and 0", last.Body, stream.closed)
	}
	url, _ = serve(t, 200, "FILE")
	file, err := client.New(url, client.Options{}).QueryTable(t.Context(), &api.QueryTableRequest{Target: api.At("t"), K: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if data, err := io.ReadAll(file); err != nil || string(data) != "FILE" {
		t.Errorf("query gave %q, %v, want FILE", data, err)
	}
}

func TestBareAnswers(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, 200, `12`)
	if got, err := client.New(url, client.Options{}).CountTableRows(t.Context(), &api.CountTableRowsRequest{}); err != nil || got != 12 {
		t.Errorf("count is %d, %v, want 12", got, err)
	}
	url, _ = serve(t, 200, `"p"`)
	plan, err := client.New(url, client.Options{}).ExplainTableQueryPlan(t.Context(), &api.ExplainTableQueryPlanRequest{})
	if err != nil || plan.Plan != "p" {
		t.Errorf("plan is %+v, %v, want p", plan, err)
	}
}
