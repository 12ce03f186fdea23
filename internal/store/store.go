// Package store is the contract of the catalog's state: namespaces, tables, versions, transactions and the jobs that must
// follow a commit. Implementations stand in folders below; package storetest holds the suite that every one of them passes.
//
// What does not live here: manifests, tags and branch references (they are objects in storage, package objstore), and every
// rule about what may be done to a table (package catalog).
package store

import (
	"context"
	"errors"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
)

// The errors of the contract. Methods wrap them; test with errors.Is.
var (
	// ErrNotFound: the row asked for does not exist (or is no longer live, where the method speaks of live rows).
	ErrNotFound = errors.New("not found")
	// ErrExists: a unique name or slot is taken. Nothing was written by the call.
	ErrExists = errors.New("already exists")
	// ErrLocationTaken: the location equals, contains or lies inside one that another table claims, or equals or contains one where a
	// namespace's tables go. Nothing was written by the call.
	ErrLocationTaken = errors.New("location overlaps another table's, or a namespace's")
	// ErrUnavailable: the state cannot be reached now, or the queue for writers is full; nothing was written.
	ErrUnavailable = errors.New("state unavailable")
	// ErrContention: the transaction was retried up to the bound and lost each time; nothing was written.
	ErrContention = errors.New("too much contention")
	// ErrUnknown: the answer to COMMIT was lost; the transaction may or may not have taken effect.
	ErrUnknown = errors.New("outcome of the commit unknown")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store closed")
)

// Store is the catalog's state. All methods are safe for concurrent use.
type Store interface {
	// View runs fn on one consistent snapshot that includes every Update that returned before View was called (C15).
	// It returns fn's error as it is, or ErrUnavailable, ErrClosed or ctx's error.
	View(ctx context.Context, fn func(Reader) error) error

	// Update runs fn in one transaction and returns once it is durable. Transactions are serializable. Where fn returns an
	// error nothing of it is written and Update returns that error as it is. fn may run more than once: it must keep no
	// state outside of what it sets anew on each run, and must touch nothing but its Tx (C12).
	// Further errors: ErrUnavailable and ErrContention (nothing written), ErrUnknown (either way), ErrClosed, ctx's error
	// (only while still waiting for its turn: nothing written). A panic of fn unwinds the caller; nothing is written.
	Update(ctx context.Context, fn func(Tx) error) error

	// NewID returns an ObjectID that no row has had, for what is planned before its transaction, and NewTransactionID a new UUID. Both are
	// drawn so that the rows suit the indexes of the implementation. Another process may draw the same, though hardly ever: inserting tells.
	NewID() lance.ObjectID
	NewTransactionID() lance.TransactionID

	// Ping reports whether the state can be read and its schema is the one this binary expects.
	Ping(ctx context.Context) error

	// Close waits for running transactions to end and releases everything. It may be called twice.
	Close() error
}

// Reader is what a transaction may look at.
type Reader interface {
	NamespaceReader
	TableReader
	VersionReader
	TransactionReader
	JobReader
	AnswerReader
	UnsyncedReader
	Looker
}

// Tx is what a transaction may look at and change. Reads see the transaction's own writes.
type Tx interface {
	Reader
	NamespaceWriter
	TableWriter
	VersionWriter
	TransactionWriter
	JobWriter
	AnswerWriter
	UnsyncedWriter
	Committer
	// Now is the time the transaction began, in UTC at millisecond precision: all rows of one commit share one clock reading.
	Now() time.Time
	// NewID returns an ObjectID that no row has had.
	NewID() lance.ObjectID
}
