// Package finish takes transactions that were reserved to their ends: it puts their manifests under the final names, makes all that they do
// visible in one database transaction, or undoes them, for whoever began and for whoever meets them half done. It follows the rules C6, C7, C10 and C11
// of docs/commit.md.
//
// What does not live here: what may be reserved (package commit), and versions that nobody reserved (package chain).
package finish

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/state"
)

// Options say what a Completer works on. All fields are required, but those of which something else is said.
type Options struct {
	State  *state.State
	Places *place.Places
	// Notify is told of everything worth a line in the log that no caller is told of.
	Notify func(context.Context, Event)
	// Wake is called after a job was added, so that its runner need not wait for its next look.
	Wake func()
	// CommitTimeout bounds what is left of a commit once reserving has begun (C11).
	CommitTimeout time.Duration
	// StagedKeep is how long a staged manifest outlives the commit that published it (C10).
	StagedKeep time.Duration
	// KeepUnsynced says that the state keeps manifests that an objstore.Lazy has put soon until they are synced, and that RestoreUnsynced is called
	// before anything is served; false is no.
	KeepUnsynced bool
}

// Completer takes reserved transactions to their ends. All methods are safe for concurrent use, in one process or in many.
type Completer struct {
	opts     Options
	state    *state.State
	places   *place.Places
	counters Counters
	started  time.Time

	running sync.WaitGroup // commits that outlive their callers (C11)

	mu     sync.Mutex
	active map[lance.TransactionID]chan struct{} // transactions being finished in this process; closed when done
	closed bool

	staged     *stagedCleaner
	stagedLong *stagedCleaner // of roots whose storage does not judge all conditions
	syncer     *manifestSyncer
	// restored says that RestoreUnsynced has seen to what the state kept before: only then may anything of it be let go.
	restored atomic.Bool
}

// New returns a Completer. It must be closed.
func New(opts Options) *Completer {
	c := &Completer{
		opts: opts, state: opts.State, places: opts.Places, started: time.Now(), active: map[lance.TransactionID]chan struct{}{},
		staged: newStagedCleaner(opts.StagedKeep), stagedLong: newStagedCleaner(max(opts.StagedKeep, lateKeep)),
	}
	c.syncer = &manifestSyncer{sync: c.syncOwn, stop: make(chan struct{}), failed: func(err error) {
		c.Notify(context.Background(), Event{Kind: EventUnsynced, Detail: err.Error()})
	}}
	return c
}

// Counters returns the counters of this process, for all who take part in commits to count in.
func (c *Completer) Counters() *Counters { return &c.counters }

// Close waits until commits in flight have ended, or ctx ends, which is its error; then it removes the staged manifests that are due, and
// has storage make durable what the state still keeps for it. It may be called twice.
func (c *Completer) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		c.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("wait for commits in flight: %w", ctx.Err())
	}
	c.staged.close(ctx)
	c.stagedLong.abandon()
	c.syncer.close(ctx)
	return nil
}
