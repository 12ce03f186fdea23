package catalog_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/store"
)

func (s *server) drop(t tester, tb table) {
	t.Helper()
	if _, err := s.DropTable(context.Background(), &api.DropTableRequest{Target: api.At(tb.id...)}); err != nil {
		t.Fatal(err)
	}
}

func (s *server) tables(t tester) []string {
	t.Helper()
	resp, err := s.ListTables(context.Background(), &api.ListTablesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Tables
}

// TestEveryIncarnationIsItsOwn holds rule C1: a table of a dropped one's name has another directory and no versions, and what was
// staged for the old one is refused.
func TestEveryIncarnationIsItsOwn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	old := s.declare(t, "t")
	s.fill(t, old, 1, 2)
	late := s.lake.stage(t, old, 3)
	s.drop(t, old)
	_, err := s.create(context.Background(), late)
	wantCode(t, err, api.CodeTableNotFound)
	tb := s.declare(t, "t")
	if tb.dir == old.dir {
		t.Fatalf("both incarnations lie in %s", tb.dir)
	}
	s.listed(t, tb)
	_, err = s.create(context.Background(), late)
	wantCode(t, err, api.CodeInvalidInput)
	s.fill(t, tb, 1, 1)
	if n := s.runJobs(t, catalog.JobPurge); n != 1 {
		t.Errorf("%d purge jobs, want one", n)
	}
	s.lake.holds(t, old.final(1), nil)
	s.lake.holds(t, late.ManifestPath, nil)
	s.listed(t, tb, 1)
}

// TestCommitMeetsAnotherIncarnation drops and declares the table between a commit's look and its reserving: what was prepared for
// the old one is never reserved for either (C1, C5).
func TestCommitMeetsAnotherIncarnation(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	old := s.declare(t, "t")
	sv := s.lake.stage(t, old, 1)
	gate := s.objects.Hold(objtest.Match{Op: objtest.OpGet, Key: is(sv.ManifestPath)}, objtest.After)
	answer := async(func() error { _, err := s.create(context.Background(), sv); return err })
	within(t, "read of the staged manifest", gate.Reached())
	s.drop(t, old)
	tb := s.declare(t, "t")
	gate.Release()
	wantCode(t, within(t, "create", answer), api.CodeInvalidInput)
	s.listed(t, tb)
	s.lake.holds(t, old.final(1), nil)
	s.lake.holds(t, tb.final(1), nil)
}

// TestEndingWaitsForPendingTransactions drops, deregisters and cascades while a transaction is publishing: it ends first, so that no
// acknowledged version is lost half-way and no put lands in a purged directory (C5, C7).
func TestEndingWaitsForPendingTransactions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	ends := map[string]func(s *server) error{
		"drop": func(s *server) error {
			_, err := s.DropTable(ctx, &api.DropTableRequest{Target: api.At("ns", "t")})
			return err
		},
		"deregister": func(s *server) error {
			_, err := s.DeregisterTable(ctx, &api.DeregisterTableRequest{Target: api.At("ns", "t")})
			return err
		},
		"cascade": func(s *server) error {
			cascade := "Cascade"
			_, err := s.DropNamespace(ctx, &api.DropNamespaceRequest{Target: api.At("ns"), Behavior: &cascade})
			return err
		},
		"batch": func(s *server) error {
			_, err := s.mixed(ctx, api.CommitTableOperation{DeregisterTable: &api.DeregisterTableRequest{Target: api.At("ns", "t")}})
			return err
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			if _, err := s.CreateNamespace(ctx, &api.CreateNamespaceRequest{Target: api.At("ns")}); err != nil {
				t.Fatal(err)
			}
			resp, err := s.DeclareTable(ctx, &api.DeclareTableRequest{Target: api.At("ns", "t")})
			if err != nil {
				t.Fatal(err)
			}
			tb := tableAt(t, "t", *resp.Location)
			tb.id = []string{"ns", "t"}
			other := s.declare(t, "other")
			va, vb := s.lake.stage(t, tb, 1), s.lake.stage(t, other, 1)
			gate := s.objects.Hold(putOf(tb.final(1)), objtest.Before)
			answer := async(func() error { _, err := s.batch(ctx, va, vb); return err })
			within(t, "put", gate.Reached())
			ended := async(func() error { return end(s) })
			for range 50 {
				if _, err := s.NamespaceExists(ctx, &api.NamespaceExistsRequest{Target: api.At("ns")}); err != nil {
					t.Fatal(err)
				}
				select {
				case err := <-ended:
					t.Fatalf("the table ended under a transaction that is pending: %v", err)
				default:
				}
			}
			gate.Release()
			if err := within(t, "batch", answer); err != nil {
				t.Error(err)
			}
			if err := within(t, name, ended); err != nil {
				t.Error(err)
			}
			s.listed(t, other, 1)
			if _, err := s.describe(ctx, tb, 1); err == nil {
				t.Error("the table is still there")
			}
		})
	}
}

