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

// Whoever asks for the latest version gets what a writer published past the catalog (C9).
func TestVersionPastTheCatalogIsListed(t *testing.T) {
	t.Parallel()
	s := serve(t, app.Config{Data: filepath.Join(t.TempDir(), "data")})
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
	for v := lance.VersionNumber(2); v <= 3; v++ {
		key := lance.ManifestKey(loc.Key(), lance.Main, v, lance.SchemeV2)
		if err := os.WriteFile("/"+key, lancetest.Manifest(lancetest.Spec{Version: v}), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	one, newest := int64(1), true
	resp, err := s.ListTableVersions(ctx, &api.ListTableVersionsRequest{Target: api.At("a"), Page: api.Page{Limit: &one}, Descending: &newest})
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Versions) != 1 || resp.Versions[0].Version != 3 {
		t.Errorf("the latest is %v, want version 3", resp.Versions)
	}
	got, err := s.versions("a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{1, 2, 3}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}
