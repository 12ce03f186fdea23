package catalog_test

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore/local"
	"github.com/lancerest/lancerest/internal/store"
)

// declareAt declares a table at a place.
func (s *server) declareAt(name, location string) error {
	_, err := s.DeclareTable(context.Background(), &api.DeclareTableRequest{Target: api.At(name), Location: &location})
	return err
}

// registerAt registers a dataset.
func (s *server) registerAt(name, location string) error {
	_, err := s.RegisterTable(context.Background(), &api.RegisterTableRequest{Target: api.At(name), Location: location})
	return err
}

// spaceAt makes a namespace whose tables go to a place.
func (s *server) spaceAt(name, location string) error {
	_, err := s.CreateNamespace(context.Background(), &api.CreateNamespaceRequest{
		Target: api.At(name), Properties: map[string]string{catalog.LocationProperty: location},
	})
	return err
}

// TestNoTableHoldsTheState: the directory of the state is no place for a table, nor is one around it, unless a root inside of it is meant.
func TestNoTableHoldsTheState(t *testing.T) {
	t.Parallel()
	reserve := func(at func(root lance.Location) lance.Location) *server {
		return newServer(t, func(o *catalog.Options) { o.Reserved = []lance.Location{at(o.Roots[0].Location)} })
	}
	inside := reserve(func(root lance.Location) lance.Location {
		root.Path += "/a/state"
		return root
	})
	for _, location := range []string{"a", "a/state", "a//state/", "a/state/catalog.db", inside.lake.root.String() + "/%61/state/x"} {
		wantCode(t, inside.declareAt("t", location), api.CodeInvalidInput, "its own state")
		wantCode(t, inside.registerAt("t", location), api.CodeInvalidInput, "its own state")
	}
	wantCode(t, inside.spaceAt("n", "a/state/deep"), api.CodeInvalidInput, "its own state")
	for i, location := range []string{"a/stateless", "b"} {
		if err := inside.declareAt(string(rune('b'+i)), location); err != nil {
			t.Errorf("declare at %s: %v", location, err)
		}
	}
	if err := inside.spaceAt("n", "a"); err != nil {
		t.Errorf("tables beside the state: %v", err)
	}
	// The default: the root is a directory of the data directory.
	around := reserve(func(root lance.Location) lance.Location {
		root.Path = strings.TrimSuffix(path.Dir(root.Path), "/")
		return root
	})
	if err := around.declareAt("t", "anywhere"); err != nil {
		t.Errorf("declare in a root inside of the data directory: %v", err)
	}
	same := reserve(func(root lance.Location) lance.Location { return root })
	wantCode(t, same.declareAt("t", "catalog.db"), api.CodeInvalidInput, "its own state")
}

// TestDeclareOnOthersFiles: dropping the table would remove what was never its own.
func TestDeclareOnOthersFiles(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, key := range []string{"photos/2024/a.jpg", "mixed/_versions/x-1", "mixed/data/1.lance", "mixed/zoo", "nested/two.lance/_versions/1.manifest", "top/a.txt"} {
		s.lake.put(t, s.lake.root.Key()+"/"+key, []byte("x"))
	}
	for location, what := range map[string]string{"photos": "2024/a.jpg", "mixed": "zoo", "nested": "two.lance", "top": "a.txt"} {
		wantCode(t, s.declareAt("t", location), api.CodeInvalidInput, "not empty", what)
	}
	s.lake.put(t, s.lake.root.Key()+"/staged/_versions/x-1", []byte("x"))
	s.lake.put(t, s.lake.root.Key()+"/staged/data/1.lance", []byte("x"))
	s.lake.put(t, s.lake.root.Key()+"/staged/.lance-reserved", nil)
	for i, location := range []string{"staged", "empty"} {
		if err := s.declareAt(string(rune('a'+i)), location); err != nil {
			t.Errorf("declare at %s: %v", location, err)
		}
	}
}

// onDisk is a server whose tables lie in a directory.
func onDisk(t *testing.T) (*server, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := local.New(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := newLake(t)
	l.objects = objects
	if l.root, err = lance.ParseLocation(dir); err != nil {
		t.Fatal(err)
	}
	s := l.server(t, func(o *catalog.Options) { o.Roots[0].Objects = objects })
	return s, dir
}

// TestLinksAreNoSecondName: a place has one name, whatever symbolic links lead to it.
func TestLinksAreNoSecondName(t *testing.T) {
	t.Parallel()
	s, dir := onDisk(t)
	other := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "real", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "real", "out": other, "nowhere": "missing"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, location := range []string{"link", "link/deep", "link/new/deeper"} {
		wantCode(t, s.declareAt("t", location), api.CodeInvalidInput, "symbolic link", "real")
		wantCode(t, s.registerAt("t", location), api.CodeInvalidInput, "symbolic link")
		wantCode(t, s.spaceAt("n", location), api.CodeInvalidInput, "symbolic link")
	}
	for _, location := range []string{"out", "out/x"} {
		wantCode(t, s.declareAt("t", location), api.CodeInvalidInput, "symbolic link")
	}
	if err := s.declareAt("t", "nowhere/x"); err == nil {
		t.Error("a table is declared behind a link that leads nowhere")
	}
	if err := s.declareAt("t", "real/new"); err != nil {
		t.Errorf("declare without links: %v", err)
	}
}

// TestPurgeFollowsNoLink: a link that stands in the way of a dropped table's directory later on leads to what is another's.
func TestPurgeFollowsNoLink(t *testing.T) {
	t.Parallel()
	s, dir := onDisk(t)
	if err := s.declareAt("t", "a/t"); err != nil {
		t.Fatal(err)
	}
	keep := filepath.Join(dir, "b", "t", "data", "1.lance")
	if err := os.MkdirAll(filepath.Dir(keep), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keep, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DropTable(context.Background(), &api.DropTableRequest{Target: api.At("t")}); err != nil {
		t.Fatal(err)
	}
	_ = os.RemoveAll(filepath.Join(dir, "a"))
	if err := os.Symlink("b", filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	jobs := jobsOf(t, s, catalog.JobPurge)
	if len(jobs) != 1 {
		t.Fatalf("%d purges are queued, want 1", len(jobs))
	}
	if err := s.RunJob(context.Background(), jobs[0]); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("the purge ended with %v, want a refusal because of the link", err)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Errorf("another's file is gone: %v", err)
	}
}

func jobsOf(t *testing.T, s *server, kind string) []store.Job {
	t.Helper()
	var jobs []store.Job
	err := s.lake.state.View(context.Background(), func(r store.Reader) (err error) {
		jobs, err = r.Jobs(kind, 0, 10)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// TestAnotherCatalogOnTheRoot: whoever starts a second catalog over a root is told, and whoever goes on with the first one is not.
func TestAnotherCatalogOnTheRoot(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	first := l.server(t)
	again := l.server(t)
	other := newLake(t)
	other.objects, other.root = l.objects, l.root
	second := other.server(t)
	for name, c := range map[string]struct {
		s    *server
		want int
	}{"the first": {first, 0}, "the first again": {again, 0}, "another": {second, 1}} {
		if got := c.s.told(catalog.EventShared); got != c.want {
			t.Errorf("%s is told %d times that another catalog uses the root, want %d", name, got, c.want)
		}
	}
}
