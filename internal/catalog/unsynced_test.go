package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/check"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/store"
)

// damages are what a power failure may leave of a manifest.
func damages() []objtest.Damage { return []objtest.Damage{objtest.Gone, 0, 20} }

// lazyServer is a server that keeps manifests in the state until storage has synced them, and that storage.
func (l *lake) lazyServer(t tester) (*server, *objtest.Volatile) {
	t.Helper()
	var v *objtest.Volatile
	s := l.server(t, func(o *catalog.Options) {
		v = objtest.NewVolatile(o.Roots[0].Objects)
		o.Roots[0].Objects, o.KeepUnsynced = v, true
	})
	return s, v
}

// failPower kills a server and plays a power failure on its storage. It returns how many objects were damaged.
func (s *server) failPower(t tester, v *objtest.Volatile, damage objtest.Damage) int {
	t.Helper()
	s.kill()
	keys, err := v.FailPower(context.Background(), s.lake.objects, damage)
	if err != nil {
		t.Fatal(err)
	}
	return len(keys)
}

// restores fails the test unless RestoreUnsynced writes n manifests.
func (s *server) restores(t tester, n int) {
	t.Helper()
	got, err := s.RestoreUnsynced(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if got != n || s.told(catalog.EventRestored) != n {
		t.Errorf("%d manifests are restored and %d told, want %d", got, s.told(catalog.EventRestored), n)
	}
}

// kept returns how many manifests the state keeps.
func (l *lake) kept(t tester) int {
	t.Helper()
	n := 0
	err := l.state.View(context.Background(), func(r store.Reader) error {
		ids, err := r.UnsyncedIDs(0, 10_000)
		n = len(ids)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPowerFailureLosesNoManifest: what was acknowledged is whole again before anything is served, and once only (C6).
func TestPowerFailureLosesNoManifest(t *testing.T) {
	t.Parallel()
	for _, damage := range damages() {
		t.Run(fmt.Sprint(damage), func(t *testing.T) {
			t.Parallel()
			l := newLake(t)
			before, v := l.lazyServer(t)
			tables := []table{before.declare(t, "a"), before.declare(t, "b")}
			versions := []staged{l.stage(t, tables[0], 1), l.stage(t, tables[1], 1)}
			if _, err := before.batch(context.Background(), versions...); err != nil {
				t.Fatal(err)
			}
			if n := before.failPower(t, v, damage); n != 2 {
				t.Fatalf("%d objects are damaged, want 2: the test tests nothing", n)
			}
			after, v := l.lazyServer(t)
			after.restores(t, 2)
			for i, tb := range tables {
				after.shows(t, tb, 1, versions[i].data)
				after.listed(t, tb, 1)
			}
			if n := l.kept(t); n != 0 {
				t.Errorf("%d manifests are still kept", n)
			}
			if n := after.failPower(t, v, damage); n != 0 {
				t.Errorf("%d objects are damaged by a second failure, want none", n)
			}
			again, _ := l.lazyServer(t)
			again.restores(t, 0)
		})
	}
}

// TestPowerFailureAtEveryStep is TestDeathAtEveryStep with what the storage has not synced lost or damaged by the same stroke.
func TestPowerFailureAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, d := range deaths(t) {
		for _, damage := range damages() {
			t.Run(fmt.Sprintf("%s, damage %d", d.name, damage), func(t *testing.T) {
				t.Parallel()
				l := newLake(t)
				dying, v := l.lazyServer(t)
				tables := []table{dying.declare(t, "a"), dying.declare(t, "b")}
				versions := []staged{l.stage(t, tables[0], 1), l.stage(t, tables[1], 1)}
				struck := d.strike(dying)
				_, answer := dying.batch(context.Background(), versions...)
				within(t, "death", struck)
				dying.failPower(t, v, damage)

				s, _ := l.lazyServer(t)
				if _, err := s.RestoreUnsynced(context.Background()); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Recover(context.Background(), catalog.RecoverAll); err != nil {
					t.Fatal(err)
				}
				seen := 0
				for i, tb := range tables {
					if _, err := s.describe(context.Background(), tb, 1); err == nil {
						seen++
						s.shows(t, tb, 1, versions[i].data)
					}
				}
				if seen == 1 {
					t.Error("half of the batch is seen")
				}
				if answer == nil && seen == 0 {
					t.Error("the batch was acknowledged and is lost")
				}
				if _, err := s.batch(context.Background(), versions...); err != nil {
					t.Errorf("sent again: %v", err)
				}
				for i, tb := range tables {
					s.shows(t, tb, 1, versions[i].data)
					s.listed(t, tb, 1)
				}
			})
		}
	}
}

// TestClosingSyncs: after an orderly end the state keeps nothing and a power failure takes nothing.
func TestClosingSyncs(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s, v := l.lazyServer(t)
	s.restores(t, 0)
	s.fill(t, s.declare(t, "a"), 1, 3)
	if n := l.kept(t); n != 3 {
		t.Errorf("%d manifests are kept before the end, want 3", n)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := l.kept(t); n != 0 {
		t.Errorf("%d manifests are kept after the end", n)
	}
	if n := s.failPower(t, v, objtest.Gone); n != 0 {
		t.Errorf("%d objects are lost", n)
	}
}

// TestFailedSyncWritesAnew: the system tells once that a sync failed, and takes what was lost for synced from then on.
func TestFailedSyncWritesAnew(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s, v := l.lazyServer(t)
	s.restores(t, 0)
	tb := s.declare(t, "a")
	sv := l.stage(t, tb, 1)
	s.mustCreate(t, sv)
	v.BreakSync(errors.New("input/output error"))
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s.told(catalog.EventUnsynced) != 1 {
		t.Error("nobody is told of the failed sync")
	}
	if n := l.kept(t); n != 0 {
		t.Errorf("%d manifests are still kept", n)
	}
	if n := s.failPower(t, v, objtest.Gone); n != 0 {
		t.Errorf("%d objects are lost", n)
	}
	l.holds(t, tb.final(1), sv.data)
}

// TestLargeManifestsAreNotKept: beyond a size the state would cost more than the disk.
func TestLargeManifestsAreNotKept(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s, v := l.lazyServer(t)
	tb := s.declare(t, "a")
	data := lancetest.Manifest(lancetest.Spec{Version: 1, Mark: strings.Repeat("x", 64<<10)})
	sv := l.stageBytes(t, tb, lance.Main, 1, data)
	sv.Metadata = nil
	s.mustCreate(t, sv)
	if n := l.kept(t); n != 0 {
		t.Errorf("%d manifests are kept, want none", n)
	}
	if n := s.failPower(t, v, objtest.Gone); n != 0 {
		t.Errorf("%d objects are lost", n)
	}
}

// TestDeletedVersionsAreNotRestored: who deletes a version before it was synced does not get it back.
func TestDeletedVersionsAreNotRestored(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	before, v := l.lazyServer(t)
	tb := before.declare(t, "a")
	before.fill(t, tb, 1, 2)
	_, err := before.BatchDeleteTableVersions(context.Background(), &api.BatchDeleteTableVersionsRequest{
		Target: api.At(tb.id...), Ranges: []api.VersionRange{{StartVersion: 1, EndVersion: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	before.runJobs(t, catalog.JobDeleteManifests)
	before.failPower(t, v, objtest.Gone)
	after, _ := l.lazyServer(t)
	after.restores(t, 1)
	after.listed(t, tb, 2)
	l.holds(t, tb.final(1), nil)
}

// TestHelpedManifestsAreKept: whoever finishes the transaction of a server that died cannot know whether what that server put was synced.
func TestHelpedManifestsAreKept(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s, _ := l.lazyServer(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
	l.abandon(t, va, vb)
	s.shows(t, a, 1, va.data)
	s.shows(t, b, 1, vb.data)
	if n := l.kept(t); n != 2 {
		t.Errorf("%d manifests are kept, want the two of the finished transaction", n)
	}
}

// TestOnlyWhoSyncedLetsGo: a process that has not seen to what the state keeps, such as a check, changes nothing of that, and a check tells of it.
func TestOnlyWhoSyncedLetsGo(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	before, v := l.lazyServer(t)
	before.restores(t, 0)
	tb := before.declare(t, "a")
	before.fill(t, tb, 1, 3)
	before.failPower(t, v, objtest.Gone)
	checking := l.server(t)
	_, found := checking.check(t, check.Options{})
	missing := 0
	for _, f := range found {
		if f.Kind == check.Missing && strings.Contains(f.What, "the state keeps it") {
			missing++
		}
	}
	if missing != 3 {
		t.Errorf("%d manifests are said to be kept by the state, want 3: %+v", missing, found)
	}
	if err := checking.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	unrestored, _ := l.lazyServer(t)
	if err := unrestored.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := l.kept(t); n != 3 {
		t.Errorf("%d manifests are kept, want 3", n)
	}
	after, _ := l.lazyServer(t)
	after.restores(t, 3)
	after.listed(t, tb, 1, 2, 3)
}
