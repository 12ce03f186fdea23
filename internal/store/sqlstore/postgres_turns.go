package sqlstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/lancerest/lancerest/internal/store"
)

// turns bounds how many Updates of this process run and wait. It is for speed alone: the database decides what may be committed.
type turns struct {
	// queue has an element for each Update that runs or waits, running one for each that runs.
	queue, running chan struct{}
	// losers is held by an Update that lost against another transaction, until it is through. Where all meet on the same rows most
	// of the turns wait for it, so that few meet at once; where few meet nobody waits.
	losers sync.Mutex
}

func newTurns(writers, queueLength int) *turns {
	return &turns{queue: make(chan struct{}, writers+queueLength), running: make(chan struct{}, writers)}
}

// enter waits for a turn and returns what ends it. It returns store.ErrUnavailable at once where too many wait, and ctx's error.
func (t *turns) enter(ctx context.Context) (leave func(), err error) {
	select {
	case t.queue <- struct{}{}:
	default:
		return nil, fmt.Errorf("%d transactions run or wait already: %w", cap(t.queue), store.ErrUnavailable)
	}
	select {
	case t.running <- struct{}{}:
		return func() { <-t.running; <-t.queue }, nil
	case <-ctx.Done():
		<-t.queue
		return nil, ctx.Err()
	}
}

// waiting is how many Updates wait for their turn now.
func (t *turns) waiting() int { return max(0, len(t.queue)-len(t.running)) }
