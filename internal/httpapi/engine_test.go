package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/auth"
	"github.com/lancerest/lancerest/internal/httpapi"
)

// fakeEngine does what a test says.
type fakeEngine struct {
	calls atomic.Int64
	do    func(ctx context.Context, operation string, request any) (any, error)
}

func (e *fakeEngine) Do(ctx context.Context, operation string, request any) (any, error) {
	e.calls.Add(1)
	return e.do(ctx, operation, request)
}

func withEngine(e *fakeEngine) func(*httpapi.Options) {
	return func(o *httpapi.Options) { o.Engine, o.EngineToken = e, "inside" }
}

// ask posts a body with headers, NAME: VALUE each. An answer that breaks off is a text that begins with "broken".
func (s *server) ask(t *testing.T, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return &http.Response{}, "broken: " + err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp, "broken: " + err.Error()
	}
	return resp, string(text)
}

const cloudHeader = "x-lancedb-database: lake"

// TestEngineRows: rows are sent as they come, with the type that clients look for; if they break off, so does the answer.
func TestEngineRows(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{}, 2)
	e := &fakeEngine{do: func(_ context.Context, _ string, request any) (any, error) {
		rows := strings.Repeat("rows ", 100_000)
		var data io.Reader = strings.NewReader(rows)
		if request.(*api.QueryTableRequest).K == 2 {
			data = io.MultiReader(data, failing{})
		}
		return &api.QueryTableResponse{Data: closing{data, closed}}, nil
	}}
	s := newServer(t, withEngine(e))
	resp, text := s.ask(t, "/v1/table/t/query", `{"vector":{},"k":1}`, "x-request-id: mine")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != api.ArrowFileType || len(text) != 500_000 || resp.Header.Get("X-Request-Id") != "mine" {
		t.Errorf("%s, %v, %d bytes", resp.Status, resp.Header, len(text))
	}
	if _, text = s.ask(t, "/v1/table/t/query", `{"vector":{},"k":2}`); !strings.HasPrefix(text, "broken") {
		t.Errorf("rows that break off look whole: %d bytes", len(text))
	}
	<-closed
	<-closed
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the worker is gone") }

type closing struct {
	io.Reader
	closed chan<- struct{}
}

func (c closing) Close() error { c.closed <- struct{}{}; return nil }

// TestEngineRowsTakeTheirTime: rows may take longer than an operation may, as long as they keep coming; where they stop, the answer breaks off.
func TestEngineRowsTakeTheirTime(t *testing.T) {
	t.Parallel()
	const limit, pieces = 300 * time.Millisecond, 30
	ended := make(chan error, 1)
	e := &fakeEngine{do: func(ctx context.Context, _ string, request any) (any, error) {
		read, write := io.Pipe()
		go func() {
			defer write.Close()
			for range pieces {
				time.Sleep(limit / 15) // a stand-in for a slow table, not for a condition
				_, _ = write.Write([]byte("rows "))
			}
			if request.(*api.QueryTableRequest).K == 2 {
				<-ctx.Done()
				ended <- context.Cause(ctx)
				_ = write.CloseWithError(ctx.Err())
			}
		}()
		return &api.QueryTableResponse{Data: read}, nil
	}}
	s := newServer(t, withEngine(e), func(o *httpapi.Options) { o.Limits.ReadTime = limit })
	if resp, text := s.ask(t, "/v1/table/t/query", `{"vector":{},"k":1}`); resp.StatusCode != http.StatusOK || text != strings.Repeat("rows ", pieces) {
		t.Errorf("%s: %q", resp.Status, text)
	}
	if _, text := s.ask(t, "/v1/table/t/query", `{"vector":{},"k":2}`); !strings.HasPrefix(text, "broken") {
		t.Errorf("rows that stop look whole: %q", text)
	}
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the engine was stopped by %v", err)
	}
}

