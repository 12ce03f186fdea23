package catalog_test

import (
	"context"
	"slices"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

func declareOp(name string) api.CommitTableOperation {
	return api.CommitTableOperation{DeclareTable: &api.DeclareTableRequest{Target: api.At(name)}}
}

// declareAt declares a table in a place that the caller picks, so that versions can be staged for it before it is declared.
func declareAt(name string, tb table) api.CommitTableOperation {
	return api.CommitTableOperation{DeclareTable: &api.DeclareTableRequest{Target: api.At(name), Location: &tb.location}}
}

func createOp(sv staged) api.CommitTableOperation {
	return api.CommitTableOperation{CreateTableVersion: sv.request()}
}

func deleteOp(name string, from, end int64) api.CommitTableOperation {
	return api.CommitTableOperation{DeleteTableVersions: &api.BatchDeleteTableVersionsRequest{
		Target: api.At(name), Ranges: []api.VersionRange{{StartVersion: from, EndVersion: end}},
	}}
}

func deregisterOp(name string) api.CommitTableOperation {
	return api.CommitTableOperation{DeregisterTable: &api.DeregisterTableRequest{Target: api.At(name)}}
}

// TestDeclareAndCreateTogether makes a table and its first versions in one step: nobody sees the one without the others (C7).
func TestDeclareAndCreateTogether(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.lake.table("new", "new.lance")
	one, two := s.lake.stage(t, tb, 1), s.lake.stage(t, tb, 2)
	gate := s.objects.Hold(putOf(tb.final(2)), objtest.Before)
	answer := async(func() error {
		_, err := s.mixed(context.Background(), declareAt("new", tb), createOp(one), createOp(two))
		return err
	})
	within(t, "put", gate.Reached())
	if got := s.tables(t); len(got) != 0 {
		t.Errorf("tables %v are listed before the batch is committed", got)
	}
	_, err := s.describe(context.Background(), tb, 1)
	wantCode(t, err, api.CodeTableNotFound)
	gate.Release()
	if err := within(t, "batch", answer); err != nil {
		t.Fatal(err)
	}
	s.listed(t, tb, 1, 2)
	s.shows(t, tb, 2, two.data)
}

// TestNameIsTakenWhilePublishing declares a table in a batch whose name somebody else takes before the batch resolves: the batch is
// undone as a whole, and the answer says why.
func TestNameIsTakenWhilePublishing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	old := s.declare(t, "old")
	tb := s.lake.table("new", "new.lance")
	mine, other := s.lake.stage(t, tb, 1), s.lake.stage(t, old, 1)
	gate := s.objects.Hold(putOf(tb.final(1)), objtest.Before)
	answer := async(func() error {
		_, err := s.mixed(context.Background(), createOp(other), declareAt("new", tb), createOp(mine))
		return err
	})
	within(t, "put", gate.Reached())
	rival := s.declare(t, "new")
	gate.Release()
	wantCode(t, within(t, "batch", answer), api.CodeTableAlreadyExists, "operations[1]", `table "new"`)
	s.listed(t, old)
	s.listed(t, rival)
	s.lake.holds(t, old.final(1), nil)
	s.lake.holds(t, tb.final(1), nil)
	s.fill(t, rival, 1, 1)
	s.fill(t, old, 1, 1)
}

// TestPlaceIsTakenWhilePublishing declares two tables in one place at once, each with a first version: one of the batches is undone as
// a whole, nothing of it is left in the state, and the answer does not send its client to a version that is not there.
func TestPlaceIsTakenWhilePublishing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	first, second := s.lake.table("x", "same.lance"), s.lake.table("y", "same.lance")
	vx, vy := s.lake.stage(t, first, 1), s.lake.stage(t, second, 1)
	gate := s.objects.Hold(putOf(first.final(1)), objtest.Before)
	lost := async(func() error { _, err := s.mixed(context.Background(), declareAt("x", first), createOp(vx)); return err })
	within(t, "put", gate.Reached())
	if _, err := s.mixed(context.Background(), declareAt("y", second), createOp(vy)); err != nil {
		t.Fatal(err)
	}
	gate.Release()
	wantCode(t, within(t, "the loser", lost), api.CodeInvalidTableState, `table "x"`)
	if got := s.tables(t); !slices.Equal(got, []string{"y"}) {
		t.Errorf("tables %v", got)
	}
	s.shows(t, second, 1, vy.data)
	if n := s.Counters().Adoptions.Load(); n != 0 {
		t.Errorf("%d versions were adopted for a table that does not exist", n)
	}
}

// TestPlaceIsTakenBeforeReserving is the same where the other's first version appears between the look at the place and the look at the
// final name: nothing is reserved.
func TestPlaceIsTakenBeforeReserving(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.lake.table("x", "same.lance")
	sv := s.lake.stage(t, tb, 1)
	gate := s.objects.Hold(objtest.Match{Op: objtest.OpHead, Key: is(tb.final(1))}, objtest.Before)
	answer := async(func() error { _, err := s.mixed(context.Background(), declareAt("x", tb), createOp(sv)); return err })
	within(t, "the look at the final name", gate.Reached())
	foreign := s.lake.bypass(t, tb, 1)
	gate.Release()
	wantCode(t, within(t, "batch", answer), api.CodeInvalidTableState, `table "x"`)
	if got := s.tables(t); len(got) != 0 {
		t.Errorf("tables %v", got)
	}
	s.lake.holds(t, tb.final(1), foreign)
	if s.Counters().Adoptions.Load() != 0 || s.Counters().Aborts.Load() != 0 {
		t.Error("versions were adopted or reserved for a table that does not exist")
	}
}

