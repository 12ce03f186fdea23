package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/httpapi"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore/mem"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// fuzzed returns a handler of a catalog with a namespace "n" and a table "n$t".
func fuzzed(f *testing.F) *httpapi.Handler {
	f.Helper()
	ctx := context.Background()
	state, err := sqlstore.OpenSQLite(ctx, sqlstore.Options{Path: filepath.Join(f.TempDir(), "catalog.db")})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = state.Close() })
	root, err := lance.ParseLocation("memory://fuzz/tables")
	if err != nil {
		f.Fatal(err)
	}
	c, err := catalog.New(ctx, catalog.Options{Store: state, Roots: []catalog.Root{{Location: root, Objects: mem.New()}}})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := c.CreateNamespace(ctx, &api.CreateNamespaceRequest{Target: api.At("n")}); err != nil {
		f.Fatal(err)
	}
	if _, err := c.DeclareTable(ctx, &api.DeclareTableRequest{Target: api.At("n", "t")}); err != nil {
		f.Fatal(err)
	}
	h, err := httpapi.New(httpapi.Options{Catalog: c})
	if err != nil {
		f.Fatal(err)
	}
	return h
}

// FuzzRequest sends any request to the whole handler: whatever it is, the answer is a success or an error of the specification, and
// never one of an unknown cause.
func FuzzRequest(f *testing.F) {
	h := fuzzed(f)
	for _, op := range api.Operations() {
		target := strings.NewReplacer("{id}", "n$t", "{index_name}", "i").Replace(op.Path)
		for _, body := range []string{
			"", "null", "{}", `{"id":["n","t"],"version":1,"manifest_path":"x","branch":null}`, `{"entries":[{"id":["n","t"],"version":-1,"manifest_path":"a/../b"}]}`,
			`{"operations":[{"declare_table":{"id":["n","u"],"location":"file:///x"}},{}]}`, `{"ranges":[{"start_version":0,"end_version":-1}]}`,
			`{"actions":[{"setStatusAction":{"status":"QUEUED"}}]}`, `{"id":[1],"mode":{}}`, `[{"version":1e400}]`, "\xff", `{"tag":"a/b","version":9223372036854775808}`,
		} {
			f.Add(op.Method, target, body)
		}
		f.Add(op.Method, target+"/?delimiter=.&limit=-1&page_token=%00&mode=EXIST_OK&properties={", `{}`)
		f.Add(op.Method, "/"+strings.ReplaceAll(target, "n$t", "%2E%2e+%ff$$"), `{"identity":{"api_key":"k"},"context":{"a":"b"}}`)
	}
	f.Fuzz(func(t *testing.T, method, target, body string) {
		r, err := http.NewRequest(method, "http://catalog.test"+target, strings.NewReader(body))
		if err != nil || !strings.HasPrefix(target, "/") {
			t.Skip("no client can send it")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code/100 == 2 {
			return
		}
		var e struct{ Code *api.Code }
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Code == nil {
			t.Fatalf("%s %q, body %q: status %d with %q, which is no error of the specification", method, target, body, w.Code, w.Body)
		}
		// Of a path or a method that no operation has the status says more than the code.
		routed := w.Code != http.StatusNotFound && w.Code != http.StatusMethodNotAllowed
		if *e.Code == api.CodeInternal || routed && w.Code != httpapi.Status(*e.Code) {
			t.Fatalf("%s %q, body %q: status %d with %s", method, target, body, w.Code, w.Body)
		}
	})
}
