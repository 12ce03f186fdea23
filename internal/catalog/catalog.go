// Package catalog holds the rules of names: what may be done to namespaces, tables, versions, tags and branches. One method of Catalog per
// operation, one file per noun. It puts together what an operation needs: the places of tables (package place), what versions they
// have (commit/chain), and commits (commit and commit/finish), which follow the numbered rules of docs/commit.md (C1 to C15).
//
// What does not live here: HTTP, SQL and the ways of any particular storage.
package catalog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/lancerest/lancerest/internal/check"
	"github.com/lancerest/lancerest/internal/commit"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/commit/finish"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/memory"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/state"
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

// What a catalog is given and tells has its names here too.
type (
	// Root is a place where tables may live.
	Root = place.Root
	// Event is something that happened to a table without anybody asking for it.
	Event = finish.Event
	// EventKind names what happened.
	EventKind = finish.EventKind
	// Counters count since the start of the process.
	Counters = finish.Counters
	// RecoverScope says which pending transactions to finish.
	RecoverScope = finish.RecoverScope
)

// The kinds of events (package finish says more), the scopes of Recover, the name of a root's marker, and the property that says whether the
// catalog manages versions.
const (
	EventAdopted  = finish.EventAdopted
	EventHelped   = finish.EventHelped
	EventAborted  = finish.EventAborted
	EventPruned   = finish.EventPruned
	EventZombie   = finish.EventZombie
	EventSkipped  = finish.EventSkipped
	EventRestored = finish.EventRestored
	EventUnsynced = finish.EventUnsynced
	EventShared   = finish.EventShared

	RecoverStale = finish.RecoverStale
	RecoverAll   = finish.RecoverAll

	Marker          = place.Marker
	ManagedProperty = chain.ManagedProperty
)

// Catalog performs the operations. All methods are safe for concurrent use. Errors are *api.Error with a code of the
// specification; anything else that is returned is internal.
type Catalog struct {
	opts      Options
	secret    []byte
	state     *state.State
	places    *place.Places
	completer *finish.Completer
	chains    *chain.Chains
	committer *commit.Committer
	memory    *memory.Memory
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
	c := &Catalog{opts: opts, state: &state.State{Store: opts.Store}, memory: memory.New()}
	var err error
	if c.secret, err = c.loadSecret(ctx); err != nil {
		return nil, fmt.Errorf("load the catalog's secret: %w", err)
	}
	c.places = place.New(place.Options{
		Roots: opts.Roots, Reserved: opts.Reserved, MaxManifest: opts.MaxManifest, ManifestMemory: opts.ManifestMemory,
		Parallel: opts.Parallel, ParallelDistant: opts.ParallelDistant,
	})
	registry := place.Registry{Store: opts.Store, Secret: c.secret, Shared: func(ctx context.Context, what string) {
		opts.Notify(ctx, Event{Kind: EventShared, Detail: what})
	}}
	if err := c.places.Open(ctx, registry); err != nil {
		return nil, err
	}
	c.completer = finish.New(finish.Options{
		State: c.state, Places: c.places, Notify: opts.Notify, Wake: opts.Wake, CommitTimeout: opts.CommitTimeout, StagedKeep: opts.StagedKeep,
		KeepUnsynced: opts.KeepUnsynced,
	})
	c.chains = chain.New(chain.Options{State: c.state, Places: c.places, Completer: c.completer, Memory: c.memory})
	c.committer = commit.New(commit.Options{State: c.state, Places: c.places, Completer: c.completer, Chains: c.chains, Learn: c.learn, Reserving: noteTask})
	return c, nil
}

// Secret returns the catalog's secret, which signs page tokens and keys fingerprints. It is the same for all servers of one state.
func (c *Catalog) Secret() []byte { return c.secret }

// Counters returns the counters of this process.
func (c *Catalog) Counters() *Counters { return c.completer.Counters() }

// Ping reports whether the state can be reached.
func (c *Catalog) Ping(ctx context.Context) error {
	return c.state.Ping(ctx)
}

// PingStorage reports whether every root is there. Errors: 15, 17.
func (c *Catalog) PingStorage(ctx context.Context) error { return c.places.Prove(ctx) }

// Recover finishes pending transactions, those of the given scope: after a crash nothing waits for the next reader (C7). It returns how many
// it found; the error joins those of single transactions, which stay pending.
func (c *Catalog) Recover(ctx context.Context, scope RecoverScope) (int, error) {
	return c.completer.Recover(ctx, scope)
}

// RestoreUnsynced sees that every manifest that the state keeps is whole in storage, and writes again what a power failure took away
// or damaged. It is to be called before anything is served, and returns how many manifests it wrote. On an error nothing may be served: a
// version that was acknowledged may be missing.
func (c *Catalog) RestoreUnsynced(ctx context.Context) (int, error) {
	return c.completer.RestoreUnsynced(ctx)
}

// Reconcile compares the rows of the tables that were asked about since it was last called with storage, by one listing for each of their
// chains (C9). It returns how many tables it looked at; the error tells of those for which that did not work, which are seen to again when
// they are asked about.
func (c *Catalog) Reconcile(ctx context.Context) (int, error) { return c.chains.Reconcile(ctx) }

// Check compares the catalog with storage: see check.Run.
func (c *Catalog) Check(ctx context.Context, opts check.Options) (check.Summary, error) {
	return check.Run(ctx, check.Subject{
		State: c.state, Places: c.places, Completer: c.completer, Chains: c.chains, Kinds: JobKinds(), RunJob: c.RunJob,
	}, opts)
}

// Close waits until commits in flight have ended, or ctx ends, removes the staged manifests that are due, and
// has storage make durable what the state still keeps for it. It may be called twice.
func (c *Catalog) Close(ctx context.Context) error { return c.completer.Close(ctx) }

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
	err := c.state.Store.View(ctx, read)
	if errors.Is(err, store.ErrNotFound) {
		err = c.state.Store.Update(ctx, func(tx store.Tx) error {
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

// wake tells the runner of jobs that some were added.
func (c *Catalog) wake(queued bool) {
	if queued {
		c.opts.Wake()
	}
}
