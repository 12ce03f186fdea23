package app_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
)

// Something under the next final name that is no file is named, and wedges nothing (case C5).
func TestDirectoryUnderTheFinalName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, app.Config{Data: filepath.Join(dir, "data")})
	ctx := context.Background()
	declared, err := s.DeclareTable(ctx, &api.DeclareTableRequest{Target: api.At("a")})
	if err != nil {
		t.Fatal(err)
	}
	s.commit(t, "a", 1)
	loc, err := lance.ParseLocation(*declared.Location)
	if err != nil {
		t.Fatal(err)
	}
	final := lance.ManifestKey(loc.Key(), lance.Main, 2, lance.SchemeV2)
	if err := os.Mkdir("/"+final, 0o755); err != nil {
		t.Fatal(err)
	}
	staged := final + "-staged"
	if err := os.WriteFile("/"+staged, lancetest.Manifest(lancetest.Spec{Version: 2}), 0o644); err != nil {
		t.Fatal(err)
	}
	create := func() error {
		_, err := s.CreateTableVersion(ctx, &api.CreateTableVersionRequest{Target: api.At("a"), StagedVersion: api.StagedVersion{Version: 2, ManifestPath: staged}})
		return err
	}
	if err := create(); err == nil || api.CodeOf(err) != api.CodeInvalidTableState {
		t.Errorf("got %v, want code 19", err)
	}
	got, err := s.versions("a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{1}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}
