package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// look finds the tables that steps are about, as the steps before them leave them (a batch's later entries see its earlier
// ones), and the rows that stand in their slots, on one snapshot. What was prepared in the round before is kept where it still holds.
func (c *Catalog) look(ctx context.Context, steps []step, before []*work, where naming) ([]*work, error) {
	works := make([]*work, len(steps))
	q := store.Question{Tables: make([]lance.TableID, len(steps)), Named: make([]store.NamedSlot, len(steps))}
	for i, s := range steps {
		works[i] = &work{step: s, index: i}
		q.Tables[i], q.Named[i] = s.id, store.NamedSlot{Table: s.id, Branch: s.branch, Number: s.version}
	}
	err := c.view(ctx, func(r store.Reader) error {
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
			c.noteUse(w.table.ID)
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
func (c *Catalog) assign(r store.Reader, works []*work, tables []lance.Table, where naming) error {
	type view struct {
		table lance.Table
		live  bool
	}
	overlay := map[string]view{}
	for i, w := range works {
		key := pathKey(w.id)
		now, touched := overlay[key]
		if !touched {
			now = view{table: tables[i], live: true}
		}
		if w.kind == lance.EntryDeclare && now.table.ID == 0 {
			planned, err := c.plan(r, w)
			if err != nil {
				return err
			}
			now = view{table: planned}
			overlay[key] = now
			w.fault = where.wrap(w, w.refusal)
		} else if w.kind == lance.EntryDeclare {
			w.fault = where.wrap(w, tableExists(w.id))
		}
		if now.table.ID == 0 {
			e, err := missingTable(r, w.id)
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
		if w.kind == lance.EntryDeregister {
			overlay[key] = view{}
		}
	}
	return nil
}

// plan makes the table that a step declares. Its id and location are fixed before anything is written, so that later steps
// of the same batch, and helpers, can refer to them. Its namespace is looked at when reserving and again when resolving.
func (c *Catalog) plan(r store.Reader, w *work) (lance.Table, error) {
	id := c.store.NewID()
	location := w.location
	ns, err := r.Namespace(w.id.Namespace())
	if ignoreNotFound(err) != nil {
		return lance.Table{}, err
	}
	w.properties = inherited(w.properties, ns)
	if location == "" {
		if location, err = c.newLocation(id, w.id.Name(), ns.Location); err != nil {
			return lance.Table{}, fmt.Errorf("location for table %q: %w", show(w.id), err)
		}
	}
	return lance.Table{ID: id, Path: w.id, State: lance.TableLive, Location: location, Properties: w.properties}, nil
}

// locate fills in the work's place in storage and, for a version, its slot and the name of its staged manifest.
func (c *Catalog) locate(w *work, where naming) error {
	p, err := c.place(w.table.Location)
	if err != nil {
		return fmt.Errorf("place of table %q: %w", show(w.id), err)
	}
	w.place = p
	w.slot = lance.Slot{Chain: lance.Chain{Table: w.table.ID, Branch: w.branch}, Number: w.version}
	if w.kind != lance.EntryCreateVersion {
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
	dir, name, err := lance.SplitManifestPath(w.manifestPath)
	if err != nil {
		return api.Errorf(api.CodeInvalidInput, "manifest_path %q: %v", w.manifestPath, err)
	}
	want := lance.VersionsPrefix(w.place.dir, w.branch)
	if dir != want {
		return api.Errorf(api.CodeInvalidInput, "manifest_path %q does not lie in the directory of this table and branch: it must be %[2]s%[3]s-<uuid>, or %[2]sd<u64>.manifest of a detached version to attach",
			w.manifestPath, want, lance.ManifestName(w.version, w.scheme))
	}
	detached, _, final := lance.ParseManifestName(name)
	switch {
	case final && detached.Detached() && !w.version.Detached():
		w.staged, w.attach = name, true
	case lance.CheckStagedName(name, w.version, w.scheme):
		w.staged = name
	default:
		return api.Errorf(api.CodeInvalidInput, "manifest_path %q is not a staged manifest of version %d with naming scheme %s: its name must be %s-<uuid>, or d<u64>.manifest for a detached version to attach",
			w.manifestPath, w.version, w.scheme, lance.ManifestName(w.version, w.scheme))
	}
	return nil
}

// creating returns the works that make a version and are sound so far.
func creating(works []*work) []*work {
	return slices.DeleteFunc(slices.Clone(works), func(w *work) bool {
		return w.kind != lance.EntryCreateVersion || w.fault != nil
	})
}

// pathKey returns a map key for a path; names hold no control characters, so no two paths share one (case A3).
func pathKey(id []string) string { return strings.Join(id, "\x1f") }
