package catalog_test

import (
	"context"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
)

// deleteOn deletes versions of a branch, from the first up to and without the last.
func (s *server) deleteOn(t testing.TB, name, branch string, first, end int64) {
	t.Helper()
	req := &api.BatchDeleteTableVersionsRequest{Target: api.At(name), Ranges: []api.VersionRange{{StartVersion: first, EndVersion: end}}}
	if branch != "" {
		req.Branch = &branch
	}
	if _, err := s.BatchDeleteTableVersions(context.Background(), req); err != nil {
		t.Fatal(err)
	}
}

// Manifests of deleted versions go some time after the answer. What stands there by then may be another's: only what was deleted goes.
func TestDeletionSparesABranchMadeAnew(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 3)
	fill := func() {
		t.Helper()
		s.mustCreate(t, s.lake.stageOn(t, tb, "b", 3))
		s.lake.register(t, tb, "b", 3)
		for v := int64(4); v <= 6; v++ {
			s.mustCreate(t, s.lake.stageOn(t, tb, "b", v))
		}
	}
	fill()
	s.deleteOn(t, "t", "b", 3, 5)
	s.lake.wipe(t, tb, "b")
	fill()
	if n := s.runJobs(t, catalog.JobDeleteManifests); n != 1 {
		t.Fatalf("%d jobs, want 1", n)
	}
	s.branched(t, tb, "b", 3, 4, 5, 6)
}

// A tag that is given to a version just as it is deleted brings it back.
func TestTagOnAVersionJustDeleted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 3)
	if _, err := s.CreateTableTag(context.Background(), &api.CreateTableTagRequest{Target: api.At("t"), Tag: "x", Version: 3}); err != nil {
		t.Fatal(err)
	}
	s.deleteOn(t, "t", "", 1, 3)
	// A client writes its tag straight to storage, and did not know of the deletion.
	s.lake.put(t, tb.dir+"/_refs/tags/late.json", []byte(`{"branch":null,"version":2,"manifestSize":436,"metadata":{}}`))
	s.runJobs(t, catalog.JobDeleteManifests)
	s.listed(t, tb, 2, 3)
}

// A batch that would delete the latest version is refused before anything of it is published.
func TestBatchThatDeletesItsOwnVersion(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 3)
	four := s.lake.stage(t, tb, 4)
	create := api.CommitTableOperation{CreateTableVersion: &api.CreateTableVersionRequest{Target: api.At("t"), StagedVersion: four.StagedVersion}}
	remove := api.CommitTableOperation{DeleteTableVersions: &api.BatchDeleteTableVersionsRequest{
		Target: api.At("t"), Ranges: []api.VersionRange{{StartVersion: 3, EndVersion: 5}},
	}}
	_, err := s.mixed(context.Background(), create, remove)
	wantCode(t, err, api.CodeInvalidTableState, "operations[1]", "version 4 is the latest")
	if n := s.told(catalog.EventAborted); n != 0 {
		t.Errorf("%d transactions were aborted, want none", n)
	}
	s.mustCreate(t, four)
	s.fill(t, tb, 5, 5)
	s.listed(t, tb, 1, 2, 3, 4, 5)
}
