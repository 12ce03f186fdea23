package catalog_test

import (
	"context"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/store"
)

// beaten is a batch on a and b that a bypassing writer beat on b while it was publishing: it was aborted.
type beaten struct {
	a, b    table
	va, vb  staged
	foreign []byte
}

// beat makes one. The version of a had been published before.
func (s *server) beat(t testing.TB) beaten {
	t.Helper()
	x := beaten{a: s.declare(t, "a"), b: s.declare(t, "b")}
	x.va, x.vb = s.lake.stage(t, x.a, 1), s.lake.stage(t, x.b, 1)
	gate := s.objects.Hold(putOf(x.b.final(1)), objtest.Before)
	answer := async(func() error { _, err := s.batch(context.Background(), x.va, x.vb); return err })
	within(t, "put", gate.Reached())
	x.foreign = s.lake.bypass(t, x.b, 1)
	gate.Release()
	wantCode(t, within(t, "batch", answer), api.CodeConcurrentModification, "entries[1]", `table "b"`, "version 1")
	return x
}

// TestAbort holds rule C10: a foreign object in one slot of two, and nothing is visible of the whole transaction; what it had
// published is removed, the foreign version is adopted, and the conflict names it.
func TestAbort(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	x := s.beat(t)
	s.lake.holds(t, x.a.final(1), nil)
	s.lake.holds(t, x.b.final(1), x.foreign)
	s.listed(t, x.a)
	s.listed(t, x.b, 1)
	s.shows(t, x.b, 1, x.foreign)
	if ids := s.lake.pending(t); len(ids) != 0 {
		t.Errorf("pending transactions %v", ids)
	}
	if s.Counters().Aborts.Load() != 1 || s.told(catalog.EventAborted) != 1 {
		t.Error("the abort was not counted and told of")
	}
	// Life goes on.
	next, second := s.lake.stage(t, x.a, 1), s.lake.stage(t, x.b, 2)
	if _, err := s.batch(context.Background(), next, second); err != nil {
		t.Fatal(err)
	}
	s.shows(t, x.a, 1, next.data)
}

// TestAbortByAHelper is the same where the one who meets the foreign object is a reader on another server, and the driver comes back
// to find its transaction ended: it says which entry lost, and its own late put does not stay.
func TestAbortByAHelper(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	driver, helper := l.server(t), l.server(t)
	a, b := driver.declare(t, "a"), driver.declare(t, "b")
	va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
	gateA := driver.objects.Hold(putOf(a.final(1)), objtest.Before)
	gateB := driver.objects.Hold(putOf(b.final(1)), objtest.Before)
	answer := async(func() error { _, err := driver.batch(context.Background(), va, vb); return err })
	within(t, "put on a", gateA.Reached())
	within(t, "put on b", gateB.Reached())
	foreign := l.bypass(t, b, 1)
	_, err := helper.describe(context.Background(), a, 1)
	wantCode(t, err, api.CodeTableVersionNotFound)
	l.holds(t, a.final(1), nil)
	gateA.Release()
	gateB.Release()
	wantCode(t, within(t, "the driver", answer), api.CodeConcurrentModification, "entries[1]", `table "b"`)
	l.holds(t, a.final(1), nil)
	driver.shows(t, b, 1, foreign)
	driver.listed(t, a)
}

// TestAbortOfAMixedBatchByAHelper is the same where the first operation makes no version: the table that the batch begins with
// keeps its versions, and no others come to it.
func TestAbortOfAMixedBatchByAHelper(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	driver, helper := l.server(t), l.server(t)
	old, tb := driver.declare(t, "old"), driver.declare(t, "t")
	driver.fill(t, old, 1, 2)
	sv := l.stage(t, tb, 1)
	gate := driver.objects.Hold(putOf(tb.final(1)), objtest.Before)
	answer := async(func() error {
		_, err := driver.mixed(context.Background(),
			api.CommitTableOperation{DeregisterTable: &api.DeregisterTableRequest{Target: api.At("old")}},
			api.CommitTableOperation{CreateTableVersion: sv.request()})
		return err
	})
	within(t, "put", gate.Reached())
	foreign := l.bypass(t, tb, 1)
	helper.shows(t, tb, 1, foreign)
	gate.Release()
	wantCode(t, within(t, "the driver", answer), api.CodeConcurrentModification, "operations[1]", `table "t"`)
	driver.listed(t, old, 1, 2)
	driver.listed(t, tb, 1)
	if n := driver.Counters().Adoptions.Load(); n != 0 {
		t.Errorf("the driver adopted %d versions of its own, want none: the helper adopted the only one", n)
	}
}

