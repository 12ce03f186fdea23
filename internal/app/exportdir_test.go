package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/importer"
	"github.com/lancerest/lancerest/internal/lance"
)

// TestExportOfANamespace: a listing is of one namespace, which must be there; of the tables of others only those below it are told. It is so from the
// state and from a server.
func TestExportOfANamespace(t *testing.T) {
	t.Parallel()
	config := app.Config{Data: filepath.Join(t.TempDir(), "data")}
	s := serve(t, config)
	for _, space := range [][]string{{"a"}, {"a", "b"}, {"c"}} {
		if _, err := s.CreateNamespace(t.Context(), &api.CreateNamespaceRequest{Target: api.At(space...)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range [][]string{{"t"}, {"a", "t"}, {"a", "b", "t"}, {"c", "t"}} {
		if _, err := s.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At(table...)}); err != nil {
			t.Fatal(err)
		}
	}
	const declared, deeper = "it has no data yet", "with --from "
	for _, uri := range []string{"", s.url} {
		for _, c := range []struct {
			from lance.NamespaceID
			want map[string]string
		}{
			{nil, map[string]string{"t": declared, "a/t": deeper + "a", "a/b/t": deeper + "a/b", "c/t": deeper + "c"}},
			{lance.NamespaceID{"a"}, map[string]string{"a/t": declared, "a/b/t": deeper + "a/b"}},
			{lance.NamespaceID{"a", "b"}, map[string]string{"a/b/t": declared}},
		} {
			got := map[string]string{}
			sum, err := app.ExportDir(t.Context(), config, app.ExportDirOptions{Target: t.TempDir(), From: c.from, URI: uri, Report: func(i importer.Item) {
				name := strings.Join(i.Path, "/")
				got[name] = i.Why
				if want := c.want[name]; strings.HasPrefix(i.Why, want) || strings.HasSuffix(i.Why, want) {
					got[name] = want
				}
			}})
			if diff := cmp.Diff(c.want, got); err != nil || sum.Found != len(c.want) || diff != "" {
				t.Errorf("from %q of %q: found %d, %v (-want +got):\n%s", c.from, uri, sum.Found, err, diff)
			}
		}
		for _, none := range []lance.NamespaceID{{"nix"}, {"a", "t"}, {"nix", "a"}} {
			target := filepath.Join(t.TempDir(), "out")
			_, err := app.ExportDir(t.Context(), config, app.ExportDirOptions{Target: target, From: none, URI: uri, Report: func(importer.Item) {}})
			if err == nil || !strings.Contains(err.Error(), "no namespace "+strings.Join(none, "/")) {
				t.Errorf("from %q of %q: %v, want that there is none", none, uri, err)
			}
			if _, err := os.Stat(target); !os.IsNotExist(err) {
				t.Errorf("from %q of %q: the directory was made", none, uri)
			}
		}
	}
}

// TestAddressOfAServer: an address that is no URL is refused with one that is, and not repeated.
func TestAddressOfAServer(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"127.0.0.1:2333", "me:hush@host", "hush://host", "http://%hush", "http://"} {
		config := app.Config{Data: t.TempDir()}
		_, imported := app.Import(t.Context(), config, app.ImportOptions{Source: t.TempDir(), URI: uri, Report: func(importer.Item) {}})
		_, exported := app.ExportDir(t.Context(), config, app.ExportDirOptions{Target: t.TempDir(), URI: uri, Report: func(importer.Item) {}})
		for _, err := range []error{imported, exported} {
			if err == nil || !strings.Contains(err.Error(), "http://127.0.0.1:2333") || strings.Contains(err.Error(), "hush") {
				t.Errorf("%q: %v, want a refusal that shows an address and does not repeat this one", uri, err)
			}
		}
	}
}

// TestPlacesThatAreNone: a source or a target that is meant for a URI or a home directory, and is neither, is no directory of that name.
func TestPlacesThatAreNone(t *testing.T) {
	t.Parallel()
	for place, want := range map[string]string{"s3:/x": "two slashes after s3:", "~/x": "in the place of ~"} {
		config := app.Config{Data: t.TempDir()}
		_, imported := app.Import(t.Context(), config, app.ImportOptions{Source: place, Report: func(importer.Item) {}})
		_, exported := app.ExportDir(t.Context(), config, app.ExportDirOptions{Target: place, Report: func(importer.Item) {}})
		for _, err := range []error{imported, exported} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want a refusal that says %q", place, err, want)
			}
		}
	}
}