// TestDropOutlivesACrash kills the server once the drop is durable: what must follow is a row of the same transaction (C12).
func TestDropOutlivesACrash(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	dying, s := l.server(t), l.server(t)
	tb := dying.declare(t, "t")
	dying.fill(t, tb, 1, 1)
	dying.state.afterUpdate(func() error { dying.kill(); return store.ErrUnknown })
	_, err := dying.DropTable(context.Background(), &api.DropTableRequest{Target: api.At("t")})
	wantCode(t, err, api.CodeInternal)
	if got := s.tables(t); len(got) != 0 {
		t.Errorf("tables %v are listed", got)
	}
	if n := s.runJobs(t, catalog.JobPurge); n != 1 {
		t.Errorf("%d purge jobs, want one", n)
	}
	l.holds(t, tb.final(1), nil)
}

// TestRegisterTakesAllVersionsIn deregisters a table and registers its location again: the versions are those of storage.
func TestRegisterTakesAllVersionsIn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	resp, err := s.DeclareTable(context.Background(), &api.DeclareTableRequest{Target: api.At("t")})
	if err != nil {
		t.Fatal(err)
	}
	tb := tableAt(t, "t", *resp.Location)
	s.fill(t, tb, 1, 2)
	foreign := s.lake.bypass(t, tb, 3)
	if _, err := s.DeregisterTable(context.Background(), &api.DeregisterTableRequest{Target: api.At("t")}); err != nil {
		t.Fatal(err)
	}
	s.lake.holds(t, tb.final(1), s.lake.bytes(t, tb.final(1)))
	if _, err := s.RegisterTable(context.Background(), &api.RegisterTableRequest{Target: api.At("again"), Location: *resp.Location}); err != nil {
		t.Fatal(err)
	}
	again := table{id: []string{"again"}, dir: tb.dir}
	s.listed(t, again, 1, 2, 3)
	s.shows(t, again, 3, foreign)
	s.fill(t, again, 4, 4)
	if n := s.runJobs(t, catalog.JobForget); n != 1 {
		t.Errorf("%d forget jobs, want one", n)
	}
	s.listed(t, again, 1, 2, 3, 4)
	if got := s.tables(t); !slices.Equal(got, []string{"again"}) {
		t.Errorf("tables %v", got)
	}
}

