package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/httpapi"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore/mem"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// edge is a handler on a fresh catalog whose engine offers nothing, and what it did with the last request.
type edge struct {
	handler *httpapi.Handler
	logged  bytes.Buffer // the handler's log, one JSON object a line
	engine  string       // the operation that the engine was asked for, "" if none
}

func newEdge(t *testing.T) *edge {
	t.Helper()
	state, err := sqlstore.OpenSQLite(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "catalog.db")})
	if err != nil {
		t.Fatal(err)
	}
	root, err := lance.ParseLocation("memory://lake/tables")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.New(t.Context(), catalog.Options{Store: state, Roots: []catalog.Root{{Location: root, Objects: mem.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := state.Close(); err != nil {
			t.Error(err)
		}
	})
	e := &edge{}
	e.handler, err = httpapi.New(httpapi.Options{Catalog: c, Engine: e, Logger: slog.New(slog.NewJSONHandler(&e.logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Do takes down what the engine was asked for.
func (e *edge) Do(_ context.Context, operation string, _ any) (any, error) {
	e.engine = operation
	return nil, api.Errorf(api.CodeUnsupported, "%s: no engine", operation)
}

// send sends one operation with the least that it takes and returns the answer and the name of the operation that the handler
// logged.
func (e *edge) send(t *testing.T, op api.Operation) (*http.Response, string) {
	t.Helper()
	e.engine = ""
	e.logged.Reset()
	path := strings.NewReplacer("{id}", "nowhere$nothing", "{index_name}", "i").Replace(op.Path)
	w := httptest.NewRecorder()
	e.handler.ServeHTTP(w, httptest.NewRequest(op.Method, path, bytes.NewReader(leastBody(t, op))))
	var line struct{ Operation string }
	if err := json.Unmarshal(e.logged.Bytes(), &line); err != nil {
		t.Fatalf("%s: the log holds %q: %v", op.Name, e.logged.String(), err)
	}
	return w.Result(), line.Operation
}

// leastBody returns a body that holds the required fields and nothing else.
func leastBody(t *testing.T, op api.Operation) []byte {
	t.Helper()
	if op.Body != api.JSONBody && op.Body != api.OptionalJSONBody {
		return nil
	}
	request := reflect.New(reflect.TypeOf(op.Request)).Elem()
	fillRequired(request)
	body, err := json.Marshal(request.Interface())
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// fillRequired sets the required fields of a struct, and theirs.
func fillRequired(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(`"x"`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillRequired(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[api.QueryVector]() {
			v.Set(reflect.ValueOf(api.QueryVector{SingleVector: []float32{1}}))
			return
		}
		for _, f := range reflect.VisibleFields(v.Type()) {
			if f.Tag.Get("required") == "true" {
				fillRequired(v.FieldByIndex(f.Index))
			}
		}
	}
}

// TestEveryOperationIsRouted holds that each of the 54 reaches what performs it: the router's own 404 and 405, which are of code
// InvalidInput, are never the answer.
func TestEveryOperationIsRouted(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	if n := len(api.Operations()); n != 54 {
		t.Fatalf("the table has %d operations, want 54", n)
	}
	for _, op := range api.Operations() {
		res, logged := e.send(t, op)
		if logged != op.Name {
			t.Errorf("%s %s: performed %q, want %q", op.Method, op.Path, logged, op.Name)
		}
		if res.StatusCode == http.StatusMethodNotAllowed || res.StatusCode == http.StatusNotFound && codeOf(t, res) == api.CodeInvalidInput {
			t.Errorf("%s %s: status %d: no route", op.Method, op.Path, res.StatusCode)
		}
		if e.engine != "" && e.engine != op.Name {
			t.Errorf("%s: the engine was asked for %s", op.Name, e.engine)
		}
	}
}

// TestNoOtherRoute holds the router to the table: a path that is not there is answered 404, a method that is not there 405, both as
// JSON.
func TestNoOtherRoute(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for _, c := range []struct {
		op     api.Operation
		status int
	}{
		{api.Operation{Method: "POST", Path: "/v1/table/{id}/nonsense"}, http.StatusNotFound},
		{api.Operation{Method: "POST", Path: "/v2/table/{id}/describe"}, http.StatusNotFound},
		{api.Operation{Method: "GET", Path: "/v1/table/{id}/describe"}, http.StatusMethodNotAllowed},
		{api.Operation{Method: "DELETE", Path: "/v1/table/{id}/drop"}, http.StatusMethodNotAllowed},
	} {
		res, _ := e.send(t, c.op)
		if res.StatusCode != c.status || codeOf(t, res) != api.CodeInvalidInput {
			t.Errorf("%s %s: status %d, want %d with code %d", c.op.Method, c.op.Path, res.StatusCode, c.status, api.CodeInvalidInput)
		}
	}
}

// TestStatuses holds that each code has the status that clients which look at nothing else expect (client contract, fact 26).
func TestStatuses(t *testing.T) {
	t.Parallel()
	want := []int{406, 404, 409, 409, 404, 409, 404, 409, 404, 409, 404, 404, 404, 400, 409, 403, 401, 503, 500, 409, 400, 429, 404, 409}
	var got []int
	for _, code := range api.Codes() {
		got = append(got, httpapi.Status(code))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses of the codes 0 to 23 (-want +got):\n%s", diff)
	}
}

func codeOf(t *testing.T, res *http.Response) api.Code {
	t.Helper()
	body := api.Error{Code: -1}
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		t.Fatalf("status %d without an error object: %v", res.StatusCode, err)
	}
	return body.Code
}
