package catalog_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// TestConflictWaitsForTheWinner holds rule C8 and the reason for it: a client that is refused describes the version at once, so that
// the loser is not answered before the winner can be read.
func TestConflictWaitsForTheWinner(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	winner, other := s.lake.stage(t, a, 1), s.lake.stage(t, b, 1)
	loser := s.lake.stage(t, a, 1)
	gate := s.objects.Hold(putOf(a.final(1)), objtest.Before)
	won := async(func() error { _, err := s.batch(context.Background(), winner, other); return err })
	within(t, "the winner's put", gate.Reached())
	judged := make(chan struct{})
	s.state.beforeUpdate(func() error { close(judged); return nil })
	lost := async(func() error { _, err := s.create(context.Background(), loser); return err })
	within(t, "the loser's reserving", judged)
	described := async(func() error { _, err := s.describe(context.Background(), a, 1); return err })
	// The state takes one update after another, so that the loser has been judged once these are through.
	for i := range 20 {
		s.declare(t, fmt.Sprint("behind ", i))
		select {
		case err := <-lost:
			t.Fatalf("the loser was answered before the winner's manifest was there: %v", err)
		case err := <-described:
			t.Fatalf("the version was described before its manifest was there: %v", err)
		default:
		}
	}
	s.lake.holds(t, a.final(1), nil)
	gate.Release()
	if err := within(t, "the winner", won); err != nil {
		t.Fatal(err)
	}
	wantCode(t, within(t, "the loser", lost), api.CodeConcurrentModification, `table "a"`, "version 1")
	if err := within(t, "describe", described); err != nil {
		t.Errorf("describe: %v", err)
	}
	s.shows(t, a, 1, winner.data)
}

// TestLoserOnAnotherServerFinishesTheWinner is the same where the loser's server does not know who is at it: before it refuses, it
// publishes the winner itself.
func TestLoserOnAnotherServerFinishesTheWinner(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	first, second := l.server(t), l.server(t)
	a, b := first.declare(t, "a"), first.declare(t, "b")
	va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
	gate := first.objects.Hold(putOf(a.final(1)), objtest.Before)
	won := async(func() error { _, err := first.batch(context.Background(), va, vb); return err })
	within(t, "the winner's put", gate.Reached())
	loser := l.stage(t, a, 1)
	help := second.objects.Hold(putOf(a.final(1)), objtest.Before)
	lost := async(func() error { _, err := second.create(context.Background(), loser); return err })
	select {
	case <-help.Reached():
	case err := <-lost:
		t.Fatalf("the loser was answered before the winner's manifest was there: %v", err)
	}
	help.Release()
	wantCode(t, within(t, "the loser", lost), api.CodeConcurrentModification)
	second.shows(t, a, 1, va.data)
	gate.Release()
	if err := within(t, "the winner", won); err != nil {
		t.Error(err)
	}
	second.shows(t, b, 1, vb.data)
}

// TestConflictWithAnAbandonedWinner is the same where the winner's server died: the loser's finishes the winner, then refuses (C7,
// C8). The winner's other table is seen as well.
func TestConflictWithAnAbandonedWinner(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s := l.server(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
	l.abandon(t, va, vb)
	_, err := s.create(context.Background(), l.stage(t, b, 1))
	wantCode(t, err, api.CodeConcurrentModification, `table "b"`, "version 1")
	s.shows(t, b, 1, vb.data)
	s.shows(t, a, 1, va.data)
}

// TestConflictCannotBeGivenWhileTheWinnerIsStuck answers 17, not 14, where the winner can be neither finished nor undone (C8, C11).
func TestConflictCannotBeGivenWhileTheWinnerIsStuck(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s := l.server(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
	l.abandon(t, va, vb)
	rival := l.stage(t, b, 1)
	s.objects.Fail(objtest.Match{Op: objtest.OpPutIfAbsent, Times: objtest.Forever}, objtest.Before, nil)
	_, err := s.create(context.Background(), rival)
	wantCode(t, err, api.CodeServiceUnavailable)
	s.objects.Heal()
	_, err = s.create(context.Background(), rival)
	wantCode(t, err, api.CodeConcurrentModification)
	s.shows(t, b, 1, vb.data)
}

// TestNextOfAPendingHead asks for the version after one that is still pending: it is finished first, then the number is judged
// (C5, C7).
func TestNextOfAPendingHead(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s := l.server(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
	l.abandon(t, va, vb)
	next := l.stage(t, b, 2)
	s.mustCreate(t, next)
	s.shows(t, b, 2, next.data)
	s.listed(t, a, 1)
	s.listed(t, b, 1, 2)
}

// TestNextOfAPendingHeadThatIsUndone asks for the version after one whose transaction cannot be completed: built upon what was never
// committed, it is refused (C5, C10).
func TestNextOfAPendingHeadThatIsUndone(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s := l.server(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	l.abandon(t, l.stage(t, a, 1), l.stage(t, b, 1))
	foreign := l.bypass(t, b, 1)
	_, err := s.create(context.Background(), l.stage(t, a, 2))
	wantCode(t, err, api.CodeConcurrentModification, `table "a"`)
	s.listed(t, a)
	l.holds(t, a.final(1), nil)
	l.holds(t, a.final(2), nil)
	s.shows(t, b, 1, foreign)
}
