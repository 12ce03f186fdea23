package catalog_test

import (
	"context"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/store"
)

// A detached version that was attached is removed some time after; the version that it became stays, and so does one that nobody
// attached (C13).
func TestAttachedVersionIsRemovedLater(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := s.declare(t, "a")
	s.fill(t, a, 1, 1)
	for _, number := range []int64{-5, -6} {
		bytes := lancetest.Manifest(lancetest.Spec{Version: lance.VersionNumber(number), Read: 1})
		s.mustCreate(t, s.lake.stageBytes(t, a, lance.Main, number, bytes))
	}
	s.mustCreate(t, staged{table: a, StagedVersion: api.StagedVersion{Version: 2, ManifestPath: a.final(-5)}})
	var jobs []store.Job
	err := s.lake.state.View(context.Background(), func(r store.Reader) (err error) {
		jobs, err = r.Jobs(catalog.JobDropDetached, 0, 10)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != 1 {
		t.Fatalf("%d jobs, want 1", len(jobs))
	}
	// A storage that is away has nothing to remove, and the job must not count as done.
	marker := s.lake.root.Key() + "/" + catalog.Marker
	s.lake.remove(t, marker)
	if err := s.RunJob(context.Background(), jobs[0]); err == nil {
		t.Error("the job succeeds while the storage is away")
	}
	s.lake.put(t, marker, nil)
	for range 2 { // it may run again
		if err := s.RunJob(context.Background(), jobs[0]); err != nil {
			t.Fatal(err)
		}
	}
	describe := func(number int64) error {
		_, err := s.DescribeTableVersion(context.Background(), &api.DescribeTableVersionRequest{Target: api.At("a"), Version: &number})
		return err
	}
	if err := describe(-5); err == nil || api.CodeOf(err) != api.CodeTableVersionNotFound {
		t.Errorf("the attached version: %v, want code 11", err)
	}
	for _, number := range []int64{2, -6} {
		if err := describe(number); err != nil {
			t.Errorf("version %d: %v", number, err)
		}
	}
}
