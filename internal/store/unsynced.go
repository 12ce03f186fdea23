package store

import "github.com/lancerest/lancerest/internal/lance"

// Unsynced is a published manifest that storage may still lose by a power failure. Its bytes stay in the state, which cannot, until
// storage has made them durable (C6).
type Unsynced struct {
	ID       lance.ObjectID
	Slot     lance.Slot
	Scheme   lance.NamingScheme
	Location string // of the table
	Data     []byte
}

// UnsyncedReader looks at the manifests that are kept.
type UnsyncedReader interface {
	// Unsynced returns up to limit manifests in the order of their ids, after the given id (0 = from the start).
	Unsynced(after lance.ObjectID, limit int) ([]Unsynced, error)
	// UnsyncedIDs returns the ids of up to limit manifests, in the same way.
	UnsyncedIDs(after lance.ObjectID, limit int) ([]lance.ObjectID, error)
}

// UnsyncedWriter changes what is kept.
type UnsyncedWriter interface {
	// InsertUnsynced keeps manifests; their ids are new (NewID).
	InsertUnsynced(manifests []Unsynced) error
	// DeleteUnsynced lets go of manifests by their ids; one that is gone already is no error.
	DeleteUnsynced(ids []lance.ObjectID) error
}
