// Package access is the contract of what bare clients need to reach a table's directory by themselves, and the four ways in which a
// root gives it to them: nothing at all, everything but keys, the operator's own keys, or temporary keys that reach that one directory.
// Clients get it as storage_options, under the names that Lance's object store reads.
//
// Implementations of Vendor stand in folders below, one a cloud; package accesstest holds the suite that every one of them passes,
// against a server that judges the keys.
//
// What does not live here: who may do what to a table, which package catalog asks, and how the catalog itself reaches storage.
package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
)

// The errors of Vend. Implementations wrap them; test with errors.Is. Their texts never hold a key, a token or a signature, but may
// hold names of roles and ids of requests, so they are for the log.
var (
	// ErrUnavailable: the provider could not be reached, throttled the request, or failed; the same request may succeed later.
	ErrUnavailable = errors.New("the provider of keys is unavailable")
	// ErrRefused: the provider answered that this server may not have such keys, or gave keys that are of no use.
	ErrRefused = errors.New("the provider refused the keys")
	// ErrUnfit: no keys can be made that reach this directory and nothing else, such as where its name makes a policy too long.
	// Trying again does not help; the provider need not have been asked.
	ErrUnfit = errors.New("the directory cannot have keys of its own")
)

// Grant is what the holder of keys may do in the directory.
type Grant int

// The grants.
const (
	// Read: list the directory and read what is in it.
	Read Grant = iota + 1
	// ReadWrite: besides, write and remove objects in it.
	ReadWrite
)

// Vendor makes temporary keys. It is safe for concurrent use, keeps nothing, and does not retry beyond what its SDK does: package
// access keeps keys and bounds how often they are made.
type Vendor interface {
	// Vend makes keys that do in dir, at any depth, what grant says, and nothing anywhere else: not in a directory whose name begins
	// with dir's, not in one of which dir's is a pattern, not beside dir. Lance's clients list dir with and without the slash
	// after it, and both must be allowed. ErrUnavailable, ErrRefused or ErrUnfit; a context that ends gives its own error.
	Vend(ctx context.Context, dir lance.Location, grant Grant) (Keys, error)
}

// Keys are temporary keys. Printing them, in whatever way, does not show them.
type Keys struct {
	// Values are the keys under Lance's names. They are given beside the root's settings, which they must not repeat.
	Values map[string]string
	// Expires is when the provider says that they end, by its own clock. Zero means never, for an operator's own keys alone.
	Expires time.Time
	// Life is how long they live from when they were asked for, as the provider or the request for them says, so that a machine whose
	// clock is wrong neither hands out keys that have ended nor throws good ones away. Zero: Expires by this machine's clock.
	Life time.Duration
}

// hidden is what a reader of a log sees of keys.
func (k Keys) hidden() string {
	return fmt.Sprintf("keys until %s (not shown)", k.Expires.UTC().Format(time.RFC3339))
}

// Format prints that there are keys, and not the keys, for every verb.
func (k Keys) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, k.hidden()) }

// MarshalText does the same for encoders.
func (k Keys) MarshalText() ([]byte, error) { return []byte(k.hidden()), nil }
