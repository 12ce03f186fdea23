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
)

// TestImportLinks: of a directory and symbolic links to it the directory is taken, whoever is first by name, and a dry run says the same; of links
// alone the first. What was taken under a link's name stays. Tables are told in the order of their names.
func TestImportLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lake, away := filepath.Join(dir, "lake"), filepath.Join(dir, "away")
	for _, name := range []string{"one.lance", "zwei.lance", "x/deep.lance"} {
		writeManifest(t, filepath.Join(lake, name), 1)
	}
	writeManifest(t, filepath.Join(away, "far.lance"), 1)
	for link, to := range map[string]string{
		"link.lance": "one.lance", "a.lance": "zwei.lance", "b.lance": "../away/far.lance", "c.lance": "../away/far.lance", "deep.lance": "x/deep.lance",
		"loop": ".", "inner.lance": "one.lance/_versions",
	} {
		if err := os.Symlink(to, filepath.Join(lake, link)); err != nil {
			t.Skip(err) // Windows asks for a right
		}
	}
	report := func(t *testing.T, c app.Config, o app.ImportOptions) (lines []string) {
		t.Helper()
		o.Source = lake
		o.Report = func(i importer.Item) {
			lines = append(lines, strings.TrimSuffix(strings.Join([]string{string(i.Status), strings.Join(i.Path, "/"), i.Why}, " "), " "))
		}
		if _, err := app.Import(t.Context(), c, o); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	const link, one = "its directory is a symbolic link to that of ", ": a table has one name"
	inner := "skipped inner it overlaps one, which was found too: the location file://" + lake + "/one.lance"
	for name, c := range map[string]struct {
		nested bool
		want   []string
	}{
		"flat": {false, []string{
			"skipped a " + link + "zwei" + one, "TAKEN b", "skipped c " + link + "b" + one, "TAKEN deep", inner, "skipped link " + link + "one" + one, "TAKEN one", "TAKEN zwei",
		}},
		"nested": {true, []string{
			"skipped a " + link + "zwei" + one, "TAKEN b", "skipped c " + link + "b" + one, "skipped deep " + link + "x/deep" + one, inner, "skipped link " + link + "one" + one,
			"TAKEN one", "TAKEN x/deep", "TAKEN zwei",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := app.Config{Data: filepath.Join(t.TempDir(), "data"), Allow: []string{lake, away}}
			for _, o := range []app.ImportOptions{{DryRun: true}, {}, {}} {
				taken := importer.Imported
				if o.DryRun {
					taken = importer.WouldImport
				}
				o.Nested = c.nested
				var want []string
				for _, line := range c.want {
					want = append(want, strings.Replace(line, "TAKEN", string(taken), 1))
				}
				got := report(t, config, o)
				for i := range got {
					got[i] = strings.Replace(got[i], string(importer.There), string(taken), 1)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("dry run %v (-want +got):\n%s", o.DryRun, diff)
				}
			}
		})
	}
}

// TestImportAdvice: what is said of a table that cannot be taken in helps, and does no harm: no root is advised that is all of this machine, and a
// name that no id can hold is another one once the table is registered under it.
func TestImportAdvice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lake := filepath.Join(dir, "lake")
	dollar := filepath.Join(lake, "dol$lar.lance")
	writeManifest(t, dollar, 1)
	if err := os.Symlink("/usr", filepath.Join(lake, "usr.lance")); err != nil {
		t.Skip(err) // Windows asks for a right
	}
	s := serve(t, app.Config{Data: filepath.Join(dir, "served"), Allow: []string{lake}})
	for _, o := range []app.ImportOptions{{DryRun: true}, {}, {URI: s.url}} {
		why := map[string]string{}
		o.Source, o.Report = lake, func(i importer.Item) { why[i.Path[0]] = i.Why }
		if _, err := app.Import(t.Context(), app.Config{Data: filepath.Join(dir, "data"), Allow: []string{lake}}, o); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(why["usr"], "--allow") || !strings.Contains(why["usr"], "none of the roots") && o.URI == "" {
			t.Errorf("of a directory of the system: %q", why["usr"])
		}
		if !strings.Contains(why["dol$lar"], "rename its directory, or register it under another name") || strings.Contains(why["dol$lar"], "delimiter") {
			t.Errorf("of a name with a dollar: %q", why["dol$lar"])
		}
	}
	if _, err := s.RegisterTable(t.Context(), &api.RegisterTableRequest{Target: api.At("dollar"), Location: dollar}); err != nil {
		t.Errorf("registered under another name: %v", err)
	}
}
