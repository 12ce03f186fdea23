package app_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/importer"
)

// TestImportNeedsAWholeAnswer: a program that is to read a directory catalog's table and prints nothing, or stops halfway, has not read a table
// without rows, though it ends well.
func TestImportNeedsAWholeAnswer(t *testing.T) {
	// Not in parallel: a program that was just written cannot be run while another test starts one, which inherits the open file for a moment.
	if runtime.GOOS == "windows" {
		t.Skip("programs are shell scripts here")
	}
	const a = `{"object_id": "a", "object_type": "table", "location": "a.lance"}`
	for name, c := range map[string]struct {
		prints string
		found  int
		says   string // of the error, "" for none
	}{
		"nothing":                  {"", 0, "without the line that ends it"},
		"a row alone":              {a, 0, "after 1 rows"},
		"another number of rows":   {a + "\n" + `{"rows": 2}`, 0, "says 2"},
		"something after the end":  {`{"rows": 0}` + "\n" + a, 0, "more after it"},
		"a table without rows":     {`{"rows": 0}`, 0, ""},
		"a table that has one row": {a + "\n" + `{"rows": 1}`, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lake, python := filepath.Join(dir, "lake"), filepath.Join(dir, "python")
			writeManifest(t, filepath.Join(lake, "__manifest"), 1)
			if err := os.WriteFile(python, []byte("#!/bin/sh\ncat <<'END'\n"+c.prints+"\nEND\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			sum, err := app.Import(t.Context(), app.Config{Data: filepath.Join(dir, "data"), Allow: []string{lake}},
				app.ImportOptions{Source: lake, Python: python, DryRun: true, Report: func(importer.Item) {}})
			if c.says == "" {
				if err != nil || sum.Found != c.found {
					t.Errorf("found %d, %v, want %d", sum.Found, err, c.found)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), python) {
				t.Errorf("error %v, want one that says %q and names %s", err, c.says, python)
			}
		})
	}
}
