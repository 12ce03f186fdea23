package turns_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore/turns"
)

const (
	long  = time.Minute
	short = 20 * time.Millisecond
)

func enter(t *testing.T, all *turns.Turns) *turns.Turn {
	t.Helper()
	turn, err := all.Enter(t.Context())
	if err != nil {
		t.Fatalf("Enter: %v", err)
	}
	return turn
}

// begins calls f and reports whether it has ended, which a test waits for where it should.
func begins(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

func ended(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(long):
		t.Fatalf("%s: it still waits", what)
	}
}

func waits(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
		t.Errorf("%s: it does not wait", what)
	case <-time.After(short):
	}
}

// until waits for what another goroutine does.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(long); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, long)
		}
	}
}

func TestEnter(t *testing.T) {
	t.Parallel()
	all := turns.New(turns.Options{Running: 2, Waiting: 1, Patience: long, LoserPatience: long})
	first, second := enter(t, all), enter(t, all)
	third := make(chan *turns.Turn, 1)
	go func() {
		turn, err := all.Enter(t.Context())
		if err != nil {
			t.Errorf("Enter: %v", err)
		}
		third <- turn
	}()
	until(t, "one waits", func() bool { return all.Waiting() == 1 })
	if _, err := all.Enter(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("one too many: got error %v, want ErrUnavailable", err)
	}
	first.Leave()
	(<-third).Leave()
	second.Leave()
	if n := all.Waiting(); n != 0 {
		t.Errorf("%d wait", n)
	}
}

func TestEnterGivesUp(t *testing.T) {
	t.Parallel()
	all := turns.New(turns.Options{Running: 1, Waiting: 9, Patience: short, LoserPatience: long})
	turn := enter(t, all)
	if _, err := all.Enter(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("nobody leaves: got error %v, want ErrUnavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all.Enter(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller has gone: got error %v, want its context's", err)
	}
	turn.Doubt()
	slow := turns.New(turns.Options{Running: 1, Waiting: 9, Patience: long, LoserPatience: long})
	doubtful := enter(t, slow)
	doubtful.Doubt()
	if _, err := slow.Enter(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("every turn is in doubt: got error %v, want ErrUnavailable at once", err)
	}
	doubtful.Leave()
	enter(t, slow).Leave()
}

// Losers go one by one beside those that have only begun; one that lost again and again goes alone, and lets the others in when it is through.
func TestGiveWay(t *testing.T) {
	t.Parallel()
	all := turns.New(turns.Options{Running: 3, Waiting: 9, Patience: long, LoserPatience: long})
	one, two, fresh := enter(t, all), enter(t, all), enter(t, all)
	one.GiveWay(1)
	second := begins(func() { two.GiveWay(1) })
	waits(t, "a second loser", second)
	enter(t, all).Leave() // in the second loser's place
	alone := begins(func() { one.GiveWay(3) })
	waits(t, "one that is to go alone", alone)
	late := begins(func() { enter(t, all).Leave() })
	waits(t, "one that begins while another is to go alone", late)
	fresh.Leave()
	ended(t, "alone", alone)
	waits(t, "one that begins while another goes alone", late)
	one.GiveWay(4) // it has all it can have
	one.Leave()
	ended(t, "the second loser", second)
	ended(t, "one that began meanwhile", late)
	two.Leave()
}

// Whoever waits for a loser whose commit is in doubt goes on at last, and at once when that has told of its doubt.
func TestDoubt(t *testing.T) {
	t.Parallel()
	all := turns.New(turns.Options{Running: 2, Waiting: 9, Patience: long, LoserPatience: short})
	stuck, other := enter(t, all), enter(t, all)
	stuck.GiveWay(1)
	ended(t, "a loser behind one that is stuck", begins(func() { other.GiveWay(1) }))
	ended(t, "one that is to go alone beside one that is stuck", begins(func() { other.GiveWay(3) }))
	other.Leave()
	stuck.GiveWay(3) // alone
	stuck.Doubt()
	next := enter(t, all)
	next.GiveWay(1)
	next.Leave()
	stuck.Leave()
}
