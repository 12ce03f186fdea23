package store

import "github.com/lancerest/lancerest/internal/lance"

// VersionPage says which part of a chain to return.
type VersionPage struct {
	// After is the number after which to begin in the order of the page; 0 begins at the start.
	After      lance.VersionNumber
	Limit      int
	Descending bool
}

// VersionReader looks at the versions of chains.
type VersionReader interface {
	// Versions returns the rows in the given slots, whatever their state, in order; where a slot is empty, a zero Version
	// stands in its place (its Number is 0).
	Versions(slots []lance.Slot) ([]lance.Version, error)
	// Heads returns the row with the highest number of each chain, whatever its state, in order; detached versions do not
	// count; where a chain has none, a zero Version stands in its place (C5).
	Heads(chains []lance.Chain) ([]lance.Version, error)
	// ListVersions returns one page of the chain's committed and pending versions; detached, pruned and deleted ones are left out.
	ListVersions(chain lance.Chain, page VersionPage) ([]lance.Version, error)
	// PendingOn returns the transactions that have pending versions on any of the given tables, each once.
	PendingOn(tables []lance.ObjectID) ([]lance.TransactionID, error)
	// Branches returns the branches of a table that have rows, Main included, in order of their names.
	Branches(table lance.ObjectID) ([]lance.Branch, error)
}

// VersionWriter changes the versions of chains.
type VersionWriter interface {
	// InsertVersions adds rows. ErrExists if any slot is taken, whatever the state of its row; then none was written.
	InsertVersions(versions []lance.Version) error
	// AdoptVersions adds those rows whose slots are empty and returns how many.
	AdoptVersions(versions []lance.Version) (int, error)
	// PublishVersions sets Size, ETag and State of rows that belong to their Transaction and are still pending;
	// rows that are not are left alone. It returns how many it changed.
	PublishVersions(versions []lance.Version) (int, error)
	// RemoveVersions removes the rows in the given slots that belong to the given transaction (C10).
	RemoveVersions(slots []lance.Slot, transaction lance.TransactionID) error
	// MarkVersions moves the committed versions of a chain numbered from first to last, both included, to VersionPruned or
	// VersionDeleted and returns them as they were, at most limit of them.
	MarkVersions(chain lance.Chain, first, last lance.VersionNumber, state lance.VersionState, limit int) ([]lance.Version, error)
	// RestoreVersion makes a pruned or deleted version a committed one again, and reports whether it was one.
	RestoreVersion(slot lance.Slot) (bool, error)
	// RemoveChain removes every row of a chain: the branch was deleted in storage and its name may begin anew.
	RemoveChain(chain lance.Chain) error
}
