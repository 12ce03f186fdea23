// Package state is the state as the rules see it: what is asked of a store and found there, with its failures in the words of the
// specification. It knows what it means that a namespace or a table is not there, or is there already.
//
// What does not live here: SQL and connections, which are a store's, and what follows from what is found.
package state

import (
	"context"
	"errors"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/store"
)

// State is a store whose failures are errors of the specification.
type State struct {
	// Store is the store itself, for those who tell its failures apart.
	Store store.Store
}

// ErrRolledBack is for a closure of Update or of the store to return: it makes the store forget a transaction that was judged, and is not to be
// carried out. It is no failure.
var ErrRolledBack = errors.New("judged, not carried out")

// Ping reports whether the state can be reached. Its error is the store's.
func (s *State) Ping(ctx context.Context) error {
	return s.Store.Ping(store.WithOperation(ctx, "readyz"))
}

// View runs fn on a snapshot of the state and turns the store's errors into the specification's. Errors: 17 (out of reach), 18, 21, and what fn
// returned, as it is.
func (s *State) View(ctx context.Context, fn func(store.Reader) error) error {
	return stateError(s.Store.View(ctx, fn))
}

// Update runs fn, which may run twice, in a transaction of the state and turns the store's errors into the specification's. Errors: 17 (out of
// reach) and 21 (too many at once) before anything durable has happened, 18 (the outcome is not known), and what fn returned, as it is.
func (s *State) Update(ctx context.Context, fn func(store.Tx) error) error {
	return stateError(s.Store.Update(ctx, fn))
}

// stateError translates what the state answered: with codes 17 and 21 nothing durable has happened; an unknown outcome is
// internal, never a 4xx (C11). Errors that a closure returned itself pass as they are.
func stateError(err error) error {
	switch {
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
		return api.Errorf(api.CodeServiceUnavailable, "the catalog's state cannot be reached now; try again").Because(err)
	case errors.Is(err, store.ErrContention):
		return api.Errorf(api.CodeThrottling, "too many transactions at once on the same rows; try again").Because(err)
	case errors.Is(err, store.ErrUnknown):
		return api.Errorf(api.CodeInternal, "the outcome is not known: the state did not confirm the commit; look before trying again").Because(err)
	}
	return err
}

// IgnoreNotFound turns store.ErrNotFound into nil, and leaves every other error as it is.
func IgnoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
