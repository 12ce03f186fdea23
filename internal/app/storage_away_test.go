package app_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/client"
	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/check"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
)

// running is a server in this process, with a client of it.
type running struct {
	*client.Client
	url  string
	stop func()
}

// serve runs a server until the test ends or stop is called.
func serve(t *testing.T, config app.Config) running {
	t.Helper()
	config.Listen = "127.0.0.1:0"
	ctx, cancel := context.WithCancel(context.Background())
	a, err := app.New(ctx, config)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return running{Client: client.New(a.URL(), client.Options{}), url: a.URL(), stop: stop}
}

// commit stages and commits one version of a table.
func (r running) commit(t *testing.T, table string, v int64) {
	t.Helper()
	req := &api.CreateTableVersionRequest{Target: api.At(table), StagedVersion: r.stage(t, table, v)}
	if _, err := r.CreateTableVersion(context.Background(), req); err != nil {
		t.Fatal(err)
	}
}

// stage stages one version of a table, and returns what asks for its commit.
func (r running) stage(t *testing.T, table string, v int64) api.StagedVersion {
	t.Helper()
	described, err := r.DescribeTable(context.Background(), &api.DescribeTableRequest{Target: api.At(table)})
	if err != nil {
		t.Fatal(err)
	}
	loc, err := lance.ParseLocation(*described.Location)
	if err != nil {
		t.Fatal(err)
	}
	key := lance.ManifestKey(loc.Key(), lance.Main, lance.VersionNumber(v), lance.SchemeV2) + "-staged"
	if err := os.MkdirAll(filepath.Dir("/"+key), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/"+key, lancetest.Manifest(lancetest.Spec{Version: lance.VersionNumber(v)}), 0o644); err != nil {
		t.Fatal(err)
	}
	return api.StagedVersion{Version: v, ManifestPath: key}
}

// versions lists the numbers of a table's versions.
func (r running) versions(table string) ([]int64, error) {
	resp, err := r.ListTableVersions(context.Background(), &api.ListTableVersionsRequest{Target: api.At(table)})
	if err != nil {
		return nil, err
	}
	var numbers []int64
	for _, v := range resp.Versions {
		numbers = append(numbers, v.Version)
	}
	return numbers, nil
}

// A volume that is away makes every file look absent. Nothing may be concluded from that (case C4).
func TestStorageThatIsAwayIsNoAbsence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := filepath.Join(dir, "volume")
	s := serve(t, app.Config{Data: filepath.Join(dir, "data"), Root: root})
	ctx := context.Background()
	for _, table := range []string{"a", "dropped"} {
		if _, err := s.DeclareTable(ctx, &api.DeclareTableRequest{Target: api.At(table)}); err != nil {
			t.Fatal(err)
		}
	}
	for v := range int64(3) {
		s.commit(t, "a", v+1)
	}
	s.commit(t, "dropped", 1)
	if _, err := s.CreateTableTag(ctx, &api.CreateTableTagRequest{Target: api.At("a"), Tag: "x", Version: 1}); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(root, root+"-away"); err != nil {
		t.Fatal(err)
	}
	one := int64(1)
	nine := int64(9)
	for name, call := range map[string]func() error{
		"list of versions": func() error { _, err := s.versions("a"); return err },
		"old version": func() error {
			_, err := s.DescribeTableVersion(ctx, &api.DescribeTableVersionRequest{Target: api.At("a"), Version: &one})
			return err
		},
		"unknown version": func() error {
			_, err := s.DescribeTableVersion(ctx, &api.DescribeTableVersionRequest{Target: api.At("a"), Version: &nine})
			return err
		},
		"tags": func() error {
			_, err := s.ListTableTags(ctx, &api.ListTableTagsRequest{Target: api.At("a")})
			return err
		},
		"tag": func() error {
			_, err := s.GetTableTagVersion(ctx, &api.GetTableTagVersionRequest{Target: api.At("a"), Tag: "x"})
			return err
		},
		"branches": func() error {
			_, err := s.ListTableBranches(ctx, &api.ListTableBranchesRequest{Target: api.At("a")})
			return err
		},
		"branch": func() error {
			b := "b"
			_, err := s.ListTableVersions(ctx, &api.ListTableVersionsRequest{Target: api.At("a"), Branch: &b})
			return err
		},
	} {
		if err := call(); err == nil || api.CodeOf(err) != api.CodeServiceUnavailable {
			t.Errorf("%s: got %v, want code 17", name, err)
		}
	}
	if _, err := s.DropTable(ctx, &api.DropTableRequest{Target: api.At("dropped")}); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(root+"-away", root); err != nil {
		t.Fatal(err)
	}
	got, err := s.versions("a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{1, 2, 3}, got); diff != "" {
		t.Errorf("versions once the storage was back (-want +got):\n%s", diff)
	}
	waitForPurge(t, root)
}

// waitForPurge waits until one table's directory is left.
func waitForPurge(t *testing.T, root string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		tables, err := filepath.Glob(filepath.Join(root, "*.lance"))
		if err != nil {
			t.Fatal(err)
		}
		if len(tables) == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the dropped table was not purged after the storage came back: %v", tables)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestRootWithoutItsMarker: where only the marker of a root is lost, the refusal says what mends it, and it does.
func TestRootWithoutItsMarker(t *testing.T) {
	t.Parallel()
	config := app.Config{Data: filepath.Join(t.TempDir(), "data"), Listen: "127.0.0.1:0"}
	serve(t, config).stop()
	marker := filepath.Join(config.Data, "tables", catalog.Marker)
	if err := os.Remove(marker); err != nil {
		t.Fatal(err)
	}
	_, err := app.New(t.Context(), config)
	if err == nil || !strings.Contains(err.Error(), "put an empty file at file://"+filepath.ToSlash(marker)) {
		t.Errorf("without the marker: %v, want an error that says what to put where", err)
	}
	if err := os.WriteFile(marker, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	serve(t, config)
}

// A server does not begin on a root that is not there, nor forget one that holds tables.
func TestRootThatIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := app.Config{Data: filepath.Join(dir, "data"), Root: filepath.Join(dir, "volume")}
	s := serve(t, config)
	if _, err := s.DeclareTable(context.Background(), &api.DeclareTableRequest{Target: api.At("a")}); err != nil {
		t.Fatal(err)
	}
	s.stop()
	refused := func(what string, config app.Config, want string) {
		t.Helper()
		a, err := app.New(context.Background(), config)
		if err == nil {
			t.Fatalf("%s: the server began: %v", what, a.Close())
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", what, err, want)
		}
	}
	config.Listen = "127.0.0.1:0"
	other := config
	other.Root = filepath.Join(dir, "other")
	refused("another root", other, "allow it beside the new one")
	other.Allow = []string{config.Root}
	serve(t, other).stop()
	if err := os.Rename(config.Root, config.Root+"-away"); err != nil {
		t.Fatal(err)
	}
	refused("missing root", config, "is the volume mounted")
	if _, err := app.Check(context.Background(), config, check.Options{Report: func(check.Finding) {}}); err == nil {
		t.Error("a check of a catalog whose root is missing succeeds")
	}
	config.Root = "hdfs://host/tables"
	refused("a scheme that nothing serves", config, "no store here serves")
}
