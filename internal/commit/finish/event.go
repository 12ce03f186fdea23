package finish

import (
	"context"
	"sync/atomic"

	"github.com/lancerest/lancerest/internal/lance"
)

// Event is something that happened to a table without anybody asking for it. Table is its id as people read it, or its location; what a kind
// has nothing to say of is empty.
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

// Notify tells of an event.
func (c *Completer) Notify(ctx context.Context, e Event) { c.opts.Notify(ctx, e) }
