package catalog_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// register writes the reference file of a branch, as clients do once its first version is committed.
func (l *lake) register(t testing.TB, tb table, b lance.Branch, fork int64) {
	t.Helper()
	ref := fmt.Sprintf(`{"parentBranch":null,"parentVersion":%d,"createAt":1795959467,"manifestSize":436,"metadata":{}}`, fork)
	l.put(t, lance.BranchKey(tb.dir, b), []byte(ref))
}

// wipe removes a branch as clients do: its reference and its directory.
func (l *lake) wipe(t testing.TB, tb table, b lance.Branch) {
	t.Helper()
	l.remove(t, lance.BranchKey(tb.dir, b))
	if _, err := l.objects.DeleteTree(context.Background(), lance.ChainDir(tb.dir, b)+"/"); err != nil {
		t.Fatal(err)
	}
}

// branched fails the test unless the versions of a branch are the given ones.
func (s *server) branched(t testing.TB, tb table, b lance.Branch, want ...int64) {
	t.Helper()
	got, err := s.listOn(tb, b)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("versions of branch %s are %v, want %v", b, got, want)
	}
}

// TestFirstVersionOfABranch commits the first version of a branch at the number that it forks from, before its reference exists
// (C5; case D7), and the next ones after it. Main does not notice.
func TestFirstVersionOfABranch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 3)
	_, err := s.listOn(tb, "exp")
	wantCode(t, err, api.CodeTableBranchNotFound)
	s.mustCreate(t, s.lake.stageOn(t, tb, "exp", 3))
	s.lake.register(t, tb, "exp", 3)
	s.mustCreate(t, s.lake.stageOn(t, tb, "exp", 4))
	_, err = s.create(context.Background(), s.lake.stageOn(t, tb, "exp", 6))
	wantCode(t, err, api.CodeConcurrentModification, `branch "exp"`)
	s.branched(t, tb, "exp", 3, 4)
	s.listed(t, tb, 1, 2, 3)
	// A branch that is registered and has no version yet begins where its reference says.
	s.lake.register(t, tb, "late", 2)
	s.branched(t, tb, "late")
	_, err = s.create(context.Background(), s.lake.stageOn(t, tb, "late", 5))
	wantCode(t, err, api.CodeConcurrentModification, "forks from version 2")
	s.mustCreate(t, s.lake.stageOn(t, tb, "late", 2))
	s.branched(t, tb, "late", 2)
}

// TestBranchesInOneBatch commits versions of main and of two branches in one step (C2).
func TestBranchesInOneBatch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 1)
	versions := []staged{s.lake.stageOn(t, tb, "x", 1), s.lake.stage(t, tb, 2), s.lake.stageOn(t, tb, "y/z", 1), s.lake.stageOn(t, tb, "x", 2)}
	if _, err := s.batch(context.Background(), versions...); err != nil {
		t.Fatal(err)
	}
	s.lake.register(t, tb, "x", 1)
	s.lake.register(t, tb, "y/z", 1)
	s.branched(t, tb, "x", 1, 2)
	s.branched(t, tb, "y/z", 1)
	s.listed(t, tb, 1, 2)
	s.lake.holds(t, tb.finalOn("y/z", 1), versions[2].data)
}

// TestDeletedBranchStartsAnew deletes a branch in storage, which nobody tells the catalog of (client contract, fact 67): its versions
// are gone, and its name may begin anew at another fork.
func TestDeletedBranchStartsAnew(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 3)
	s.mustCreate(t, s.lake.stageOn(t, tb, "exp", 1))
	s.lake.register(t, tb, "exp", 1)
	s.mustCreate(t, s.lake.stageOn(t, tb, "exp", 2))
	s.lake.wipe(t, tb, "exp")
	_, err := s.listOn(tb, "exp")
	wantCode(t, err, api.CodeTableBranchNotFound)
	anew := s.lake.stageOn(t, tb, "exp", 3)
	s.mustCreate(t, anew)
	s.lake.register(t, tb, "exp", 3)
	s.branched(t, tb, "exp", 3)
	s.lake.holds(t, tb.finalOn("exp", 3), anew.data)
	s.listed(t, tb, 1, 2, 3)
}

// TestBranchBeginsAnewWithoutAReadBetween is the same where the first that the catalog hears of the deletion is the new commit.
func TestBranchBeginsAnewWithoutAReadBetween(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 1)
	s.mustCreate(t, s.lake.stageOn(t, tb, "exp", 1))
	s.lake.register(t, tb, "exp", 1)
	s.mustCreate(t, s.lake.stageOn(t, tb, "exp", 2))
	s.lake.wipe(t, tb, "exp")
	s.mustCreate(t, s.lake.stageOn(t, tb, "exp", 1))
	s.lake.register(t, tb, "exp", 1)
	s.branched(t, tb, "exp", 1)
}

// TestZombieBranchIsRefused continues a branch that has versions and no reference: it was deleted half, or never finished (case D7).
func TestZombieBranchIsRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 1)
	first := s.lake.stageOn(t, tb, "exp", 1)
	s.mustCreate(t, first)
	_, err := s.create(context.Background(), s.lake.stageOn(t, tb, "exp", 2))
	wantCode(t, err, api.CodeTableBranchNotFound, "exp")
	s.lake.holds(t, tb.finalOn("exp", 2), nil)
	// The same first commit, sent again, is a replay all the same.
	s.mustCreate(t, first)
	s.lake.register(t, tb, "exp", 1)
	s.mustCreate(t, s.lake.stageOn(t, tb, "exp", 2))
}

// TestOutageIsNoDeletedBranch keeps the rows of a branch whose reference or head cannot be read: only proven absence counts.
func TestOutageIsNoDeletedBranch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 1)
	s.mustCreate(t, s.lake.stageOn(t, tb, "exp", 1))
	s.lake.register(t, tb, "exp", 1)
	next := s.lake.stageOn(t, tb, "exp", 2)
	for _, key := range []string{lance.BranchKey(tb.dir, "exp"), tb.finalOn("exp", 1)} {
		s.objects.Fail(objtest.Match{Key: is(key), Times: objtest.Forever}, objtest.Before, nil)
		_, err := s.listOn(tb, "exp")
		if key == tb.finalOn("exp", 1) {
			wantCode(t, err, api.CodeServiceUnavailable)
		} else {
			_, err = s.create(context.Background(), next)
			wantCode(t, err, api.CodeServiceUnavailable)
		}
		s.objects.Heal()
	}
	s.branched(t, tb, "exp", 1)
	s.mustCreate(t, next)
	s.branched(t, tb, "exp", 1, 2)
}

// TestPendingFirstVersionOfABranch leaves the first version of a branch pending: it is neither lost nor taken for a deleted branch.
func TestPendingFirstVersionOfABranch(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s := l.server(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 1)
	first := l.stageOn(t, tb, "exp", 1)
	l.abandon(t, first)
	_, err := s.create(context.Background(), l.stageOn(t, tb, "exp", 1))
	wantCode(t, err, api.CodeConcurrentModification)
	l.holds(t, tb.finalOn("exp", 1), first.data)
	l.register(t, tb, "exp", 1)
	s.branched(t, tb, "exp", 1)
}
