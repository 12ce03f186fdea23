package catalog_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// TestDetachedVersions holds rule C13: they are published and described by their number, and neither listed nor the head.
func TestDetachedVersions(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 1)
	const number = math.MinInt64 + 12345
	detached := s.lake.stage(t, tb, number)
	got := s.mustCreate(t, detached)
	if want := tb.dir + "/_versions/d9223372036854788153.manifest"; got.ManifestPath != want {
		t.Errorf("published as %s, want %s", got.ManifestPath, want)
	}
	s.mustCreate(t, detached) // a replay
	s.shows(t, tb, number, detached.data)
	s.listed(t, tb, 1)
	latest, err := s.DescribeTableVersion(context.Background(), &api.DescribeTableVersionRequest{Target: api.At("t")})
	if err != nil {
		t.Fatal(err)
	}
	if latest.Version.Version != 1 {
		t.Errorf("the latest version is %d", latest.Version.Version)
	}
	_, err = s.create(context.Background(), s.lake.stage(t, tb, number))
	wantCode(t, err, api.CodeConcurrentModification)
	s.fill(t, tb, 2, 2)
	s.listed(t, tb, 1, 2)
	// One that a bypassing writer published is found by its number.
	foreign := lancetest.Manifest(lancetest.Spec{Version: -77, Mark: "foreign"})
	s.lake.put(t, tb.final(-77), foreign)
	s.shows(t, tb, -77, foreign)
	s.listed(t, tb, 1, 2)
}

// TestAttach holds rule C14: a detached version becomes an ordinary one of its chain, with only its version changed.
func TestAttach(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	s.fill(t, a, 1, 1)
	s.fill(t, b, 1, 2)
	before := lancetest.Manifest(lancetest.Spec{Version: -5, Read: 1, Mark: "attached"})
	detached := s.lake.stageBytes(t, a, lance.Main, -5, before)
	s.mustCreate(t, detached)
	entry := staged{table: a, StagedVersion: api.StagedVersion{Version: 2, ManifestPath: a.final(-5)}}
	other := s.lake.stage(t, b, 3)
	first, err := s.batch(context.Background(), entry, other)
	if err != nil {
		t.Fatal(err)
	}
	after, err := lance.AttachVersion(before, 2)
	if err != nil {
		t.Fatal(err)
	}
	s.shows(t, a, 2, after)
	s.shows(t, a, -5, before)
	s.listed(t, a, 1, 2)
	again, err := s.batch(context.Background(), entry, other)
	if err != nil || *again.TransactionID != *first.TransactionID {
		t.Errorf("sent again: %v, error %v", again, err)
	}
}

// TestAttachOfRealManifests attaches what pylance wrote, and compares with what pylance was seen to read.
func TestAttachOfRealManifests(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, name := range []string{"append", "overwrite", "delete", "merge", "append_sr", "merge_sr"} {
		tb := s.declare(t, name)
		s.fill(t, tb, 1, 1)
		read := func(suffix string) []byte {
			data, err := os.ReadFile(filepath.Join("..", "lance", "testdata", "attach", name+".2."+suffix))
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
		before := read("before")
		m, err := lance.ReadManifest(before)
		if err != nil {
			t.Fatal(err)
		}
		s.lake.put(t, tb.final(int64(m.Version)), before)
		got := s.mustCreate(t, staged{table: tb, StagedVersion: api.StagedVersion{Version: 2, ManifestPath: tb.final(int64(m.Version))}})
		if want := read("after"); *got.ManifestSize != int64(len(want)) {
			t.Errorf("%s: published %d bytes, want %d", name, *got.ManifestSize, len(want))
		} else {
			s.shows(t, tb, 2, want)
		}
	}
}

// TestAttachRefuses refuses a detached version that was not made from the version before the one that it is to become, or that
// demands what cannot be carried over: nothing is published (C14).
func TestAttachRefuses(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 2)
	for number, tc := range map[int64]struct {
		spec lancetest.Spec
		code api.Code
	}{
		-5: {lancetest.Spec{Version: -5, Read: 1, Mark: "stale"}, api.CodeConcurrentModification},
		-6: {lancetest.Spec{Version: -6, Read: 2, Mark: "unknown feature", Flags: 1 << 40}, api.CodeInvalidTableState},
		-7: {lancetest.Spec{Version: -9, Read: 2, Mark: "another number"}, api.CodeInvalidInput},
	} {
		s.lake.put(t, tb.final(number), lancetest.Manifest(tc.spec))
		_, err := s.create(context.Background(), staged{table: tb, StagedVersion: api.StagedVersion{Version: 3, ManifestPath: tb.final(number)}})
		wantCode(t, err, tc.code, "version 3")
		s.lake.holds(t, tb.final(3), nil)
	}
	s.listed(t, tb, 1, 2)
}

