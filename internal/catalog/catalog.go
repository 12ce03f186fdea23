// Package catalog holds the rules: what may be done to namespaces, tables, versions, tags and branches, and how one or many
// versions are committed at once. One method of Catalog per operation, one file per noun; the commit itself, shared by every
// operation that makes versions, stands in commit.go, reserve.go, publish.go, resolve.go, help.go and adopt.go and follows the numbered rules of
// docs/commit.md (C1 to C15), which comments cite.
//
// What does not live here: HTTP, SQL and the ways of any particular storage.
package catalog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// Options say what a catalog is made of. Store and at least one root are required; zero values of the rest mean the defaults.
type Options struct {
	Store store.Store
	// Roots are the allowed roots; tables that do not ask for a place go to the first.
	Roots []Root
	// Notify is told of everything worth a line in the log that no caller is told of: adoptions, helps, aborts. nil drops it.
	Notify func(context.Context, Event)
	// Wake is called after a job was added, so that its runner need not wait for its next look. nil does nothing.
	Wake func()
	// MaxBatch bounds the entries of one batch (default 10,000).
	MaxBatch int
	// MaxManifest bounds the bytes of one manifest (default 1 GiB).
	MaxManifest int64
	// ManifestMemory bounds the bytes of manifests that commits hold at a time, beside half as much that they keep (default 1 GiB, and at
	// least MaxManifest).
	ManifestMemory int64
	// Parallel bounds the storage calls that one request makes at a time (default 32), and ParallelDistant those to a storage that is
	// distant, where waiting is most of what they do (default four times as many).
	Parallel, ParallelDistant int
	// CommitTimeout bounds what is left of a commit once reserving has begun (default 2 minutes; C11).
	CommitTimeout time.Duration
	// PurgeSlice is how long the objects of a dropped table are removed at a time (default 20 s).
	PurgeSlice time.Duration
	// StagedKeep is how long a staged manifest outlives the commit that published it (default 10 s; C10).
	StagedKeep time.Duration
	// Reserved are directories that no table may hold or lie in, unless in a root inside of one: where the state is.
	Reserved []lance.Location
	// KeepUnsynced says that the state lies on one machine with the storage and is durable in every commit: it then keeps manifests that
	// an objstore.Lazy has put soon until they are synced, and RestoreUnsynced must be called before serving.
	KeepUnsynced bool
}

// Event is something that happened to a table without anybody asking for it.
type Event struct {
	Kind        EventKind
	Table       string
	Version     lance.VersionNumber
	Transaction lance.TransactionID
	Detail      string
}

// EventKind names what happened.
type EventKind string

// The kinds of events.
const (
	EventAdopted EventKind = "adopted" // a version that a writer published behind the catalog's back (C9)
	EventHelped  EventKind = "helped"  // a transaction that another server, or a crash, had left half done (C7)
	EventAborted EventKind = "aborted" // a transaction that a bypassing writer beat (C10)
	EventPruned  EventKind = "pruned"  // a version whose manifest a client's cleanup removed
	EventZombie  EventKind = "removed" // the content of an aborted transaction, met in a slot and removed (C10)
	EventSkipped EventKind = "skipped" // an object under a manifest's name that cannot be adopted
	// A manifest that a power failure took away or damaged, and that is whole again; storage that failed to make manifests durable.
	EventRestored EventKind = "restored"
	EventUnsynced EventKind = "unsynced"
	EventShared   EventKind = "shared root" // another catalog uses a root too
)

// Counters count since the start of the process.
type Counters struct {
	Commits, Versions, Conflicts, Replays, Helps, Adoptions, Aborts, Pruned, Zombies atomic.Int64
	// Reconciled are tables that were compared with storage in the background, Unreconciled those of them for which it did not work.
	Reconciled, Unreconciled atomic.Int64
}

// Catalog performs the operations. All methods are safe for concurrent use. Errors are *api.Error with a code of the
// specification; anything else that is returned is internal.
type Catalog struct {
	opts     Options
	store    store.Store
	secret   []byte
	counters Counters

	running sync.WaitGroup // commits that outlive their callers (C11)

	mu     sync.Mutex
	active map[lance.TransactionID]chan struct{} // transactions being finished in this process; closed when done
	closed bool

	staged     *stagedCleaner
	stagedLong *stagedCleaner // of roots whose storage does not judge all conditions
	memory     *memory
	room       *room
	syncer     *manifestSyncer
	inUse      inUse
	started    time.Time
	// restored says that RestoreUnsynced has seen to what the state kept before: only then may anything of it be let go.
	restored atomic.Bool
}

