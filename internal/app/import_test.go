package app_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/importer"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore/s3/s3test"
)

// taken imports and returns what was reported of each table.
func taken(t *testing.T, c app.Config, o app.ImportOptions) map[string]importer.Status {
	t.Helper()
	got := map[string]importer.Status{}
	o.Report = func(i importer.Item) {
		got[strings.Join(i.Path, "/")] = i.Status
		if i.Status == importer.Failed {
			t.Errorf("%v at %s failed: %s", i.Path, i.Location, i.Why)
		}
	}
	sum, err := app.Import(t.Context(), c, o)
	if err != nil || sum.Found != len(got) {
		t.Fatalf("Import = %+v, %v, with %d tables reported", sum, err, len(got))
	}
	return got
}

// TestImportFromABucket: datasets below a prefix of an object store are found by listings of directories, and taken in where they lie; a dry run
// puts nothing there.
func TestImportFromABucket(t *testing.T) {
	t.Parallel()
	b := newBucket(t, s3test.Start(t))
	put := func(key string, data []byte) {
		t.Helper()
		if _, err := b.objects.PutIfAbsent(t.Context(), b.root.Key()+"/lake/"+key, data); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"a.lance", "x/b.lance", "x/y/c"} {
		for v := lance.VersionNumber(1); v <= 2; v++ {
			put(lance.ManifestKey(dir, lance.Main, v, lance.SchemeV2), lancetest.Manifest(lancetest.Spec{Version: v}))
		}
	}
	put("planned.lance/.lance-reserved", []byte("reserved"))
	put("notes/readme.txt", []byte("no table"))
	source := b.root.String() + "/lake"
	before := keysBelow(t, b)
	if diff := cmp.Diff(map[string]importer.Status{"a": importer.WouldImport, "planned": importer.WouldDecl}, taken(t, b.config, app.ImportOptions{Source: source, DryRun: true})); diff != "" {
		t.Errorf("a dry run (-want +got):\n%s", diff)
	}
	if after := keysBelow(t, b); !slices.Equal(before, after) {
		t.Errorf("a dry run changed the bucket: %q, then %q", before, after)
	}
	want := map[string]importer.Status{"n/a": importer.Imported, "n/planned": importer.Declared, "n/x/b": importer.Imported, "n/x/y/c": importer.Imported}
	nested := app.ImportOptions{Source: source, Nested: true, Into: lance.NamespaceID{"n"}}
	if diff := cmp.Diff(want, taken(t, b.config, nested)); diff != "" {
		t.Errorf("the import (-want +got):\n%s", diff)
	}
	for name := range want {
		want[name] = importer.There
	}
	if diff := cmp.Diff(want, taken(t, b.config, nested)); diff != "" {
		t.Errorf("the import again (-want +got):\n%s", diff)
	}
	c := serve(t, b.config)
	resp, err := c.ListTableVersions(context.Background(), &api.ListTableVersionsRequest{Target: api.At("n", "x", "y", "c")})
	if err != nil || len(resp.Versions) != 2 {
		t.Errorf("its versions: %+v, %v, want 2", resp, err)
	}
}

// keysBelow lists what a root holds, but what a server puts there when it begins.
func keysBelow(t *testing.T, b *bucket) []string {
	t.Helper()
	var keys []string
	for info, err := range b.objects.List(t.Context(), b.root.Key()+"/", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// writeManifest puts a version into a dataset's directory, as a writer does that knows no catalog.
func writeManifest(t *testing.T, dir string, v lance.VersionNumber) {
	t.Helper()
	file := filepath.FromSlash("/" + lance.ManifestKey(strings.TrimPrefix(filepath.ToSlash(dir), "/"), lance.Main, v, lance.SchemeV2))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, lancetest.Manifest(lancetest.Spec{Version: v}), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestImportUnmanaged: tables can be imported as ones whose versions stay storage's.
func TestImportUnmanaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := app.Config{Data: filepath.Join(dir, "data"), Allow: []string{filepath.Join(dir, "lake")}, Listen: "127.0.0.1:0"}
	writeManifest(t, filepath.Join(dir, "lake", "t.lance"), 1)
	if diff := cmp.Diff(map[string]importer.Status{"t": importer.Imported}, taken(t, c, app.ImportOptions{Source: filepath.Join(dir, "lake"), Unmanaged: true})); diff != "" {
		t.Errorf("the import (-want +got):\n%s", diff)
	}
	s := serve(t, c)
	resp, err := s.DescribeTable(t.Context(), &api.DescribeTableRequest{Target: api.At("t")})
	if err != nil || *resp.ManagedVersioning {
		t.Errorf("the table: %+v, %v, want one that is not managed", resp, err)
	}
	writeManifest(t, filepath.Join(dir, "lake", "t.lance"), 2)
	got, err := s.versions("t")
	if diff := cmp.Diff([]int64{1, 2}, got); err != nil || diff != "" {
		t.Errorf("its versions: %v (-want +got):\n%s", err, diff)
	}
}

// TestReconcileInTheBackground: what a writer and a cleanup did past the catalog is in its rows a while after somebody asked about the table.
func TestReconcileInTheBackground(t *testing.T) {
	t.Parallel()
	c := app.Config{Data: filepath.Join(t.TempDir(), "data"), Listen: "127.0.0.1:0", Reconcile: time.Millisecond}
	s := serve(t, c)
	declared, err := s.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At("a")})
	if err != nil {
		t.Fatal(err)
	}
	s.commit(t, "a", 1)
	loc, err := lance.ParseLocation(*declared.Location)
	if err != nil {
		t.Fatal(err)
	}
	writeManifest(t, loc.Path, 2)
	for {
		if _, text := get(t, s.url+"/metrics"); strings.Contains(text, "\nlancerest_adoptions_total 1\n") {
			break
		}
		if err := s.TableExists(t.Context(), &api.TableExistsRequest{Target: api.At("a")}); err != nil {
			t.Fatal(err)
		}
	}
}
