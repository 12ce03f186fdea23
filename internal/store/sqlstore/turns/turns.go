// Package turns bounds how many transactions of a process run and wait, and has those give way to each other that meet again and again. It is for
// speed, and so that readers always find a connection: the database decides what may be committed.
//
// What does not live here: SQL, and why a transaction lost.
package turns

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lancerest/lancerest/internal/store"
)

// Options say how many may run and wait, and how long. All of them are required.
type Options struct {
	Running, Waiting int
	// Patience bounds the wait for a turn, and LoserPatience that of a transaction that lost for others.
	Patience, LoserPatience time.Duration
}

// Turns is a process's turns. Its methods are safe for concurrent use. Create it with New.
type Turns struct {
	options Options
	// queue has an element for each transaction that runs or waits.
	queue chan struct{}
	// running has a place for each that runs. Whoever waits comes in the order of arrival, also one that wants all places.
	running *semaphore.Weighted
	// losers is held by a transaction that lost against another one, until it is through. Where all meet on the same rows most of the places
	// wait for it, so that few meet at once; where few meet nobody waits.
	losers *semaphore.Weighted

	runs, doubtful atomic.Int64
}

// Turn is what a transaction holds while it runs. It is used by one goroutine at a time.
type Turn struct {
	turns *Turns
	holds int64 // places
	loser bool  // it holds losers
	doubt bool
}

// aloneAfter is how often a transaction loses before others of its process wait for it.
const aloneAfter = 3

// New returns turns that nobody has.
func New(o Options) *Turns {
	return &Turns{
		options: o, queue: make(chan struct{}, o.Running+o.Waiting),
		running: semaphore.NewWeighted(int64(o.Running)), losers: semaphore.NewWeighted(1),
	}
}

// Enter waits for a turn. It returns ctx's error, and store.ErrUnavailable where too many wait, where none ends in time, or at once where every
// turn is in doubt.
func (t *Turns) Enter(ctx context.Context) (*Turn, error) {
	select {
	case t.queue <- struct{}{}:
	default:
		return nil, fmt.Errorf("%d transactions run or wait already: %w", cap(t.queue), store.ErrUnavailable)
	}
	if err := t.place(ctx); err != nil {
		<-t.queue
		return nil, err
	}
	t.runs.Add(1)
	return &Turn{turns: t, holds: 1}, nil
}

// place waits for a place.
func (t *Turns) place(ctx context.Context) error {
	if n := t.doubtful.Load(); n >= int64(t.options.Running) {
		return fmt.Errorf("%d commits wait for the database to confirm them, as when no standby answers: %w", n, store.ErrUnavailable)
	}
	bounded, cancel := context.WithTimeout(ctx, t.options.Patience)
	defer cancel()
	if err := t.running.Acquire(bounded, 1); err == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("waited %s for one of %d transactions to end: %w", t.options.Patience, t.options.Running, store.ErrUnavailable)
}

// Waiting is how many wait for their turn now.
func (t *Turns) Waiting() int { return max(0, len(t.queue)-int(t.runs.Load())) }

// GiveWay is called before a transaction runs again that has lost so many times. The first time it waits until no other loser is at work. One
// that has lost again and again against those that had only begun has them wait until it is through. It keeps no place while it waits, and
// does not wait for ever: a loser whose commit the database does not confirm must not hold up all others.
func (t *Turn) GiveWay(lost int) {
	want := t.holds
	if lost >= aloneAfter {
		want = int64(t.turns.options.Running)
	}
	if t.loser && t.holds == want {
		return
	}
	bounded, cancel := context.WithTimeout(context.Background(), t.turns.options.LoserPatience)
	defer cancel()
	t.turns.running.Release(t.holds)
	if !t.loser {
		t.loser = t.turns.losers.Acquire(bounded, 1) == nil
	}
	if t.holds = want; t.turns.running.Acquire(bounded, want) != nil {
		t.holds = 1
		_ = t.turns.running.Acquire(context.Background(), 1) // others do not run for ever
	}
}

// Doubt lets others run beside a commit that nobody waits for any longer, although no answer has come. Its turn goes on until it leaves.
func (t *Turn) Doubt() {
	t.stopLosing()
	t.turns.running.Release(t.holds - 1)
	t.holds, t.doubt = 1, true
	t.turns.doubtful.Add(1)
}

// Leave ends the turn.
func (t *Turn) Leave() {
	t.stopLosing()
	if t.doubt {
		t.turns.doubtful.Add(-1)
	}
	t.turns.runs.Add(-1)
	t.turns.running.Release(t.holds)
	<-t.turns.queue
}

func (t *Turn) stopLosing() {
	if t.loser {
		t.turns.losers.Release(1)
		t.loser = false
	}
}
