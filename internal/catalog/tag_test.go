package catalog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/check"
	"github.com/lancerest/lancerest/internal/lance"
)

// TestOneOfManyMakesATag lets 32 callers of two servers make one tag at once, each on a version of its own: one succeeds, the others learn that
// the name is taken, and the tag names the winner's version.
func TestOneOfManyMakesATag(t *testing.T) {
	t.Parallel()
	const callers = 32
	first := newServer(t)
	second := first.lake.server(t)
	tb := first.declare(t, "t")
	first.fill(t, tb, 1, callers)
	errs := make([]error, callers)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range callers {
		s := first
		if i%2 == 1 {
			s = second
		}
		wg.Go(func() {
			<-start
			_, errs[i] = s.CreateTableTag(context.Background(), &api.CreateTableTagRequest{Target: api.At("t"), Tag: "release", Version: int64(i + 1)})
		})
	}
	close(start)
	wg.Wait()
	winner := int64(0)
	for i, err := range errs {
		if err == nil {
			if winner != 0 {
				t.Errorf("callers %d and %d both made the tag", winner, i+1)
			}
			winner = int64(i + 1)
			continue
		}
		wantCode(t, err, api.CodeTableTagAlreadyExists, "release")
	}
	got, err := second.GetTableTagVersion(context.Background(), &api.GetTableTagVersionRequest{Target: api.At("t"), Tag: "release"})
	if err != nil || got.Version != winner || winner == 0 {
		t.Errorf("the tag names version %v, error %v; caller %d succeeded", got, err, winner)
	}
}

// TestOneOfManyMovesATag lets 32 callers move one tag at once: it ends where one that succeeded put it.
func TestOneOfManyMovesATag(t *testing.T) {
	t.Parallel()
	const callers = 32
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, callers)
	ctx := context.Background()
	if _, err := s.CreateTableTag(ctx, &api.CreateTableTagRequest{Target: api.At("t"), Tag: "x", Version: 1}); err != nil {
		t.Fatal(err)
	}
	moved := make([]bool, callers+1)
	var wg sync.WaitGroup
	for v := int64(1); v <= callers; v++ {
		wg.Go(func() {
			_, err := s.UpdateTableTag(ctx, &api.UpdateTableTagRequest{Target: api.At("t"), Tag: "x", Version: v})
			if moved[v] = err == nil; err != nil && api.CodeOf(err) != api.CodeConcurrentModification {
				t.Errorf("moving to %d: %v", v, err)
			}
		})
	}
	wg.Wait()
	got, err := s.GetTableTagVersion(ctx, &api.GetTableTagVersionRequest{Target: api.At("t"), Tag: "x"})
	if err != nil || !moved[got.Version] {
		t.Errorf("the tag names version %v, error %v; moved: %v", got, err, moved)
	}
}

// TestReferencesKeepVersions: a deletion is refused with the names of what needs the versions, and the check counts them.
func TestReferencesKeepVersions(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 9)
	ctx := context.Background()
	s.mustCreate(t, s.lake.stageOn(t, tb, "dev", 3))
	s.lake.register(t, tb, "dev", 3)
	s.mustCreate(t, s.lake.stageOn(t, tb, "dev", 4))
	dev := "dev"
	for tag, at := range map[string]api.CreateTableTagRequest{"v1": {Version: 1}, "one": {Version: 1}, "on-dev": {Version: 3, Branch: &dev}, "last": {Version: 9}} {
		at.Target, at.Tag = api.At("t"), tag
		if _, err := s.CreateTableTag(ctx, &at); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(branch *string, from, to int64) error {
		_, err := s.BatchDeleteTableVersions(ctx, &api.BatchDeleteTableVersionsRequest{
			Target: api.At("t"), Branch: branch, Ranges: []api.VersionRange{{StartVersion: from, EndVersion: to}},
		})
		return err
	}
	wantCode(t, remove(nil, 1, 3), api.CodeInvalidTableState, "tag one", "tag v1")
	wantCode(t, remove(nil, 2, 5), api.CodeInvalidTableState, "branch dev")
	wantCode(t, remove(&dev, 1, 4), api.CodeInvalidTableState, "tag on-dev")
	if err := remove(nil, 4, 9); err != nil {
		t.Error(err)
	}
	s.listed(t, tb, 1, 2, 3, 9)
	s.runJobs(t, catalog.JobDeleteManifests)
	sum, found := s.check(t, check.Options{StagedAge: never})
	want := check.Summary{Tables: 1, Versions: sum.Versions, Tags: 4, Branches: 1, Pinned: 4}
	if diff := cmp.Diff(want, sum); diff != "" || len(found) != 0 {
		t.Errorf("check (-want +got), with findings %v:\n%s", found, diff)
	}
	// What is free of references goes.
	for _, tag := range []string{"v1", "one"} {
		wantCode(t, remove(nil, 1, 2), api.CodeInvalidTableState, "tag "+tag)
		if _, err := s.DeleteTableTag(ctx, &api.DeleteTableTagRequest{Target: api.At("t"), Tag: tag}); err != nil {
			t.Fatal(err)
		}
		if tag == "v1" {
			if err := remove(nil, 1, 2); err == nil || api.CodeOf(err) != api.CodeInvalidTableState {
				t.Errorf("with tag one left: %v", err)
			}
		}
	}
	if err := remove(nil, 1, 2); err != nil {
		t.Error(err)
	}
	s.listed(t, tb, 2, 3, 9)
}

// TestTagNames: names that Lance takes, and those that it does not.
func TestTagNames(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 1)
	ctx := context.Background()
	for _, name := range []string{"v1", "1.0.0-rc_2", "UPPER", "a"} {
		if _, err := s.CreateTableTag(ctx, &api.CreateTableTagRequest{Target: api.At("t"), Tag: name, Version: 1}); err != nil {
			t.Errorf("tag %q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", ".a", "a.", "a..b", "a.lock", "a/b", "a b", "é", "a\x00"} {
		_, err := s.CreateTableTag(ctx, &api.CreateTableTagRequest{Target: api.At("t"), Tag: name, Version: 1})
		wantCode(t, err, api.CodeInvalidInput)
	}
	for _, key := range []string{lance.TagKey(tb.dir, "v1"), lance.TagKey(tb.dir, "UPPER")} {
		if _, err := s.lake.objects.Head(ctx, key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, version := range []int64{0, -1, 2} {
		_, err := s.CreateTableTag(ctx, &api.CreateTableTagRequest{Target: api.At("t"), Tag: fmt.Sprintf("n%d", version), Version: version})
		if code := api.CodeOf(err); code != api.CodeInvalidInput && code != api.CodeTableVersionNotFound {
			t.Errorf("a tag on version %d: %v", version, err)
		}
	}
}
