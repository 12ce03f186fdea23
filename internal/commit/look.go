package commit

import (
	"context"
	"fmt"
	"slices"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// look finds the tables that steps are about, as the steps before them leave them (a batch's later entries see its earlier
// ones), and the rows that stand in their slots, on one snapshot. What was prepared in the round before is kept where it still holds.
func (c *Committer) look(ctx context.Context, steps []Step, before []*work, where Naming) ([]*work, error) {
	works := make([]*work, len(steps))
	q := store.Question{Tables: make([]lance.TableID, len(steps)), Named: make([]store.NamedSlot, len(steps))}
	for i, s := range steps {
		works[i] = &work{Step: s, index: i}
		q.Tables[i], q.Named[i] = s.ID, store.NamedSlot{Table: s.ID, Branch: s.Branch, Number: s.Version}
	}
	err := c.state.View(ctx, func(r store.Reader) error {
		found, err := r.Look(q)
		if err != nil {
			return err
		}
		if err := c.assign(r, works, found.Tables, where); err != nil {
			return err
		}
		return noteKnown(r, creating(works), found.Named)
	})
	if err != nil {
		return nil, err
	}
	for _, w := range works {
		if w.live {
			c.chains.Use(w.table.ID)
		}
	}
	if before != nil {
		for i, w := range works {
			w.keep(before[i])
		}
	}
	return works, nil
}

// keep takes over the bytes that an earlier round read for the same staged manifest.
func (w *work) keep(before *work) {
	if w.table.ID == before.table.ID && w.staged == before.staged && before.data != nil && !w.attach {
		w.data, w.digest, w.size, w.summary, w.bases = before.data, before.digest, before.size, before.summary, before.bases
	}
}

// assign gives every work its table: the live one, or the one that an earlier step declares. A step after the one that
// deregisters its table finds none.
func (c *Committer) assign(r store.Reader, works []*work, tables []lance.Table, where Naming) error {
	type view struct {
		table lance.Table
		live  bool
	}
	overlay := map[string]view{}
	for i, w := range works {
		key := lance.PathKey(w.ID)
		now, touched := overlay[key]
		if !touched {
			now = view{table: tables[i], live: true}
		}
		if w.Kind == lance.EntryDeclare && now.table.ID == 0 {
			planned, err := c.plan(r, w)
			if err != nil {
				return err
			}
			now = view{table: planned}
			overlay[key] = now
			w.fault = where.wrap(w, w.Refusal)
		} else if w.Kind == lance.EntryDeclare {
			w.fault = where.wrap(w, state.TableExists(w.ID))
		}
		if now.table.ID == 0 {
			e, err := state.MissingTable(r, w.ID)
			if err != nil {
				return err
			}
			w.fault = where.wrap(w, e)
			continue
		}
		w.table, w.live = now.table, now.live
		if err := c.locate(w, where); err != nil {
			return err
		}
		w.refuseUnmanaged(where)
		if w.Kind == lance.EntryDeregister {
			overlay[key] = view{}
		}
	}
	return nil
}

// plan makes the table that a step declares. Its id and location are fixed before anything is written, so that later steps
// of the same batch, and helpers, can refer to them. Its namespace is looked at when reserving and again when resolving.
func (c *Committer) plan(r store.Reader, w *work) (lance.Table, error) {
	id := c.state.Store.NewID()
	location := w.Location
	ns, err := r.Namespace(w.ID.Namespace())
	if state.IgnoreNotFound(err) != nil {
		return lance.Table{}, err
	}
	w.Properties = chain.Inherited(w.Properties, ns)
	if location == "" {
		if location, err = c.places.NewLocation(id, w.ID.Name(), ns.Location); err != nil {
			return lance.Table{}, fmt.Errorf("location for table %q: %w", lance.ShowID(w.ID), err)
		}
	}
	return lance.Table{ID: id, Path: w.ID, State: lance.TableLive, Location: location, Properties: w.Properties}, nil
}

// locate fills in the work's place in storage and, for a version, its slot and the name of its staged manifest.
func (c *Committer) locate(w *work, where Naming) error {
	p, err := c.places.At(w.table.Location)
	if err != nil {
		return fmt.Errorf("place of table %q: %w", lance.ShowID(w.ID), err)
	}
	w.place = p
	w.slot = lance.Slot{Chain: lance.Chain{Table: w.table.ID, Branch: w.Branch}, Number: w.Version}
	if w.Kind != lance.EntryCreateVersion {
		return nil
	}
	if e := w.checkManifestPath(); e != nil {
		w.fault = where.wrap(w, e)
	}
	return nil
}

// checkManifestPath takes the staged manifest's name from the path that the client sent. The path must lie in the chain's own
// _versions directory and be named for the version, or for a detached version that is to be attached: anything else could make
// the server publish what another table, or nobody, wrote (C3, C14).
func (w *work) checkManifestPath() *api.Error {
	dir, name, err := lance.SplitManifestPath(w.ManifestPath)
	if err != nil {
		return api.Errorf(api.CodeInvalidInput, "manifest_path %q: %v", w.ManifestPath, err)
	}
	want := lance.VersionsPrefix(w.place.Dir, w.Branch)
	if dir != want {
		return api.Errorf(api.CodeInvalidInput, "manifest_path %q does not lie in the directory of this table and branch: it must be %[2]s%[3]s-<uuid>, or %[2]sd<u64>.manifest of a detached version to attach",
			w.ManifestPath, want, lance.ManifestName(w.Version, w.Scheme))
	}
	detached, _, final := lance.ParseManifestName(name)
	switch {
	case final && detached.Detached() && !w.Version.Detached():
		w.staged, w.attach = name, true
	case lance.CheckStagedName(name, w.Version, w.Scheme):
		w.staged = name
	default:
		return api.Errorf(api.CodeInvalidInput, "manifest_path %q is not a staged manifest of version %d with naming scheme %s: its name must be %s-<uuid>, or d<u64>.manifest for a detached version to attach",
			w.ManifestPath, w.Version, w.Scheme, lance.ManifestName(w.Version, w.Scheme))
	}
	return nil
}

// creating returns the works that make a version and are sound so far.
func creating(works []*work) []*work {
	return slices.DeleteFunc(slices.Clone(works), func(w *work) bool {
		return w.Kind != lance.EntryCreateVersion || w.fault != nil
	})
}

// refuseUnmanaged finds fault with a step that the catalog cannot do for an unmanaged table, whatever else is wrong with it.
func (w *work) refuseUnmanaged(where Naming) {
	makes := w.Kind == lance.EntryCreateVersion || w.Kind == lance.EntryDeleteVersions
	if makes && !chain.Managed(w.table) {
		w.fault = where.wrap(w, chain.UnmanagedRefusal(w.table))
	}
}
