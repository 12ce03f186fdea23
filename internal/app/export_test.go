package app_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/store/sqlstore/dumpfile"
)

// TestExportAndImport: what is exported beside a running server is a catalog elsewhere, on the same tables, that knows them and takes the page
// tokens that the first one gave.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	first := app.Config{Data: filepath.Join(t.TempDir(), "data"), Listen: "127.0.0.1:0"}
	c := serve(t, first)
	for _, name := range []string{"a", "b"} {
		if _, err := c.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At(name)}); err != nil {
			t.Fatal(err)
		}
	}
	one := int64(1)
	list := &api.ListTablesRequest{Target: api.At(), Page: api.Page{Limit: &one}}
	page, err := c.ListTables(t.Context(), list)
	if err != nil || page.PageToken == nil {
		t.Fatalf("a first page: %+v, %v", page, err)
	}
	var dump bytes.Buffer
	if _, err := app.Export(t.Context(), first, &dump); err != nil {
		t.Fatal(err)
	}
	second := app.Config{Data: filepath.Join(t.TempDir(), "data"), Root: filepath.Join(first.Data, "tables"), Listen: "127.0.0.1:0"}
	if _, err := app.ImportState(t.Context(), second, bytes.NewReader(dump.Bytes())); err != nil {
		t.Fatal(err)
	}
	list.PageToken = page.PageToken
	page, err = serve(t, second).ListTables(t.Context(), list)
	if err != nil || len(page.Tables) != 1 || page.Tables[0] != "b" {
		t.Errorf("the second page from the second server: %+v, %v", page, err)
	}
	for what, config := range map[string]app.Config{"in use": first, "neither a file nor PostgreSQL": {State: "mysql://x"}} {
		if _, err := app.ImportState(t.Context(), config, bytes.NewReader(dump.Bytes())); err == nil {
			t.Errorf("a state that is %s was imported over", what)
		}
	}
}

// TestImportOverSomething: a state on which a server has run is not imported over, and one that was refused is as good as new.
func TestImportOverSomething(t *testing.T) {
	t.Parallel()
	config := app.Config{Data: filepath.Join(t.TempDir(), "data"), Listen: "127.0.0.1:0"}
	if _, err := app.Export(t.Context(), config, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "there is no catalog in "+config.Data) {
		t.Errorf("an export of nothing: %v", err)
	}
	if _, err := app.ImportState(t.Context(), config, strings.NewReader("{}\n")); !errors.Is(err, dumpfile.ErrRefused) {
		t.Errorf("an import of something else: got error %v, want %v", err, dumpfile.ErrRefused)
	}
	a, err := app.New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	var dump bytes.Buffer
	if _, err := app.Export(t.Context(), config, &dump); err != nil {
		t.Fatal(err)
	}
	if _, err := app.ImportState(t.Context(), config, &dump); !errors.Is(err, dumpfile.ErrNotEmpty) {
		t.Errorf("got error %v, want %v", err, dumpfile.ErrNotEmpty)
	}
}
