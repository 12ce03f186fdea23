package lance

import "time"

// TransactionID identifies one commit: a UUID in its usual text form.
type TransactionID string

// TransactionState tells how far a commit has come.
type TransactionState int16

// The states of a transaction. A pending one has its rows reserved and may have published any of its manifests; whoever
// meets it helps it to the end (C7).
const (
	TransactionPending   TransactionState = 0
	TransactionCommitted TransactionState = 1
	TransactionAborted   TransactionState = 2
)

// EntryKind is what one entry of a transaction does.
type EntryKind string

// The kinds of entries, named as in BatchCommitTables.
const (
	EntryDeclare        EntryKind = "declare_table"
	EntryCreateVersion  EntryKind = "create_table_version"
	EntryDeleteVersions EntryKind = "delete_table_versions"
	EntryDeregister     EntryKind = "deregister_table"
)

// Entry is one step of a transaction, as recorded: enough for any server to finish or undo it (C7, C10).
type Entry struct {
	Kind  EntryKind `json:"kind"`
	Table ObjectID  `json:"table"`
	// Path is the table's path when the transaction was reserved.
	Path TableID `json:"path"`
	// Location is the table's directory, from which every path of the entry derives.
	Location string `json:"location"`
	// The rest stands only in entries of kind EntryCreateVersion.
	Branch  Branch        `json:"branch,omitempty"`
	Version VersionNumber `json:"version,omitempty"`
	Scheme  NamingScheme  `json:"scheme,omitempty"`
	Staged  string        `json:"staged,omitempty"`
	Digest  string        `json:"digest,omitempty"` // hexadecimal, of the bytes to publish
	Size    int64         `json:"size,omitempty"`
	// After names, for a detached version that is attached, the detached versions that stand before it in the chain, and as which.
	After map[VersionNumber]VersionNumber `json:"after,omitempty"`
	// Between are the detached versions that it was made upon and that are attached with it in one, the nearest first.
	Between []VersionNumber `json:"between,omitempty"`
	// Timestamp is when the manifest was staged, in milliseconds since the epoch; Metadata is what the writer gave with the version.
	Timestamp int64             `json:"timestamp,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	// Properties are those of a table to declare.
	Properties map[string]string `json:"properties,omitempty"`
	// Ranges are the versions that an entry of kind EntryDeleteVersions removes: first and last, both included.
	Ranges [][2]VersionNumber `json:"ranges,omitempty"`
	// Count is the number of versions that such an entry removed, known once the transaction is committed.
	Count int64 `json:"count,omitempty"`
}

// Transaction is the record of one commit: who made it, when, and what it touches.
type Transaction struct {
	ID         TransactionID
	State      TransactionState
	Principal  string
	CreatedAt  time.Time
	ResolvedAt time.Time // zero while pending
	Context    map[string]string
	Entries    []Entry
	// Status and Properties are what AlterTransaction set: a status in the caller's words ("" = none) and overlay properties.
	Status     string
	Properties map[string]string
}
