package store

import "github.com/lancerest/lancerest/internal/lance"

// NamedSlot is a slot of the live table at a path.
type NamedSlot struct {
	Table  lance.TableID
	Branch lance.Branch
	Number lance.VersionNumber
}

// Question is what a commit asks of the state at once: an implementation with a round trip for each question answers all of it in one.
type Question struct {
	Tables   []lance.TableID
	Named    []NamedSlot
	Slots    []lance.Slot
	Chains   []lance.Chain
	Contents []Content
	Burnt    []lance.Slot
}

// Findings are the answers of Tables, Versions, Heads, Aborted and Burnt to the parts of a Question. Named are versions as those in Slots; where
// there is no such table, a zero Version stands in its place.
type Findings struct {
	Tables   []lance.Table
	Named    []lance.Version
	Versions []lance.Version
	Heads    []lance.Version
	Aborted  []bool
	Burnt    []bool
}

// Looker answers several questions at once.
type Looker interface {
	// Look returns what the methods that Findings names would, one after the other.
	Look(q Question) (Findings, error)
}

// Commitment is what becomes of a transaction that is committed.
type Commitment struct {
	ID lance.TransactionID
	// Publish are versions as PublishVersions takes them, Entries as ResolveTransaction does.
	Publish []lance.Version
	Entries []lance.Entry
	// Read are the slots whose versions to return as they are then.
	Read []lance.Slot
}

// Committer begins and ends transactions, with their versions, at once.
type Committer interface {
	// Reserve is InsertVersions and InsertTransaction: ErrExists if a slot or the id is taken; then nothing was written by the call.
	Reserve(t lance.Transaction, versions []lance.Version) error
	// Commit is PublishVersions, Versions and ResolveTransaction to TransactionCommitted, and returns the versions in the slots to be read.
	// It reports false where the transaction was not pending any more, or a version was not one of its pending ones: then the caller must not
	// let its Update succeed. ErrNotFound if there is no such transaction.
	Commit(c Commitment) ([]lance.Version, bool, error)
}
