package catalog_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/store"
)

// rows returns the states of the versions of a table that have rows, without any look at storage.
func (l *lake) rows(t *testing.T, s *server, tb table, last int64) map[int64]lance.VersionState {
	t.Helper()
	states := map[int64]lance.VersionState{}
	err := s.state.View(t.Context(), func(r store.Reader) error {
		clear(states)
		tables, err := r.Tables([]lance.TableID{tb.id})
		if err != nil {
			return err
		}
		for v := int64(1); v <= last; v++ {
			rows, err := r.Versions([]lance.Slot{{Chain: lance.Chain{Table: tables[0].ID}, Number: lance.VersionNumber(v)}})
			if err != nil {
				return err
			}
			if rows[0].Number != 0 {
				states[v] = rows[0].State
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return states
}

// listings counts the listings that the server has made.
func (s *server) listings() int {
	n := 0
	for _, call := range s.objects.Calls() {
		if call.Op == objtest.OpList {
			n++
		}
	}
	return n
}

// mustExist asks about a table, which is then in use.
func (s *server) mustExist(t *testing.T, tb table) {
	t.Helper()
	if _, err := s.TableExists(t.Context(), &api.TableExistsRequest{Target: api.At(tb.id...)}); err != nil {
		t.Fatal(err)
	}
}

// TestReconcile: what writers and a cleanup did past the catalog is in the rows after a pass, at one listing for each table in use, and the tables
// that nobody asked about cost nothing.
func TestReconcile(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	used, idle := s.declare(t, "used"), s.declare(t, "idle")
	for _, tb := range []table{used, idle} {
		s.fill(t, tb, 1, 4)
	}
	if n, err := s.Reconcile(t.Context()); n != 2 || err != nil {
		t.Fatalf("the first pass: %d tables, %v; want both, which were written to", n, err)
	}
	if n, err := s.Reconcile(t.Context()); n != 0 || err != nil {
		t.Fatalf("a pass after it: %d tables, %v; want none", n, err)
	}
	for _, tb := range []table{used, idle} {
		s.lake.remove(t, tb.final(2))
		s.lake.bypass(t, tb, 5)
		s.lake.bypass(t, tb, 7)
	}
	s.mustExist(t, used)
	before := s.listings()
	if n, err := s.Reconcile(t.Context()); n != 1 || err != nil {
		t.Fatalf("a pass: %d tables, %v; want the one in use", n, err)
	}
	if n := s.listings() - before; n != 1 {
		t.Errorf("the pass made %d listings, want 1", n)
	}
	const committed, pruned = lance.VersionCommitted, lance.VersionPruned
	want := map[int64]lance.VersionState{1: committed, 2: pruned, 3: committed, 4: committed, 5: committed, 7: committed}
	if diff := cmp.Diff(want, s.lake.rows(t, s, used, 8)); diff != "" {
		t.Errorf("rows of the table in use (-want +got):\n%s", diff)
	}
	want = map[int64]lance.VersionState{1: committed, 2: committed, 3: committed, 4: committed}
	if diff := cmp.Diff(want, s.lake.rows(t, s, idle, 8)); diff != "" {
		t.Errorf("rows of the other table (-want +got):\n%s", diff)
	}
	counters := s.Counters()
	if counters.Adoptions.Load() != 2 || counters.Pruned.Load() != 1 || counters.Reconciled.Load() != 3 || counters.Unreconciled.Load() != 0 {
		t.Errorf("counted %d adoptions, %d pruned, %d tables and %d errors; want 2, 1, 3 and 0", counters.Adoptions.Load(), counters.Pruned.Load(), counters.Reconciled.Load(), counters.Unreconciled.Load())
	}
}

// TestReconcileOnTwoServers: servers that do it at the same time come to the same rows.
func TestReconcileOnTwoServers(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	servers := []*server{l.server(t), l.server(t)}
	tb := servers[0].declare(t, "t")
	servers[0].fill(t, tb, 1, 3)
	servers[0].lake.remove(t, tb.final(1))
	l.bypass(t, tb, 4)
	var done []<-chan error
	for _, s := range servers {
		s.mustExist(t, tb)
		done = append(done, async(func() error {
			_, err := s.Reconcile(context.Background())
			return err
		}))
	}
	for _, d := range done {
		if err := within(t, "a pass", d); err != nil {
			t.Error(err)
		}
	}
	const committed = lance.VersionCommitted
	want := map[int64]lance.VersionState{1: lance.VersionPruned, 2: committed, 3: committed, 4: committed}
	if diff := cmp.Diff(want, l.rows(t, servers[0], tb, 5)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestReconcileConcludesNothingFromAnOutage: versions of a storage that is away, or does not answer, are not marked.
func TestReconcileConcludesNothingFromAnOutage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 3)
	saved := map[string][]byte{}
	for v := int64(1); v <= 3; v++ {
		data, _, err := s.lake.objects.Get(t.Context(), tb.final(v), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		saved[tb.final(v)] = data
		s.lake.remove(t, tb.final(v))
	}
	marker := s.lake.root.Key() + "/" + catalog.Marker
	s.lake.remove(t, marker)
	if _, err := s.Reconcile(t.Context()); err == nil {
		t.Error("a pass over a storage that is away reports no error")
	}
	s.lake.put(t, marker, nil)
	for key, data := range saved {
		s.lake.put(t, key, data)
	}
	broken := errors.New("broken")
	s.objects.Fail(objtest.Match{Op: objtest.OpList, Times: 1}, objtest.Before, broken)
	s.mustExist(t, tb)
	if _, err := s.Reconcile(t.Context()); !errors.Is(err, broken) {
		t.Errorf("a pass over a storage that does not answer: %v, want %v", err, broken)
	}
	if n := s.Counters().Unreconciled.Load(); n != 2 {
		t.Errorf("%d tables are counted as not compared, want 2", n)
	}
	const committed = lance.VersionCommitted
	if diff := cmp.Diff(map[int64]lance.VersionState{1: committed, 2: committed, 3: committed}, s.lake.rows(t, s, tb, 3)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	s.listed(t, tb, 1, 2, 3)
}

// TestReconcileBesideDeletion: the manifest of a version that was deleted by request, and is still to be removed, does not bring it back.
func TestReconcileBesideDeletion(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 3)
	s.deleteOn(t, "t", "", 1, 2)
	if _, err := s.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.listed(t, tb, 2, 3)
	if n := s.Counters().Adoptions.Load(); n != 0 {
		t.Errorf("%d versions were adopted", n)
	}
}

// TestReconcileBranches: a branch that a client cleaned up, or deleted, in storage is seen to as well.
func TestReconcileBranches(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 2)
	const branch = lance.Branch("b")
	s.mustCreate(t, s.lake.stageOn(t, tb, branch, 2))
	s.lake.register(t, tb, branch, 2)
	for v := int64(3); v <= 4; v++ {
		s.mustCreate(t, s.lake.stageOn(t, tb, branch, v))
	}
	s.lake.remove(t, tb.finalOn(branch, 2))
	if _, err := s.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := s.Counters().Pruned.Load(); n != 1 {
		t.Errorf("%d versions were marked, want 1", n)
	}
	got, err := s.listOn(tb, branch)
	if diff := cmp.Diff([]int64{3, 4}, got); err != nil || diff != "" {
		t.Errorf("versions of the branch: %v (-want +got):\n%s", err, diff)
	}
}
