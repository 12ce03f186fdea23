package catalog_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/check"
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

// TestLargePurgeTakesTurns: what is removed of a dropped table in one slice of time is no failure, and the next job goes on with it.
func TestLargePurgeTakesTurns(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	hasty := l.server(t, func(o *catalog.Options) { o.PurgeSlice = time.Nanosecond })
	tb := hasty.declare(t, "t")
	hasty.fill(t, tb, 1, 3)
	if _, err := hasty.DropTable(context.Background(), &api.DropTableRequest{Target: api.At("t")}); err != nil {
		t.Fatal(err)
	}
	var found []string
	if _, err := hasty.Check(context.Background(), check.Options{Report: func(f check.Finding) { found = append(found, string(f.Kind)+" "+f.What) }}); err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || !strings.HasPrefix(found[0], "purge ") || !strings.Contains(found[0], tb.location) {
		t.Errorf("a check finds %q, want a note that the table is being purged", found)
	}
	if n := hasty.runJobs(t, catalog.JobPurge); n != 1 {
		t.Errorf("%d jobs, want one", n)
	}
	if _, err := l.objects.Head(context.Background(), tb.final(1)); err != nil {
		t.Errorf("the first slice was too short for anything: %v", err)
	}
	patient := l.server(t)
	if n := patient.runJobs(t, catalog.JobPurge); n != 2 {
		t.Errorf("%d jobs, want the first, which the test does not remove, and the one that goes on", n)
	}
	l.holds(t, tb.final(1), nil)
	again := l.table("again", tb.dir[strings.LastIndexByte(tb.dir, '/')+1:])
	if _, err := patient.mixed(context.Background(), declareAt("again", again)); err != nil {
		t.Errorf("the place is not free after the purge: %v", err)
	}
}