// TestAttachIsFinishedByAHelper leaves an attach pending: a helper makes the same bytes from the detached manifest (C7, C14).
func TestAttachIsFinishedByAHelper(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s := l.server(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 1)
	before := lancetest.Manifest(lancetest.Spec{Version: -5, Read: 1, Mark: "attached"})
	l.put(t, tb.final(-5), before)
	l.abandon(t, staged{table: tb, StagedVersion: api.StagedVersion{Version: 2, ManifestPath: tb.final(-5)}})
	after, err := lance.AttachVersion(before, 2)
	if err != nil {
		t.Fatal(err)
	}
	s.shows(t, tb, 2, after)
}

// TestDeleteVersions holds the rules of deleting: ranges end before their end, absent versions do not count, the head and what tags
// refer to stay, and a number is never given again.
func TestDeleteVersions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 6)
	remove := func(ranges ...api.VersionRange) (int64, error) {
		resp, err := s.BatchDeleteTableVersions(ctx, &api.BatchDeleteTableVersionsRequest{Target: api.At("t"), Ranges: ranges})
		if err != nil {
			return 0, err
		}
		return *resp.DeletedCount, nil
	}
	_, err := remove(api.VersionRange{StartVersion: 1, EndVersion: -1})
	wantCode(t, err, api.CodeInvalidTableState, "6")
	_, err = remove(api.VersionRange{StartVersion: 1, EndVersion: 3}, api.VersionRange{StartVersion: 6, EndVersion: 7})
	wantCode(t, err, api.CodeInvalidTableState)
	s.listed(t, tb, 1, 2, 3, 4, 5, 6)
	if _, err := s.CreateTableTag(ctx, &api.CreateTableTagRequest{Target: api.At("t"), Tag: "keep", Version: 2}); err != nil {
		t.Fatal(err)
	}
	_, err = remove(api.VersionRange{StartVersion: 1, EndVersion: 4})
	wantCode(t, err, api.CodeInvalidTableState, "keep")
	n, err := remove(api.VersionRange{StartVersion: 3, EndVersion: 5}, api.VersionRange{StartVersion: 4, EndVersion: 6})
	if err != nil || n != 3 {
		t.Errorf("%d versions deleted, error %v; want 3", n, err)
	}
	s.listed(t, tb, 1, 2, 6)
	// Their objects go later. Nobody is shown them meanwhile, and they are not adopted again.
	_, err = s.describe(ctx, tb, 4)
	wantCode(t, err, api.CodeTableVersionNotFound)
	if n := s.runJobs(t, catalog.JobDeleteManifests); n == 0 {
		t.Error("no job was queued")
	}
	s.lake.holds(t, tb.final(4), nil)
	_, err = s.create(ctx, s.lake.stage(t, tb, 4))
	wantCode(t, err, api.CodeConcurrentModification)
	n, err = remove(api.VersionRange{StartVersion: 3, EndVersion: 6})
	if err != nil || n != 0 {
		t.Errorf("deleting again: %d, error %v", n, err)
	}
	s.fill(t, tb, 7, 7)
	s.listed(t, tb, 1, 2, 6, 7)
}

// TestDescribeComparesTheObject describes an old version whose object a client's cleanup removed and in whose place a late put of an
// aborted transaction landed: what is there is not the version (C10).
func TestDescribeComparesTheObject(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	x := s.beat(t)
	s.fill(t, x.a, 1, 1)
	_, err := s.create(context.Background(), s.lake.stage(t, x.a, 2)) // an echo takes it
	wantCode(t, err, api.CodeConcurrentModification)
	s.lake.remove(t, x.a.final(1))
	s.lake.put(t, x.a.final(1), x.va.data)
	_, err = s.describe(context.Background(), x.a, 1)
	wantCode(t, err, api.CodeTableVersionNotFound)
	s.listed(t, x.a, 2)
}

// TestListWhileTransactionsEnd lists versions in pages while the head is pending: what a page shows is committed.
func TestListWhileTransactionsEnd(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 4)
	sv := s.lake.stage(t, tb, 5)
	gate := s.objects.Hold(putOf(tb.final(5)), objtest.Before)
	answer := async(func() error { _, err := s.create(context.Background(), sv); return err })
	within(t, "put", gate.Reached())
	limit := int64(3)
	first, err := s.ListTableVersions(context.Background(), &api.ListTableVersionsRequest{Target: api.At("t"), Page: api.Page{Limit: &limit}})
	if err != nil {
		t.Fatal(err)
	}
	rest := async(func() *api.ListTableVersionsResponse {
		second, err := s.ListTableVersions(context.Background(), &api.ListTableVersionsRequest{
			Target: api.At("t"), Page: api.Page{Limit: &limit, PageToken: first.PageToken},
		})
		if err != nil {
			t.Error(err)
		}
		return second
	})
	gate.Release()
	if err := within(t, "create", answer); err != nil {
		t.Fatal(err)
	}
	second := within(t, "the second page", rest)
	if len(first.Versions) != 3 || len(second.Versions) != 2 || second.Versions[1].Version != 5 {
		t.Errorf("pages %+v and %+v", first.Versions, second.Versions)
	}
	s.lake.holds(t, tb.final(5), sv.data)
}
