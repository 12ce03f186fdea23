package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/store"
)

// death is a moment at which a server dies while it performs a commit.
type death struct {
	name string
	// strike arms it and returns a channel that is closed once it has struck.
	strike func(s *server) <-chan struct{}
}

// deaths lists one before and one after every call of storage and of the state that a batch of two versions makes.
func deaths(t testing.TB) []death {
	var all []death
	for stage, name := range map[objtest.Stage]string{objtest.Before: "before", objtest.After: "after"} {
		for n := 1; n <= callsOfABatch(t); n++ {
			all = append(all, death{name: fmt.Sprintf("%s call %d of storage", name, n), strike: func(s *server) <-chan struct{} {
				gate := s.objects.Hold(objtest.Match{Nth: n}, stage)
				struck := make(chan struct{})
				go func() {
					<-gate.Reached()
					s.kill()
					gate.Drop()
					close(struck)
				}()
				return struck
			}})
		}
	}
	for n, name := range []string{"reserving", "resolving"} {
		for _, after := range []bool{false, true} {
			all = append(all, death{name: fmt.Sprintf("%s, durable: %v", name, after), strike: func(s *server) <-chan struct{} {
				struck := make(chan struct{})
				die := func() error {
					s.kill()
					close(struck)
					return errors.Join(store.ErrUnknown, errors.New("the server died"))
				}
				arm := func() { s.state.beforeUpdate(die) }
				if after {
					arm = func() { s.state.afterUpdate(die) }
				}
				if n == 1 {
					last := arm
					arm = func() { s.state.afterUpdate(func() error { last(); return nil }) }
				}
				arm()
				return struck
			}})
		}
	}
	return all
}

// callsOfABatch counts the calls of storage that a batch of two versions makes.
func callsOfABatch(t testing.TB) int {
	t.Helper()
	s := newServer(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	va, vb := s.lake.stage(t, a, 1), s.lake.stage(t, b, 1)
	before := len(s.objects.Calls())
	if _, err := s.batch(context.Background(), va, vb); err != nil {
		t.Fatal(err)
	}
	return len(s.objects.Calls()) - before
}

// TestDeathAtEveryStep kills the server at every step of a batch: afterwards the batch is there as a whole or not at all, whichever
// table is looked at first; what was acknowledged is there; nothing stays pending; the request, sent again, succeeds (C2, C6, C7).
func TestDeathAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, d := range deaths(t) {
		for _, first := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s, table %d is read first", d.name, first), func(t *testing.T) {
				t.Parallel()
				dieOnce(t, d, first)
			})
		}
	}
}

func dieOnce(t *testing.T, d death, first int) {
	l := newLake(t)
	dying := l.server(t)
	tables := []table{dying.declare(t, "a"), dying.declare(t, "b")}
	versions := []staged{l.stage(t, tables[0], 1), l.stage(t, tables[1], 1)}
	struck := d.strike(dying)
	_, answer := dying.batch(context.Background(), versions...)
	within(t, "death", struck)

	s := l.server(t)
	seen := make([]bool, 2)
	for _, i := range []int{first, 1 - first} {
		_, err := s.describe(context.Background(), tables[i], 1)
		if err != nil {
			wantCode(t, err, api.CodeTableVersionNotFound)
		}
		seen[i] = err == nil
	}
	if seen[0] != seen[1] {
		t.Errorf("half of the batch is seen: %v", seen)
	}
	if answer == nil && !seen[0] {
		t.Error("the batch was acknowledged and is lost")
	}
	if answer != nil && seen[0] && api.CodeOf(answer) != api.CodeInternal {
		t.Errorf("the batch was refused with %v and is there", answer)
	}
	if ids := l.pending(t); len(ids) != 0 {
		t.Errorf("pending transactions %v", ids)
	}
	if _, err := s.batch(context.Background(), versions...); err != nil {
		t.Errorf("sent again: %v", err)
	}
	for i, tb := range tables {
		s.shows(t, tb, 1, versions[i].data)
		s.listed(t, tb, 1)
	}
}

// TestDeathAtEveryStepBesideABypassingWriter is the same with a foreign object in the second slot, which appears at the moment of
// death: the batch is there or undone as a whole, and the foreign version is never lost or overwritten (C10).
func TestDeathAtEveryStepBesideABypassingWriter(t *testing.T) {
	t.Parallel()
	for _, d := range deaths(t) {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			l := newLake(t)
			dying, s := l.server(t), l.server(t)
			a, b := dying.declare(t, "a"), dying.declare(t, "b")
			va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
			struck := d.strike(dying)
			_, answer := dying.batch(context.Background(), va, vb)
			within(t, "death", struck)
			foreign := l.tryBypass(t, b, 1)
			_, errA := s.describe(context.Background(), a, 1)
			_, errB := s.describe(context.Background(), b, 1)
			if errB != nil && (foreign != nil || errA == nil) {
				t.Errorf("version 1 of b: %v", errB)
			}
			if (errA == nil) != (foreign == nil && errB == nil) {
				t.Errorf("half of the batch is seen: a: %v, b: %v, foreign object put: %v", errA, errB, foreign != nil)
			}
			if answer == nil && errA != nil {
				t.Error("the batch was acknowledged and is lost")
			}
			if foreign != nil {
				l.holds(t, b.final(1), foreign)
				l.holds(t, a.final(1), nil)
			}
			if ids := l.pending(t); len(ids) != 0 {
				t.Errorf("pending transactions %v", ids)
			}
			s.runJobs(t, catalog.JobCleanAborted)
			if errA != nil {
				s.fill(t, a, 1, 1)
			}
			s.listed(t, a, 1)
		})
	}
}

// tryBypass is bypass where the name may be taken; it returns nil then.
func (l *lake) tryBypass(t testing.TB, tb table, v int64) []byte {
	t.Helper()
	data := lancetest.Manifest(lancetest.Spec{Version: lance.VersionNumber(v), Read: lance.VersionNumber(v - 1), Mark: "bypass " + uuid.NewString()})
	_, err := l.objects.PutIfAbsent(context.Background(), tb.final(v), data)
	if errors.Is(err, objstore.ErrExists) {
		return nil // what the dying server sent has landed meanwhile
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}