// TestNamespaceIsDroppedWhilePublishing is the same with the namespace that the table was to be declared in.
func TestNamespaceIsDroppedWhilePublishing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := newServer(t)
	if _, err := s.CreateNamespace(ctx, &api.CreateNamespaceRequest{Target: api.At("ns")}); err != nil {
		t.Fatal(err)
	}
	old := s.declare(t, "old")
	sv := s.lake.stage(t, old, 1)
	gate := s.objects.Hold(putOf(old.final(1)), objtest.Before)
	answer := async(func() error {
		_, err := s.mixed(ctx, createOp(sv), api.CommitTableOperation{DeclareTable: &api.DeclareTableRequest{Target: api.At("ns", "t")}})
		return err
	})
	within(t, "put", gate.Reached())
	if _, err := s.DropNamespace(ctx, &api.DropNamespaceRequest{Target: api.At("ns")}); err != nil {
		t.Fatal(err)
	}
	gate.Release()
	wantCode(t, within(t, "batch", answer), api.CodeNamespaceNotFound, "operations[1]")
	s.listed(t, old)
	s.lake.holds(t, old.final(1), nil)
}

// TestLaterOperationsSeeEarlierOnes holds the order inside of a mixed batch.
func TestLaterOperationsSeeEarlierOnes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 3)
	resp, err := s.mixed(context.Background(), createOp(s.lake.stage(t, tb, 4)), deleteOp("t", 2, 4), deregisterOp("t"), declareOp("t"))
	if err != nil {
		t.Fatal(err)
	}
	if got := *resp.Results[1].DeleteTableVersions.DeletedCount; got != 2 {
		t.Errorf("%d versions were deleted, want 2", got)
	}
	fresh := tableAt(t, "t", *resp.Results[3].DeclareTable.Location)
	if fresh.dir == tb.dir {
		t.Error("the table declared anew lies where the deregistered one does")
	}
	s.listed(t, fresh)
	s.lake.holds(t, tb.final(4), s.lake.bytes(t, tb.final(4)))
	// And not the other way round.
	_, err = s.mixed(context.Background(), createOp(s.lake.stage(t, s.lake.table("u", "u"), 1)), declareOp("u"))
	wantCode(t, err, api.CodeTableNotFound, "operations[0]")
	_, err = s.mixed(context.Background(), deregisterOp("t"), deleteOp("t", 1, 2))
	wantCode(t, err, api.CodeTableNotFound, "operations[1]")
	if got := s.tables(t); !slices.Equal(got, []string{"t"}) {
		t.Errorf("tables %v", got)
	}
}

// TestBatchWithoutVersions is committed in the one transaction that judges it.
func TestBatchWithoutVersions(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 3)
	_, err := s.mixed(context.Background(), declareOp("u"), deleteOp("t", 1, 3), declareOp("t"))
	wantCode(t, err, api.CodeTableAlreadyExists, "operations[2]")
	s.listed(t, tb, 1, 2, 3)
	if _, err := s.mixed(context.Background(), declareOp("u"), deleteOp("t", 1, 3)); err != nil {
		t.Fatal(err)
	}
	s.listed(t, tb, 3)
	if got := s.tables(t); !slices.Equal(got, []string{"t", "u"}) {
		t.Errorf("tables %v", got)
	}
	if n := s.runJobs(t, catalog.JobDeleteManifests); n != 1 {
		t.Errorf("%d jobs, want one", n)
	}
	s.lake.holds(t, tb.final(1), nil)
	s.lake.holds(t, tb.final(3), s.lake.bytes(t, tb.final(3)))
}

// TestBatchesThatWaitForEachOther commits two batches at once, each of which deletes versions of the table that the other adds to:
// a deletion waits for what is pending on its table, and the two must not wait for each other.
func TestBatchesThatWaitForEachOther(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s := l.server(t)
	for name, second := range map[string]*server{"one server": s, "two servers": l.server(t)} {
		a, b := s.declare(t, "a"), s.declare(t, "b")
		s.fill(t, a, 1, 2)
		s.fill(t, b, 1, 2)
		va, vb := l.stage(t, a, 3), l.stage(t, b, 3)
		gate := s.objects.Hold(putOf(a.final(3)), objtest.Before)
		one := async(func() error { _, err := s.mixed(context.Background(), createOp(va), deleteOp("b", 1, 2)); return err })
		within(t, "put on a", gate.Reached())
		putB := second.objects.Hold(putOf(b.final(3)), objtest.Before)
		two := async(func() error {
			_, err := second.mixed(context.Background(), createOp(vb), deleteOp("a", 1, 2))
			return err
		})
		// If the second is reserved beside the first, it shows within this time.
		for range 100 {
			s.tables(t)
		}
		gate.Release()
		putB.Release()
		for which, answer := range map[string]<-chan error{"first": one, "second": two} {
			if err := within(t, "the "+which+" batch", answer); err != nil {
				t.Errorf("%s: the %s batch: %v", name, which, err)
			}
		}
		s.listed(t, a, 2, 3)
		s.listed(t, b, 2, 3)
		s.drop(t, a)
		s.drop(t, b)
	}
}