// bytes returns an object that must be there.
func (l *lake) bytes(t tester, key string) []byte {
	t.Helper()
	data, _, err := l.objects.Get(context.Background(), key, 0)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRenameKeepsVersionsAndWriters renames a table while a commit is prepared and while one is published: both are of the table,
// not of its name.
func TestRenameKeepsVersionsAndWriters(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	sv := s.lake.stage(t, tb, 1)
	gate := s.objects.Hold(putOf(tb.final(1)), objtest.Before)
	answer := async(func() error { _, err := s.create(context.Background(), sv); return err })
	within(t, "put", gate.Reached())
	if _, err := s.RenameTable(context.Background(), &api.RenameTableRequest{Target: api.At("t"), NewTableName: "u"}); err != nil {
		t.Fatal(err)
	}
	gate.Release()
	if err := within(t, "create", answer); err != nil {
		t.Fatal(err)
	}
	renamed := table{id: []string{"u"}, dir: tb.dir}
	s.listed(t, renamed, 1)
	next := s.lake.stage(t, renamed, 2)
	gate = s.objects.Hold(objtest.Match{Op: objtest.OpGet, Key: is(next.ManifestPath)}, objtest.After)
	answer = async(func() error { _, err := s.create(context.Background(), next); return err })
	within(t, "read of the staged manifest", gate.Reached())
	if _, err := s.RenameTable(context.Background(), &api.RenameTableRequest{Target: api.At("u"), NewTableName: "w"}); err != nil {
		t.Fatal(err)
	}
	gate.Release()
	wantCode(t, within(t, "create", answer), api.CodeTableNotFound)
	s.listed(t, table{id: []string{"w"}, dir: tb.dir}, 1)
}

// guardedState and guardedObjects see to rule C12: while a closure of the state runs, storage is not touched. They are good for one
// request at a time, without parallel calls.
type guardedState struct {
	store.Store
	inside chan struct{} // holds one token while a closure runs
}

func (g guardedState) View(ctx context.Context, fn func(store.Reader) error) error {
	return g.Store.View(ctx, func(r store.Reader) error {
		g.inside <- struct{}{}
		defer func() { <-g.inside }()
		return fn(r)
	})
}

func (g guardedState) Update(ctx context.Context, fn func(store.Tx) error) error {
	return g.Store.Update(ctx, func(tx store.Tx) error {
		g.inside <- struct{}{}
		defer func() { <-g.inside }()
		return fn(tx)
	})
}

// guard makes every call of storage fail that comes while a closure of the state runs, and returns the options for it.
func guard(t testing.TB) func(*catalog.Options) {
	t.Helper()
	inside := make(chan struct{}, 1)
	return func(o *catalog.Options) {
		o.Parallel = 1
		o.Store = guardedState{Store: o.Store, inside: inside}
		o.Roots[0].Objects = objtest.NewFaulty(o.Roots[0].Objects)
		faulty := o.Roots[0].Objects.(*objtest.Faulty)
		faulty.Fail(objtest.Match{Times: objtest.Forever, Key: func(key string) bool {
			select {
			case inside <- struct{}{}:
				<-inside
				return false
			default:
				t.Errorf("storage was asked for %s inside of a transaction of the state", key)
				return true
			}
		}}, objtest.Before, errors.New("storage touched inside of a transaction"))
	}
}

// TestNoStorageInsideOfATransaction holds rule C12 on every path of the commit: alone, refused, replayed, aborted, adopted, helped.
func TestNoStorageInsideOfATransaction(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s := l.server(t, guard(t))
	a, b := s.declare(t, "a"), s.declare(t, "b")
	sv := l.stage(t, a, 1)
	s.mustCreate(t, sv)
	s.mustCreate(t, sv)
	_, err := s.create(context.Background(), l.stage(t, a, 1))
	wantCode(t, err, api.CodeConcurrentModification)
	l.bypass(t, a, 2)
	s.fill(t, a, 3, 3)
	l.abandon(t, l.stage(t, a, 4), l.stage(t, b, 1))
	s.listed(t, b, 1)
	l.abandon(t, l.stage(t, a, 5), l.stage(t, b, 2))
	foreign := l.bypass(t, b, 2)
	s.listed(t, a, 1, 2, 3, 4)
	s.shows(t, b, 2, foreign)
	s.fill(t, a, 5, 5)
	_, err = s.create(context.Background(), l.stage(t, a, 6)) // an echo takes it
	wantCode(t, err, api.CodeConcurrentModification)
	s.fill(t, a, 7, 7)
	if _, err := s.mixed(context.Background(),
		api.CommitTableOperation{DeclareTable: &api.DeclareTableRequest{Target: api.At("c")}},
		api.CommitTableOperation{DeleteTableVersions: &api.BatchDeleteTableVersionsRequest{Target: api.At("a"), Ranges: []api.VersionRange{{StartVersion: 1, EndVersion: 3}}}},
		api.CommitTableOperation{CreateTableVersion: l.stage(t, b, 3).request()},
	); err != nil {
		t.Error(err)
	}
	l.remove(t, a.final(4))
	if got := s.list(t, a); len(got) == 0 || got[0] != 3 {
		t.Errorf("versions %v", got)
	}
	s.drop(t, a)
	for _, kind := range []string{catalog.JobPurge, catalog.JobDeleteManifests, catalog.JobCleanAborted} {
		s.runJobs(t, kind)
	}
}
