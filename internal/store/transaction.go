package store

import (
	"time"

	"github.com/lancerest/lancerest/internal/lance"
)

// Content names bytes in a slot.
type Content struct {
	Slot   lance.Slot
	Digest lance.Digest
	// Seen says that the bytes may have stood under their final name, where a client that lists storage could read them.
	Seen bool
}

// TransactionReader looks at transactions.
type TransactionReader interface {
	// Transaction returns a transaction with its entries. ErrNotFound if there is none.
	Transaction(id lance.TransactionID) (lance.Transaction, error)
	// PendingTransactions returns up to limit pending transactions that began before the given time, oldest first.
	PendingTransactions(before time.Time, limit int) ([]lance.TransactionID, error)
	// Aborted reports, in order, which contents belong to an entry of an aborted transaction for that slot (C5, C9, C10).
	Aborted(contents []Content) ([]bool, error)
	// Burnt reports, in order, which slots have an aborted content that was Seen.
	Burnt(slots []lance.Slot) ([]bool, error)
	// Meta returns a value kept with the catalog under a key. ErrNotFound if there is none.
	Meta(key string) (string, error)
}

// TransactionWriter changes transactions.
type TransactionWriter interface {
	// InsertTransaction adds a transaction in any state. ErrExists if its id is taken.
	InsertTransaction(t lance.Transaction) error
	// ResolveTransaction moves a pending transaction to TransactionCommitted or TransactionAborted, sets its ResolvedAt to Now and
	// its entries to those given (nil keeps them), and reports whether it was pending. ErrNotFound if there is none.
	ResolveTransaction(id lance.TransactionID, state lance.TransactionState, entries []lance.Entry) (bool, error)
	// RecordAborted keeps the contents of an aborted transaction on record; a content that is there already stays.
	RecordAborted(id lance.TransactionID, contents []Content) error
	// AlterTransaction replaces Status and Properties. ErrNotFound if there is none.
	AlterTransaction(id lance.TransactionID, status string, properties map[string]string) error
	// InsertMeta keeps a value under a key. ErrExists if the key has one.
	InsertMeta(key, value string) error
}