// New opens a catalog on a state that has been migrated. It makes the catalog's secret on first use, and marks the roots that it has
// not used before; it fails where a root that it has used is not there, or not allowed any more although tables lie under it.
func New(ctx context.Context, opts Options) (*Catalog, error) {
	if opts.Store == nil || len(opts.Roots) == 0 {
		return nil, errors.New("catalog: a store and at least one root are required")
	}
	setDefault(&opts.MaxBatch, 10_000)
	setDefault(&opts.MaxManifest, 1<<30)
	setDefault(&opts.ManifestMemory, 1<<30)
	setDefault(&opts.Parallel, 32)
	setDefault(&opts.ParallelDistant, 4*opts.Parallel)
	setDefault(&opts.CommitTimeout, 2*time.Minute)
	setDefault(&opts.StagedKeep, 10*time.Second)
	setDefault(&opts.PurgeSlice, 20*time.Second)
	if opts.Notify == nil {
		opts.Notify = func(context.Context, Event) {}
	}
	if opts.Wake == nil {
		opts.Wake = func() {}
	}
	c := &Catalog{opts: opts, store: opts.Store, started: time.Now(), active: map[lance.TransactionID]chan struct{}{}}
	secret, err := c.loadSecret(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the catalog's secret: %w", err)
	}
	c.secret = secret
	if err := c.openRoots(ctx); err != nil {
		return nil, err
	}
	c.staged = newStagedCleaner(opts.StagedKeep)
	c.stagedLong = newStagedCleaner(max(opts.StagedKeep, lateKeep))
	c.memory = newMemory()
	c.room = newRoom(opts.ManifestMemory, opts.MaxManifest)
	c.syncer = &manifestSyncer{sync: c.syncOwn, stop: make(chan struct{}), failed: func(err error) {
		c.opts.Notify(context.Background(), Event{Kind: EventUnsynced, Detail: err.Error()})
	}}
	return c, nil
}

// Secret returns the catalog's secret, which signs page tokens and keys fingerprints. It is the same for all servers of one state.
func (c *Catalog) Secret() []byte { return c.secret }

// Counters returns the counters of this process.
func (c *Catalog) Counters() *Counters { return &c.counters }

// Ping reports whether the state can be reached.
func (c *Catalog) Ping(ctx context.Context) error {
	return c.store.Ping(store.WithOperation(ctx, "readyz"))
}

// PingStorage reports whether every root is there.
func (c *Catalog) PingStorage(ctx context.Context) error {
	for _, r := range c.opts.Roots {
		if err := r.prove(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close waits until commits in flight have ended, or ctx ends, removes the staged manifests that are due, and
// has storage make durable what the state still keeps for it. It may be called twice.
func (c *Catalog) Close(ctx context.Context) error {
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

const secretKey = "secret"

func (c *Catalog) loadSecret(ctx context.Context) ([]byte, error) {
	fresh := make([]byte, 32)
	if _, err := rand.Read(fresh); err != nil {
		return nil, err
	}
	var text string
	read := func(r store.Reader) (err error) {
		text, err = r.Meta(secretKey)
		return err
	}
	err := c.store.View(ctx, read)
	if errors.Is(err, store.ErrNotFound) {
		err = c.store.Update(ctx, func(tx store.Tx) error {
			if err := tx.InsertMeta(secretKey, hex.EncodeToString(fresh)); err != nil && !errors.Is(err, store.ErrExists) {
				return err
			}
			return read(tx)
		})
	}
	if err != nil {
		return nil, err
	}
	return hex.DecodeString(text)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// notify tells of an event.
func (c *Catalog) notify(ctx context.Context, e Event) { c.opts.Notify(ctx, e) }

// wakeJobs tells the runner of jobs that some may have been added.
func (c *Catalog) wakeJobs() { c.opts.Wake() }

// wake tells the runner of jobs that some were added.
func (c *Catalog) wake(queued bool) {
	if queued {
		c.opts.Wake()
	}
}

func (c *Catalog) now() time.Time { return time.Now() }
