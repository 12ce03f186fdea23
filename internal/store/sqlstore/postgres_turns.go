package sqlstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lancerest/lancerest/internal/store"
)

// turns bounds how many Updates of this process run and wait. It is for speed, and so that Views always find a connection: the database
// decides what may be committed.
type turns struct {
	// queue has an element for each Update that runs or waits, running one for each that runs.
	queue, running chan struct{}
	// doubtful is how many of those that run are commits that nobody waits for any longer, because no answer has come: in the database
	// they may wait for a standby, and keep their connections.
	doubtful atomic.Int64
	// losers has an element while an Update that lost against another transaction is not through. Where all meet on the same rows most
	// of the turns wait for it, so that few meet at once; where few meet nobody waits.
	losers chan struct{}
	// patience bounds the wait for a turn, and lockPatience that of a loser for another one.
	patience, lockPatience time.Duration
}

func newTurns(o PostgresOptions) *turns {
	return &turns{
		queue: make(chan struct{}, o.Writers+o.QueueLength), running: make(chan struct{}, o.Writers), losers: make(chan struct{}, 1),
		patience: o.StatementTimeout, lockPatience: o.LockTimeout,
	}
}

// enter waits for a turn and returns what ends it. It returns ctx's error, and store.ErrUnavailable where too many wait, where none ends
// its turn in time, or at once where every turn is held by a commit that the database does not confirm.
func (t *turns) enter(ctx context.Context) (leave func(), err error) {
	select {
	case t.queue <- struct{}{}:
	default:
		return nil, fmt.Errorf("%d transactions run or wait already: %w", cap(t.queue), store.ErrUnavailable)
	}
	if n := t.doubtful.Load(); n >= int64(cap(t.running)) {
		<-t.queue
		return nil, fmt.Errorf("%d commits wait for the database to confirm them, as when no standby answers: %w", n, store.ErrUnavailable)
	}
	late := time.NewTimer(t.patience)
	defer late.Stop()
	select {
	case t.running <- struct{}{}:
		return func() { <-t.running; <-t.queue }, nil
	case <-ctx.Done():
		<-t.queue
		return nil, ctx.Err()
	case <-late.C:
		<-t.queue
		return nil, fmt.Errorf("waited %s for one of %d transactions to end: %w", t.patience, cap(t.running), store.ErrUnavailable)
	}
}

// doubt marks a turn as one of a commit that is in doubt, and returns what ends it.
func (t *turns) doubt(leave func()) func() {
	t.doubtful.Add(1)
	return func() {
		t.doubtful.Add(-1)
		leave()
	}
}

// goAlone waits until no other Update that lost is at work, but not for ever: one whose commit waits for its standby would hold up all others.
// It returns what lets the next one go.
func (t *turns) goAlone() (done func()) {
	late := time.NewTimer(t.lockPatience)
	defer late.Stop()
	select {
	case t.losers <- struct{}{}:
		return func() { <-t.losers }
	case <-late.C:
		return func() {}
	}
}

// waiting is how many Updates wait for their turn now.
func (t *turns) waiting() int { return max(0, len(t.queue)-len(t.running)) }
