package catalog_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// TestReplayOfOneVersion sends a commit again in every way that a client may (C5): it is answered as the first time.
func TestReplayOfOneVersion(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 1)
	sv := s.lake.stage(t, tb, 2)
	first, err := s.CreateTableVersion(context.Background(), sv.request())
	if err != nil {
		t.Fatal(err)
	}
	again := func(how string, sv staged) {
		t.Helper()
		got, err := s.CreateTableVersion(context.Background(), sv.request())
		if err != nil {
			t.Errorf("%s: %v", how, err)
			return
		}
		if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("%s (-first +again):\n%s", how, diff)
		}
	}
	again("the same request", sv)
	copied := s.lake.stageBytes(t, tb, lance.Main, 2, sv.data)
	again("the same bytes, staged once more", copied)
	s.fill(t, tb, 3, 3)
	again("after the next version", sv)
	s.lake.remove(t, sv.ManifestPath)
	again("after the staged manifest was removed", sv)
	// What is not the same is a conflict, not a replay.
	other := s.lake.stage(t, tb, 2)
	_, err = s.create(context.Background(), other)
	wantCode(t, err, api.CodeConcurrentModification)
	s.lake.remove(t, other.ManifestPath)
	_, err = s.create(context.Background(), other)
	wantCode(t, err, api.CodeConcurrentModification)
	s.listed(t, tb, 1, 2, 3)
	if n := s.Counters().Replays.Load(); n != 4 {
		t.Errorf("%d replays were counted, want 4", n)
	}
}

// TestReplayWhileTheFirstIsUnderWay sends a batch again before the first has published: the second waits for its end and gives
// the same answer (C5).
func TestReplayWhileTheFirstIsUnderWay(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	for name, second := range map[string]*server{"the same server": nil, "another server": l.server(t)} {
		s := l.server(t)
		if second == nil {
			second = s
		}
		a, b := s.declare(t, "a of "+name), s.declare(t, "b of "+name)
		va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
		gate := s.objects.Hold(putOf(b.final(1)), objtest.Before)
		type answer struct {
			resp *api.BatchCreateTableVersionsResponse
			err  error
		}
		send := func(s *server) <-chan answer {
			return async(func() answer {
				resp, err := s.batch(context.Background(), va, vb)
				return answer{resp, err}
			})
		}
		first := send(s)
		within(t, "put", gate.Reached())
		replay := send(second)
		if second != s {
			// It helps; the first finds its work done.
			if r := within(t, "replay", replay); r.err != nil {
				t.Errorf("%s: replay: %v", name, r.err)
			} else {
				replay = async(func() answer { return r })
			}
		}
		gate.Release()
		r1, r2 := within(t, "first", first), within(t, "replay", replay)
		if r1.err != nil || r2.err != nil {
			t.Fatalf("%s: first: %v; replay: %v", name, r1.err, r2.err)
		}
		if diff := cmp.Diff(r1.resp, r2.resp); diff != "" {
			t.Errorf("%s (-first +replay):\n%s", name, diff)
		}
	}
}

// TestReplayOfPartIsAConflict sends a batch of which one version was committed before alone: all or nothing holds for replays too.
func TestReplayOfPartIsAConflict(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	va, vb := s.lake.stage(t, a, 1), s.lake.stage(t, b, 1)
	s.mustCreate(t, va)
	_, err := s.batch(context.Background(), vb, va)
	wantCode(t, err, api.CodeConcurrentModification, "entries[1]")
	s.listed(t, b)
	s.lake.holds(t, b.final(1), nil)
}

// TestReplayOfMixedBatch recognises a batch with other operations by the record of its transaction (C5), also when the table that
// it declared has been renamed meanwhile; the same versions with other operations beside them are a conflict.
func TestReplayOfMixedBatch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	old, tb := s.declare(t, "old"), s.declare(t, "t")
	s.fill(t, tb, 1, 3)
	s.fill(t, old, 1, 1)
	sv := s.lake.stage(t, tb, 4)
	ops := []api.CommitTableOperation{
		{DeclareTable: &api.DeclareTableRequest{Target: api.At("new"), Properties: map[string]string{"k": "v"}}},
		{CreateTableVersion: sv.request()},
		{DeleteTableVersions: &api.BatchDeleteTableVersionsRequest{Target: api.At("t"), Ranges: []api.VersionRange{{StartVersion: 1, EndVersion: 3}}}},
		{DeregisterTable: &api.DeregisterTableRequest{Target: api.At("old")}},
	}
	first, err := s.mixed(context.Background(), ops...)
	if err != nil {
		t.Fatal(err)
	}
	for _, staged := range []string{"there", "removed"} {
		again, err := s.mixed(context.Background(), ops...)
		if err != nil {
			t.Fatalf("staged manifest %s: %v", staged, err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("staged manifest %s (-first +again):\n%s", staged, diff)
		}
		s.lake.remove(t, sv.ManifestPath)
	}
	_, err = s.mixed(context.Background(), ops[1], ops[2])
	wantCode(t, err, api.CodeConcurrentModification)
	_, err = s.mixed(context.Background(), ops[0], ops[1], ops[2])
	if err == nil {
		t.Error("another batch with the same version was taken for a replay")
	}
	s.listed(t, tb, 3, 4)
}

// TestReplayOfADeclarationInAGivenPlace sends a batch again that declared a table in a place of the client's choice: the dataset that
// stands there is its own. Another batch's is not.
func TestReplayOfADeclarationInAGivenPlace(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.lake.table("x", "given.lance")
	sv := s.lake.stage(t, tb, 1)
	first, err := s.mixed(context.Background(), declareAt("x", tb), createOp(sv))
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.mixed(context.Background(), declareAt("x", tb), createOp(sv))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("(-first +again):\n%s", diff)
	}
	other := table{id: []string{"y"}, dir: tb.dir, location: tb.location}
	_, err = s.mixed(context.Background(), declareAt("y", other), createOp(s.lake.stage(t, other, 1)))
	wantCode(t, err, api.CodeInvalidTableState, "operations[0]", `table "y"`)
	if got := s.tables(t); len(got) != 1 {
		t.Errorf("tables %v", got)
	}
}