// TestLatePutOfAnAbortedTransaction lets a write of an aborted transaction land after everything (C10): whoever meets it, a commit
// or an adoption, removes it, and nobody ever takes it for a version.
func TestLatePutOfAnAbortedTransaction(t *testing.T) {
	t.Parallel()
	for name, meet := range map[string]func(s *server, x beaten) (want []byte){
		"next commit": func(s *server, x beaten) []byte {
			sv := s.lake.stage(t, x.a, 1)
			s.mustCreate(t, sv)
			return sv.data
		},
		"commit of the number after it": func(s *server, x beaten) []byte {
			_, err := s.create(context.Background(), s.lake.stage(t, x.a, 2))
			wantCode(t, err, api.CodeConcurrentModification)
			return nil
		},
		"describe": func(s *server, x beaten) []byte {
			_, err := s.describe(context.Background(), x.a, 1)
			wantCode(t, err, api.CodeTableVersionNotFound)
			return nil
		},
		"list": func(s *server, x beaten) []byte { s.listed(t, x.a); return nil },
		"job": func(s *server, _ beaten) []byte {
			if n := s.runJobs(t, catalog.JobCleanAborted); n != 1 {
				t.Errorf("%d jobs, want the one that the abort queued", n)
			}
			return nil
		},
		"put under way": func(s *server, x beaten) []byte {
			// The put lands between the look and the commit's own put, which therefore meets it.
			s.lake.remove(t, x.a.final(1))
			sv := s.lake.stage(t, x.a, 1)
			gate := s.objects.Hold(putOf(x.a.final(1)), objtest.Before)
			answer := async(func() error { _, err := s.create(context.Background(), sv); return err })
			within(t, "put", gate.Reached())
			s.lake.put(t, x.a.final(1), x.va.data)
			gate.Release()
			if err := within(t, "create", answer); err != nil {
				t.Error(err)
			}
			return sv.data
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			x := s.beat(t)
			s.lake.put(t, x.a.final(1), x.va.data)
			want := meet(s, x)
			s.lake.holds(t, x.a.final(1), want)
			if want == nil {
				s.listed(t, x.a)
			} else {
				s.listed(t, x.a, 1)
			}
			if s.Counters().Zombies.Load() == 0 {
				t.Error("the removal was not counted")
			}
		})
	}
}

// TestAbortedBytesAreNotCommittedAgain holds the end of C5: one content never belongs to two transactions, so that its removal
// never takes what somebody was told of.
func TestAbortedBytesAreNotCommittedAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	x := s.beat(t)
	_, err := s.create(context.Background(), x.va)
	wantCode(t, err, api.CodeConcurrentModification, `table "a"`)
	copied := s.lake.stageBytes(t, x.a, lance.Main, 1, x.va.data)
	_, err = s.create(context.Background(), copied)
	wantCode(t, err, api.CodeConcurrentModification, "stage")
	_, err = s.batch(context.Background(), x.va, x.vb)
	wantCode(t, err, api.CodeConcurrentModification)
	s.listed(t, x.a)
	s.lake.holds(t, x.a.final(1), nil)
}

