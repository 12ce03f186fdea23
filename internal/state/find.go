package state

import (
	"context"
	"errors"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// NamespaceAt returns the namespace at a path; that of the root is there always. Errors: 1.
func NamespaceAt(r store.Reader, id lance.NamespaceID) (lance.Namespace, error) {
	ns, err := r.Namespace(id)
	if errors.Is(err, store.ErrNotFound) {
		return ns, MissingNamespace(id)
	}
	return ns, err
}

// TableAt returns the live table at a path. Errors: 1 (its namespace is missing), 4.
func TableAt(r store.Reader, id lance.TableID) (lance.Table, error) {
	tables, err := r.Tables([]lance.TableID{id})
	if err != nil {
		return lance.Table{}, err
	}
	if tables[0].ID == 0 {
		missing, err := MissingTable(r, id)
		if err != nil {
			return lance.Table{}, err
		}
		return lance.Table{}, missing
	}
	return tables[0], nil
}

// MissingTable says why an id leads to no table: code 1 where its namespace is missing, which is looked at first, or 4. The second error is the
// store's.
func MissingTable(r store.Reader, id lance.TableID) (*api.Error, error) {
	_, err := r.Namespace(id.Namespace())
	switch {
	case err == nil:
		return api.Errorf(api.CodeTableNotFound, "table %q does not exist (names: %q)", lance.ShowID(id), []string(id)), nil
	case errors.Is(err, store.ErrNotFound):
		return MissingNamespace(id.Namespace()), nil
	}
	return nil, err
}

// MissingNamespace is the error of an id that leads to no namespace, of code 1.
func MissingNamespace(id lance.NamespaceID) *api.Error {
	return api.Errorf(api.CodeNamespaceNotFound, "namespace %q does not exist (names: %q)", lance.ShowID(id), []string(id))
}

// TableExists is the refusal of a name that a table has, of code 5.
func TableExists(id lance.TableID) *api.Error {
	return api.Errorf(api.CodeTableAlreadyExists, "table %q already exists", lance.ShowID(id))
}

// DeclareRefusal is the answer to an InsertTable that the state turned down, of code 1 or 5; nil for any other outcome.
func DeclareRefusal(err error, id lance.TableID, location string) *api.Error {
	switch {
	case errors.Is(err, store.ErrExists):
		return TableExists(id)
	case errors.Is(err, store.ErrNotFound):
		return MissingNamespace(id.Namespace())
	case errors.Is(err, store.ErrLocationTaken):
		return api.Errorf(api.CodeTableAlreadyExists, "location %q equals, contains or lies inside the location of another table, or contains the place of a namespace's tables: choose one of its own", location)
	}
	return nil
}

// Head returns the row with the highest number of a chain, Number 0 if there is none. Errors: those of View.
func (s *State) Head(ctx context.Context, chain lance.Chain) (lance.Version, error) {
	var head lance.Version
	err := s.View(ctx, func(r store.Reader) error {
		heads, err := r.Heads([]lance.Chain{chain})
		if err != nil {
			return err
		}
		head = heads[0]
		return nil
	})
	return head, err
}

// RowIn returns the row in a slot, Number 0 if it is empty. Errors: those of View.
func (s *State) RowIn(ctx context.Context, slot lance.Slot) (lance.Version, error) {
	var row lance.Version
	err := s.View(ctx, func(r store.Reader) error {
		rows, err := r.Versions([]lance.Slot{slot})
		if err == nil {
			row = rows[0]
		}
		return err
	})
	return row, err
}

// RowAndHead reads the row in a slot and the head of its chain on one snapshot, each with Number 0 if there is none. Errors: those of View.
func (s *State) RowAndHead(ctx context.Context, slot lance.Slot) (row, head lance.Version, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		rows, err := r.Versions([]lance.Slot{slot})
		if err != nil {
			return err
		}
		heads, err := r.Heads([]lance.Chain{slot.Chain})
		if err != nil {
			return err
		}
		row, head = rows[0], heads[0]
		return nil
	})
	return row, head, err
}
