package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/store"
)

// naming says how errors name the steps of a commit: by the field of the request that lists them ("" for a single step).
type naming struct {
	field string
}

// name returns "entries[2] (table "ns$t", version 7)" or, for a single step, "table "ns$t", version 7".
func (n naming) name(w *work) string {
	text := fmt.Sprintf("table %q", show(w.id))
	if w.kind == lance.EntryCreateVersion {
		text += fmt.Sprintf(", version %d", w.version)
		if w.branch != lance.Main {
			text += fmt.Sprintf(" of branch %q", w.branch)
		}
	}
	if n.field == "" {
		return text
	}
	return fmt.Sprintf("%s[%d] (%s)", n.field, w.index, text)
}

// wrap puts the step's name before an error's message. It never returns nil for an error, nor anything else for nil.
func (n naming) wrap(w *work, e *api.Error) *api.Error {
	if e == nil {
		return nil
	}
	named := *e
	named.Message = n.name(w) + ": " + e.Message
	return &named
}

// wrapAny does the same for any error.
func (n naming) wrapAny(w *work, err error) error {
	var e *api.Error
	if errors.As(err, &e) {
		return n.wrap(w, e)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", n.name(w), err)
	}
	return nil
}

// wrapStep puts the name of a step, the one with the given index, before an error's message.
func (n naming) wrapStep(i int, s step, err error) error {
	return n.wrapAny(&work{step: s, index: i}, err)
}

// show joins an id for a person to read.
func show(id []string) string { return lance.JoinID(id, lance.DefaultDelimiter) }

// view runs fn on a snapshot of the state and turns the store's errors into the specification's.
func (c *Catalog) view(ctx context.Context, fn func(store.Reader) error) error {
	return stateError(c.store.View(ctx, fn))
}

// update runs fn in a transaction of the state and turns the store's errors into the specification's.
func (c *Catalog) update(ctx context.Context, fn func(store.Tx) error) error {
	return stateError(c.store.Update(ctx, fn))
}

// stateError translates what the state answered: with codes 17 and 21 nothing durable has happened; an unknown outcome is
// internal, never a 4xx (C11). Errors that a closure returned itself pass as they are.
func stateError(err error) error {
	switch {
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
		return withCause(api.Errorf(api.CodeServiceUnavailable, "the catalog's state cannot be reached now; try again"), err)
	case errors.Is(err, store.ErrContention):
		return withCause(api.Errorf(api.CodeThrottling, "too many transactions at once on the same rows; try again"), err)
	case errors.Is(err, store.ErrUnknown):
		return withCause(api.Errorf(api.CodeInternal, "the outcome is not known: the state did not confirm the commit; look before trying again"), err)
	}
	return err
}

// storageError translates a failure of the storage that tables live in. An outage is never "not found" (case C4).
func storageError(what string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", what, err) // the caller's doing, not the storage's
	}
	if errors.Is(err, objstore.ErrInvalidKey) {
		return withCause(api.Errorf(api.CodeInvalidInput, "%s: the storage cannot have an object of that name", what), err)
	}
	if errors.Is(err, objstore.ErrDenied) {
		return withCause(api.Errorf(api.CodePermissionDenied, "%s: the storage refuses the catalog access", what), err)
	}
	return withCause(api.Errorf(api.CodeServiceUnavailable, "%s: the storage did not answer as it should; try again", what), err)
}

func withCause(e *api.Error, cause error) *api.Error {
	e.Cause = cause
	return e
}

// ignoreNotFound turns store.ErrNotFound into nil.
func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// missingTable says why an id leads to no table: its namespace is missing, which is looked at first, or only itself.
func missingTable(r store.Reader, id lance.TableID) (*api.Error, error) {
	_, err := r.Namespace(id.Namespace())
	switch {
	case err == nil:
		return api.Errorf(api.CodeTableNotFound, "table %q does not exist (names: %q)", show(id), []string(id)), nil
	case errors.Is(err, store.ErrNotFound):
		return missingNamespace(id.Namespace()), nil
	}
	return nil, err
}

func missingNamespace(id lance.NamespaceID) *api.Error {
	return api.Errorf(api.CodeNamespaceNotFound, "namespace %q does not exist (names: %q)", show(id), []string(id))
}

func tableExists(id lance.TableID) *api.Error {
	return api.Errorf(api.CodeTableAlreadyExists, "table %q already exists", show(id))
}

func nameIsNamespace(id lance.TableID) *api.Error {
	return api.Errorf(api.CodeTableAlreadyExists, "%q already exists as a namespace: names are unique among all children of a namespace", show(id))
}

// conflictWith is the answer to a version whose slot is taken by a version that anybody can read by now (C8).
func conflictWith(row lance.Version) *api.Error {
	if row.State != lance.VersionCommitted {
		return api.Errorf(api.CodeConcurrentModification, "this version was committed before and has been cleaned up since: read the latest version and try the next number")
	}
	return api.Errorf(api.CodeConcurrentModification, "this version is taken by another commit: read it, then try the next number")
}

func millis(t time.Time) int64 { return t.UnixMilli() }