// TestEngineErrorsForTheCloud: LanceDB's remote SDK is told by statuses that it does not take for something else; others by the specification's.
func TestEngineErrorsForTheCloud(t *testing.T) {
	t.Parallel()
	e := &fakeEngine{}
	s := newServer(t, withEngine(e))
	for code, want := range map[api.Code][2]int{
		api.CodeTableAlreadyExists: {409, 400}, api.CodeTableColumnNotFound: {404, 400}, api.CodeTableVersionNotFound: {404, 400},
		api.CodeTableBranchNotFound: {404, 400}, api.CodeTableIndexAlreadyExists: {409, 400}, api.CodeInvalidTableState: {409, 400},
		api.CodeTableNotFound: {404, 404}, api.CodeTableIndexNotFound: {404, 404}, api.CodeConcurrentModification: {409, 409},
		api.CodeTableBranchAlreadyExists: {409, 409}, api.CodeInvalidInput: {400, 400}, api.CodeUnsupported: {406, 406},
	} {
		e.do = func(context.Context, string, any) (any, error) { return nil, api.Errorf(code, "so it is") }
		for i, header := range []string{"x-other: 1", cloudHeader} {
			resp, text := s.ask(t, "/v1/table/t/update/", `{"updates":[["a","1"]]}`, header)
			if resp.StatusCode != want[i] || !strings.Contains(text, fmt.Sprintf(`"code":%d`, code)) || !strings.Contains(text, "so it is") {
				t.Errorf("code %d with %s: %d %s, want %d", code, header, resp.StatusCode, text, want[i])
			}
		}
	}
}

// TestEngineGreets: LanceDB's remote SDK learns what a server with an engine can do, and nothing from one without.
func TestEngineGreets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server *server
		header string
		want   string
	}{
		{newServer(t, withEngine(&fakeEngine{})), cloudHeader, "0.3.0"},
		{newServer(t, withEngine(&fakeEngine{})), "x-other: 1", ""},
		{newServer(t), cloudHeader, ""},
	} {
		resp, _ := c.server.ask(t, "/v1/table/t/describe/", "", c.header)
		if got := resp.Header.Get("phalanx-version"); got != c.want {
			t.Errorf("%s: version %q, want %q", c.header, got, c.want)
		}
	}
}

// TestEngineBeyondTheSpecification: calls of LanceDB's remote SDK that the specification does not have are not offered, rather than not found.
func TestEngineBeyondTheSpecification(t *testing.T) {
	t.Parallel()
	s := newServer(t, withEngine(&fakeEngine{}))
	for header, want := range map[string]int{cloudHeader: http.StatusNotAcceptable, "x-other: 1": http.StatusNotFound} {
		if resp, text := s.ask(t, "/v1/table/t/page_cache/prewarm/", "{}", header); resp.StatusCode != want || !strings.Contains(text, "prewarm") {
			t.Errorf("%s: %d %s, want %d", header, resp.StatusCode, text, want)
		}
	}
}