// TestAbortBetweenReadingAndAdopting holds that an adopter asks for aborted contents in the transaction that enters the rows (C9): it
// read the object while its transaction was pending, which is aborted before the rows are entered.
func TestAbortBetweenReadingAndAdopting(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s, adopter := l.server(t), l.server(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
	// The adopter has seen no row when it lists; the listing shows what comes then.
	listing := adopter.objects.Hold(objtest.Match{Op: objtest.OpList, Key: is(a.dir + "/_versions/")}, objtest.Before)
	reading := adopter.objects.Hold(objtest.Match{Op: objtest.OpGet, Key: is(a.final(1))}, objtest.After)
	described := async(func() error { _, err := adopter.describe(context.Background(), a, 1); return err })
	within(t, "the adopter's listing", listing.Reached())
	putB := s.objects.Hold(putOf(b.final(1)), objtest.Before)
	publishedA := s.objects.Hold(putOf(a.final(1)), objtest.After)
	answer := async(func() error { _, err := s.batch(context.Background(), va, vb); return err })
	within(t, "put on b", putB.Reached())
	within(t, "put on a", publishedA.Reached())
	publishedA.Release()
	listing.Release()
	within(t, "the adopter's read", reading.Reached())
	l.bypass(t, b, 1)
	putB.Release()
	wantCode(t, within(t, "batch", answer), api.CodeConcurrentModification)
	reading.Release()
	wantCode(t, within(t, "describe", described), api.CodeTableVersionNotFound)
	l.holds(t, a.final(1), nil)
	s.listed(t, a)
}

// TestCrashWhileAborting kills the server after the abort is durable and before anything is removed: the job that the abort queued
// removes it (C10, C12).
func TestCrashWhileAborting(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	dying, s := l.server(t), l.server(t)
	a, b := dying.declare(t, "a"), dying.declare(t, "b")
	va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
	gate := dying.objects.Hold(putOf(b.final(1)), objtest.Before)
	answer := async(func() error { _, err := dying.batch(context.Background(), va, vb); return err })
	within(t, "put", gate.Reached())
	foreign := l.bypass(t, b, 1)
	dying.state.afterUpdate(func() error { dying.kill(); return store.ErrUnknown })
	gate.Release()
	wantCode(t, within(t, "batch", answer), api.CodeInternal)
	l.holds(t, a.final(1), va.data)
	if n := s.runJobs(t, catalog.JobCleanAborted); n != 1 {
		t.Errorf("%d jobs, want one", n)
	}
	l.holds(t, a.final(1), nil)
	s.listed(t, a)
	s.shows(t, b, 1, foreign)
}

// TestStagedManifestGone undoes a pending transaction of which a staged manifest is gone before it was published: it can never be
// completed, and nothing of it may stay (C10).
func TestStagedManifestGone(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s := l.server(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
	l.abandon(t, va, vb)
	l.remove(t, vb.ManifestPath)
	s.listed(t, a)
	s.listed(t, b)
	l.holds(t, a.final(1), nil)
	if ids := l.pending(t); len(ids) != 0 {
		t.Errorf("pending transactions %v", ids)
	}
}

// TestVersionUponAnAbortedOneIsNotTaken holds the echo of C5: a client saw the manifest of a pending transaction in a listing of
// storage and built the next version upon it; the transaction is aborted and another version takes the slot.
func TestVersionUponAnAbortedOneIsNotTaken(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	x := s.beat(t)
	blind := s.lake.stage(t, x.a, 2)
	v := s.lake.stage(t, x.a, 1)
	s.mustCreate(t, v)
	_, err := s.create(context.Background(), blind)
	wantCode(t, err, api.CodeConcurrentModification)
	// What stands there says what version 1 says, so that the client rebases upon that.
	got, err := s.describe(context.Background(), x.a, 2)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := lance.RenumberVersion(v.data, 2)
	if err != nil {
		t.Fatal(err)
	}
	s.lake.holds(t, got.ManifestPath, copied)
	s.fill(t, x.a, 3, 3)
	s.listed(t, x.a, 1, 2, 3)
	// Only the slots that an aborted content may have been read in are burnt: b's was never b's.
	s.fill(t, x.b, 2, 3)
	s.listed(t, x.b, 1, 2, 3)
}
