package commit

import (
	"errors"
	"fmt"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
)

// Naming says how errors name the steps of a commit: by the field of the request that lists them ("" for a single step).
type Naming struct {
	Field string // "entries", say
}

// name returns "entries[2] (table "ns$t", version 7)" or, for a single step, "table "ns$t", version 7".
func (n Naming) name(w *work) string {
	text := fmt.Sprintf("table %q", lance.ShowID(w.ID))
	if w.Kind == lance.EntryCreateVersion {
		text += fmt.Sprintf(", version %d", w.Version)
		if w.Branch != lance.Main {
			text += fmt.Sprintf(" of branch %q", w.Branch)
		}
	}
	if n.Field == "" {
		return text
	}
	return fmt.Sprintf("%s[%d] (%s)", n.Field, w.index, text)
}

// wrap puts the step's name before an error's message. It never returns nil for an error, nor anything else for nil.
func (n Naming) wrap(w *work, e *api.Error) *api.Error {
	if e == nil {
		return nil
	}
	named := *e
	named.Message = n.name(w) + ": " + e.Message
	return &named
}

// wrapAny does the same for any error.
func (n Naming) wrapAny(w *work, err error) error {
	var e *api.Error
	if errors.As(err, &e) {
		return n.wrap(w, e)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", n.name(w), err)
	}
	return nil
}

// WrapStep puts the name of a step, the one with the given index, before an error's message. It keeps the code; nil stays nil.
func (n Naming) WrapStep(i int, s Step, err error) error {
	return n.wrapAny(&work{Step: s, index: i}, err)
}

func nameIsNamespace(id lance.TableID) *api.Error {
	return api.Errorf(api.CodeTableAlreadyExists, "%q already exists as a namespace: names are unique among all children of a namespace", lance.ShowID(id))
}

// conflictWith is the answer to a version whose slot is taken by a version that anybody can read by now (C8).
func conflictWith(row lance.Version) *api.Error {
	if row.State != lance.VersionCommitted {
		return api.Errorf(api.CodeConcurrentModification, "this version was committed before and has been cleaned up since: read the latest version and try the next number")
	}
	return api.Errorf(api.CodeConcurrentModification, "this version is taken by another commit: read it, then try the next number")
}