// TestEngineResent: a change that LanceDB's remote SDK sends again under the same id is made once; other ids, other requests, other
// clients and conflicts are carried out.
func TestEngineResent(t *testing.T) {
	t.Parallel()
	var fail atomic.Pointer[api.Error]
	e := &fakeEngine{do: func(context.Context, string, any) (any, error) {
		if err := fail.Load(); err != nil {
			return nil, err
		}
		return &api.UpdateTableResponse{UpdatedRows: 1, Version: 2}, nil
	}}
	s := newServer(t, withEngine(e))
	const body, other = `{"updates":[["a","a + 1"]]}`, `{"updates":[["a","a + 2"]]}`
	calls := func(want int64, what string) {
		t.Helper()
		if got := e.calls.Load(); got != want {
			t.Errorf("%s: %d calls, want %d", what, got, want)
		}
	}
	_, first := s.ask(t, "/v1/table/t/update/", body, cloudHeader, "x-request-id: 1")
	_, again := s.ask(t, "/v1/table/t/update/", body, cloudHeader, "x-request-id: 1")
	if first != again || !strings.Contains(first, `"version":2`) {
		t.Errorf("answers %s and %s", first, again)
	}
	calls(1, "the same again")
	s.ask(t, "/v1/table/t/update/", other, cloudHeader, "x-request-id: 1")
	calls(2, "another request")
	s.ask(t, "/v1/table/t/update/", body, cloudHeader, "x-request-id: 2")
	calls(3, "another id")
	s.ask(t, "/v1/table/t/update", body, "x-request-id: 1")
	s.ask(t, "/v1/table/t/update", body, "x-request-id: 1")
	calls(5, "another client")
	fail.Store(api.Errorf(api.CodeConcurrentModification, "another was faster"))
	for range 2 {
		if resp, text := s.ask(t, "/v1/table/t/update/", body, cloudHeader, "x-request-id: 3"); resp.StatusCode != http.StatusConflict {
			t.Errorf("%d %s", resp.StatusCode, text)
		}
	}
	calls(7, "conflicts")
	fail.Store(api.Errorf(api.CodeInvalidInput, "that is no SQL"))
	for range 2 {
		s.ask(t, "/v1/table/t/update/", body, cloudHeader, "x-request-id: 4")
	}
	calls(8, "what was refused")
}

// TestEngineInside: what the engine asks while it works is served although all places are taken and the server drains: it belongs to
// operations under way. It is told by its secret alone.
func TestEngineInside(t *testing.T) {
	t.Parallel()
	var s *server
	ask := func(token string) int {
		resp, _ := s.ask(t, "/v1/namespace/$/describe", "{}", "X-Lancerest-Engine-Token: "+token)
		return resp.StatusCode
	}
	e := &fakeEngine{do: func(ctx context.Context, _ string, _ any) (any, error) {
		if got := auth.CredentialsFrom(ctx); got.APIKey != "sk_mine" {
			t.Errorf("the caller's credentials are %+v", got)
		}
		if got := ask("inside"); got != http.StatusOK {
			t.Errorf("inside: %d", got)
		}
		s.handler.Drain()
		if got := ask("inside"); got != http.StatusOK {
			t.Errorf("inside, draining: %d", got)
		}
		for _, token := range []string{"", "outside"} {
			if got := ask(token); got != http.StatusServiceUnavailable {
				t.Errorf("token %q while draining: %d", token, got)
			}
		}
		return &api.UpdateTableResponse{Version: 1}, nil
	}}
	s = newServer(t, withEngine(e), func(o *httpapi.Options) { o.Limits.Concurrent = 1 })
	if resp, text := s.ask(t, "/v1/table/t/update", `{"updates":[]}`, "x-api-key: sk_mine"); resp.StatusCode != http.StatusOK {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if err := s.handler.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestEngineColumnsAsStream: LanceDB's remote SDK adds columns of nulls by the schema of an Arrow stream.
func TestEngineColumnsAsStream(t *testing.T) {
	t.Parallel()
	var got []byte
	e := &fakeEngine{do: func(_ context.Context, _ string, request any) (any, error) {
		got = request.(*api.AlterTableAddColumnsRequest).ArrowSchema
		return &api.AlterTableAddColumnsResponse{Version: 1}, nil
	}}
	s := newServer(t, withEngine(e))
	if resp, text := s.ask(t, "/v1/table/t/add_columns/", "\xff\xff\xff\xff", cloudHeader, "Content-Type: "+api.ArrowStreamType); resp.StatusCode != http.StatusOK || string(got) != "\xff\xff\xff\xff" {
		t.Errorf("%d %s: the engine got %q", resp.StatusCode, text, got)
	}
	if resp, _ := s.ask(t, "/v1/table/t/drop_columns/", "\xff\xff\xff\xff", cloudHeader, "Content-Type: "+api.ArrowStreamType); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("another operation takes a stream for its body: %d", resp.StatusCode)
	}
}
