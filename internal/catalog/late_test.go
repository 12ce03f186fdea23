package catalog_test

import (
	"context"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/check"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/alone"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// newHeedlessServer starts a server on a storage whose server judges no condition.
func newHeedlessServer(t *testing.T) *server {
	t.Helper()
	l := newLake(t)
	inner := &objtest.Heedless{Store: l.objects}
	judging, err := alone.New(inner, objstore.Conditions{})
	if err != nil {
		t.Fatal(err)
	}
	l.objects = judging
	return l.server(t, func(o *catalog.Options) { o.Roots[0].Unjudged = "anything" })
}

// TestLateRequestsOnAStorageWithoutConditions: what an aborted transaction sent can land on the version that was committed after it. That version
// comes back from its staged copy.
func TestLateRequestsOnAStorageWithoutConditions(t *testing.T) {
	t.Parallel()
	for name, land := range map[string]func(*testing.T, *server, beaten){
		"its put": func(t *testing.T, s *server, x beaten) {
			s.lake.remove(t, x.a.final(1))
			s.lake.put(t, x.a.final(1), x.va.data)
		},
		"its removal": func(t *testing.T, s *server, x beaten) { s.lake.remove(t, x.a.final(1)) },
		"nothing":     func(*testing.T, *server, beaten) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHeedlessServer(t)
			x := s.beat(t)
			next := s.lake.stage(t, x.a, 1)
			s.mustCreate(t, next)
			land(t, s, x)
			if n := s.runJobs(t, catalog.JobCleanAborted); n != 1 {
				t.Errorf("%d jobs, want one", n)
			}
			s.lake.holds(t, x.a.final(1), next.data)
			s.shows(t, x.a, 1, next.data)
			s.shows(t, x.b, 1, x.foreign)
			want := 1
			if name == "nothing" {
				want = 0
			}
			if got := s.told(catalog.EventRestored); got != want {
				t.Errorf("told %d times that a version was written again, want %d", got, want)
			}
			// And once more later: the job has queued another.
			land(t, s, x)
			if n := s.runJobs(t, catalog.JobCleanAborted); n != 2 {
				t.Errorf("%d jobs, want the first and the one that it queued", n)
			}
			s.lake.holds(t, x.a.final(1), next.data)
		})
	}
}

// TestOthersAreNotLookedAfter: where the storage judges conditions an abort is looked at once, and a version whose manifest a client cleaned up
// stays away.
func TestOthersAreNotLookedAfter(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	x := s.beat(t)
	s.mustCreate(t, s.lake.stage(t, x.a, 1))
	s.lake.remove(t, x.a.final(1))
	for range 2 {
		if n := s.runJobs(t, catalog.JobCleanAborted); n != 1 {
			t.Errorf("%d jobs, want one", n)
		}
	}
	s.lake.holds(t, x.a.final(1), nil)
}

// TestCheckNotesAStorageWithoutConditions: the check says what the operator has to keep away from such a root, and that nothing is wrong.
func TestCheckNotesAStorageWithoutConditions(t *testing.T) {
	t.Parallel()
	s := newHeedlessServer(t)
	s.fill(t, s.declare(t, "t"), 1, 2)
	var notes []string
	sum, err := s.Check(context.Background(), check.Options{Report: func(f check.Finding) {
		if f.Kind != check.Staged {
			notes = append(notes, string(f.Kind)+": "+f.What)
		}
	}})
	if err != nil || sum.Versions != 2 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "storage: ") || !strings.Contains(notes[0], "does not know anything") || !strings.Contains(notes[0], "past the catalog") {
		t.Errorf("notes %q, want one that says what is to be kept away", notes)
	}
}
