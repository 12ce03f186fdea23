package catalog

import (
	"context"
	"errors"
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/commit/finish"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// ListTables lists the names of the tables directly in a namespace, sorted bytewise; those that are only declared too, unless
// include_declared is false. Errors: 1, 13.
func (c *Catalog) ListTables(ctx context.Context, req *api.ListTablesRequest) (*api.ListTablesResponse, error) {
	limit, cur, err := c.openPage(req.Page, "tables/"+lance.PathKey(req.ID))
	if err != nil {
		return nil, err
	}
	resp := &api.ListTablesResponse{}
	more := false
	err = c.state.View(ctx, func(r store.Reader) error {
		resp.Tables = []string{}
		ns, err := state.NamespaceAt(r, req.ID)
		if err != nil {
			return err
		}
		names, err := r.TableNames(ns.ID, store.TablePage{AfterName: cur.Name, Limit: limit + 1, WithoutDeclared: unsaid(req.IncludeDeclared)})
		if err != nil {
			return err
		}
		if names, more = chain.Cut(names, limit); len(names) > 0 {
			resp.Tables, cur.Name = names, names[len(names)-1]
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	resp.PageToken, err = c.closeCursor(cur, more)
	return resp, err
}

// unsaid reports whether an optional flag was given as false.
func unsaid(flag *bool) bool { return flag != nil && !*flag }

// ListAllTables lists the ids of all tables of the catalog, joined by the request's delimiter. A table with the delimiter in one of
// its names is left out: with that delimiter nobody could address it. Errors: 13.
func (c *Catalog) ListAllTables(ctx context.Context, req *api.ListTablesRequest, delimiter string) (*api.ListTablesResponse, error) {
	limit, cur, err := c.openPage(req.Page, "all")
	if err != nil {
		return nil, err
	}
	resp := &api.ListTablesResponse{}
	more := false
	err = c.state.View(ctx, func(r store.Reader) error {
		resp.Tables = []string{}
		tables, err := r.ListAllTables(store.TablePage{
			AfterNamespace: lance.ObjectID(cur.Space), AfterName: cur.Name, Limit: limit + 1, WithoutDeclared: unsaid(req.IncludeDeclared),
		})
		if err != nil {
			return err
		}
		tables, more = chain.Cut(tables, limit)
		for _, t := range tables {
			if lance.CheckPath(t.Path, delimiter) == nil {
				resp.Tables = append(resp.Tables, lance.JoinID(t.Path, delimiter))
			}
			cur.Space, cur.Name = int64(t.Namespace), t.Path.Name()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	resp.PageToken, err = c.closeCursor(cur, more)
	return resp, err
}

// DeclareTable reserves a name and a location of its own; storage is not touched. With a location the table goes there, if
// that lies in an allowed root, overlaps no other table's and holds no dataset yet. What clients need to write the table is added by
// EquipDeclared. Errors: 1, 5 (taken, also by a namespace), 13 (location outside the roots, or too long for keys of its own), 19 (the
// location holds a dataset: register it).
func (c *Catalog) DeclareTable(ctx context.Context, req *api.DeclareTableRequest) (*api.DeclareTableResponse, error) {
	s, err := c.declareStep(ctx, req)
	if err == nil && s.Location != "" {
		err = c.fitsKeys(ctx, s.Location, req.VendCredentials)
	}
	if err != nil {
		return nil, err
	}
	var t lance.Table
	err = c.state.Update(ctx, func(tx store.Tx) error {
		ns, err := state.NamespaceAt(tx, s.ID.Namespace())
		if err != nil {
			return err
		}
		t = lance.Table{
			ID: tx.NewID(), Namespace: ns.ID, Path: s.ID, State: lance.TableLive, Location: s.Location,
			Properties: chain.Inherited(s.Properties, ns), CreatedAt: tx.Now(),
		}
		if t.Location == "" {
			if t.Location, err = c.places.NewLocation(t.ID, s.ID.Name(), ns.Location); err != nil {
				return err
			}
		}
		err = tx.InsertTable(t)
		if refusal := state.DeclareRefusal(err, s.ID, t.Location); refusal != nil {
			return refusal
		}
		if err != nil {
			return err
		}
		return keep(ctx, tx, declared(t))
	})
	if err != nil {
		return nil, err
	}
	return declared(t), nil
}

// declareStep checks the request to declare a table.
func (c *Catalog) declareStep(ctx context.Context, req *api.DeclareTableRequest) (commit.Step, error) {
	s := commit.Step{Kind: lance.EntryDeclare, ID: req.ID, Properties: req.Properties}
	if err := checkTableID(s.ID); err != nil {
		return s, err
	}
	if err := checkProperties(req.Properties); err != nil || req.Location == nil {
		return s, err
	}
	var err error
	if s.Location, err = c.places.Given(ctx, *req.Location); err != nil {
		return s, err
	}
	p, err := c.places.At(s.Location)
	if err != nil {
		return s, err
	}
	manifests, err := c.chains.ManifestsAbove(ctx, chain.Located{Place: p, Path: s.ID}, 0)
	if err == nil && len(manifests) > 0 {
		err = api.Errorf(api.CodeInvalidTableState, "location %q holds a dataset already: register it instead, or declare the table elsewhere", s.Location)
	}
	if err == nil {
		err = p.CheckVacant(ctx)
	}
	return s, err
}

// checkTableID refuses the root as a table, and names that are none: ids in lists come to the catalog as callers wrote them.
func checkTableID(id lance.TableID) error {
	if len(id) == 0 {
		return api.Errorf(api.CodeInvalidInput, "the id of a table must hold at least its name; it names the root")
	}
	return checkPath(id)
}

func checkPath(id []string) error {
	if err := lance.CheckPath(id, ""); err != nil {
		return api.Errorf(api.CodeInvalidInput, "%v", err)
	}
	return nil
}

func declared(t lance.Table) *api.DeclareTableResponse {
	return &api.DeclareTableResponse{
		Location: ptr(t.Location), Properties: filled(t.Properties), ManagedVersioning: ptr(chain.Managed(t)),
	}
}

// TableExists succeeds if the table, and the version if one is given, exists. Errors: 1, 4, 11.
func (c *Catalog) TableExists(ctx context.Context, req *api.TableExistsRequest) (*api.TableExistsResponse, error) {
	t, err := c.table(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	if req.Version != nil {
		slot := lance.Slot{Chain: lance.Chain{Table: t.ID}, Number: lance.VersionNumber(*req.Version)}
		if _, err := c.chains.Version(ctx, t, slot); err != nil {
			return nil, err
		}
	}
	return &api.TableExistsResponse{}, nil
}

// table returns the live table at a path, or the error of code 1 or 4.
func (c *Catalog) table(ctx context.Context, id lance.TableID) (lance.Table, error) {
	if err := checkTableID(id); err != nil {
		return lance.Table{}, err
	}
	var t lance.Table
	err := c.state.View(ctx, func(r store.Reader) (err error) {
		t, err = state.TableAt(r, id)
		return err
	})
	if err == nil {
		c.chains.Use(t.ID)
	}
	return t, err
}

// DropTable removes a table and queues the removal of its directory in the same transaction. Its name is free at once, its
// location only when the purge is through. A table whose files a shallow clone needs is refused. Errors: 1, 4, 19.
func (c *Catalog) DropTable(ctx context.Context, req *api.DropTableRequest) (*api.DropTableResponse, error) {
	return endTable(ctx, c, ending{id: req.ID, state: lance.TableDropped}, func(t lance.Table) *api.DropTableResponse {
		return &api.DropTableResponse{ID: t.Path, Location: ptr(t.Location), Properties: filled(t.Properties)}
	})
}

// DeregisterTable removes a table from the catalog and leaves its files as they are: registering its location brings it back.
// Errors: 1, 4.
func (c *Catalog) DeregisterTable(ctx context.Context, req *api.DeregisterTableRequest) (*api.DeregisterTableResponse, error) {
	return endTable(ctx, c, ending{id: req.ID, state: lance.TableDeregistered}, func(t lance.Table) *api.DeregisterTableResponse {
		return &api.DeregisterTableResponse{ID: t.Path, Location: ptr(t.Location), Properties: filled(t.Properties)}
	})
}

// ending says which table is to end, and how.
type ending struct {
	id    lance.TableID
	state lance.TableState
}

// endTable ends a table once no transaction is pending on it: one that was reserved before must not lose its table (C5).
func endTable[Response any](ctx context.Context, c *Catalog, e ending, render func(lance.Table) *Response) (*Response, error) {
	if err := checkTableID(e.id); err != nil {
		return nil, err
	}
	for {
		var response *Response
		var d dropper
		err := c.state.Update(ctx, func(tx store.Tx) error {
			d = dropper{tx: tx}
			t, err := state.TableAt(tx, e.id)
			if err != nil {
				return err
			}
			if err := d.table(t, e.state); err != nil {
				return err
			}
			if len(d.pending) > 0 {
				return state.ErrRolledBack
			}
			if err := d.unshared(); err != nil {
				return err
			}
			response = render(t)
			return keep(ctx, tx, response)
		})
		if err == nil {
			c.wake(true)
			return response, nil
		}
		if !errors.Is(err, state.ErrRolledBack) {
			return nil, err
		}
		if err := c.completer.HelpAll(ctx, d.pending); err != nil {
			return nil, err
		}
	}
}

// table ends one table and queues what must follow, or notes the transactions that must end first.
func (d *dropper) table(t lance.Table, state lance.TableState) error {
	var err error
	if d.pending, err = d.tx.PendingOn([]lance.ObjectID{t.ID}); err != nil || len(d.pending) > 0 {
		return err
	}
	if err := d.tx.EndTable(t.ID, state); err != nil {
		return err
	}
	d.dropped = true
	if state == lance.TableDropped {
		d.removed = append(d.removed, t)
		return finish.InsertJob(d.tx, JobPurge, finish.PurgePayload{Table: t.ID, Location: t.Location})
	}
	return finish.InsertJob(d.tx, JobForget, finish.ForgetPayload{Table: t.ID})
}

// RenameTable gives a table another name, in its namespace or, where one is given, in another ([] is the root). The location,
// versions, tags and branches stay as they are. Renaming a table to what it is called is a success that changes nothing.
// Errors: 1 (either namespace), 4, 5, 13.
func (c *Catalog) RenameTable(ctx context.Context, req *api.RenameTableRequest) (*api.RenameTableResponse, error) {
	if err := checkTableID(req.ID); err != nil {
		return nil, err
	}
	from := lance.TableID(req.ID)
	namespace := []string(from.Namespace())
	if given, ok := req.Destination(); ok {
		namespace = given
	}
	to := append(append(lance.TableID{}, namespace...), req.NewTableName)
	if err := checkPath(to); err != nil {
		return nil, err
	}
	err := c.state.Update(ctx, func(tx store.Tx) error {
		t, err := state.TableAt(tx, from)
		if err != nil {
			return err
		}
		ns, err := state.NamespaceAt(tx, to.Namespace())
		if err == nil && lance.PathKey(from) != lance.PathKey(to) {
			err = tx.RenameTable(t.ID, ns.ID, to.Name())
		}
		if errors.Is(err, store.ErrExists) {
			return state.TableExists(to)
		}
		if err != nil {
			return err
		}
		return keep(ctx, tx, &api.RenameTableResponse{})
	})
	if err != nil {
		return nil, err
	}
	return &api.RenameTableResponse{}, nil
}

// RegisterTable takes in an existing dataset inside an allowed root: the table and all versions that storage has, of main and
// of its branches, in one transaction. Mode Overwrite deregisters a table that has the name. Errors: 1, 5 (name or location
// taken), 13 (no dataset there, or outside the roots).
func (c *Catalog) RegisterTable(ctx context.Context, req *api.RegisterTableRequest) (*api.RegisterTableResponse, error) {
	id := lance.TableID(req.ID)
	if err := checkTableID(id); err != nil {
		return nil, err
	}
	mode, err := choose("mode", req.Mode, "Create", "Overwrite")
	if err != nil {
		return nil, err
	}
	if err := checkProperties(req.Properties); err != nil {
		return nil, err
	}
	location, err := c.places.Given(ctx, req.Location)
	if err != nil {
		return nil, err
	}
	if err := c.registrable(ctx, id, mode); err != nil {
		return nil, err
	}
	t := lance.Table{ID: c.state.Store.NewID(), Path: id, State: lance.TableLive, Location: location, Properties: req.Properties}
	finds, err := c.chains.Importable(ctx, t)
	if err != nil {
		return nil, err
	}
	resp := &api.RegisterTableResponse{Location: ptr(location)}
	for {
		var d dropper
		err := c.state.Update(ctx, func(tx store.Tx) error {
			d = dropper{tx: tx}
			entered := t
			if err := d.register(&entered, finds, mode); err != nil {
				return err
			}
			resp.Properties = filled(entered.Properties)
			return keep(ctx, tx, resp)
		})
		if errors.Is(err, state.ErrRolledBack) {
			err = c.completer.HelpAll(ctx, d.pending)
		} else if err == nil {
			c.wake(d.dropped)
			return resp, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// registrable looks at the names before storage is read: the namespace exists, and the name is free unless it is to be replaced.
func (c *Catalog) registrable(ctx context.Context, id lance.TableID, mode string) error {
	return c.state.View(ctx, func(r store.Reader) error {
		if _, err := state.NamespaceAt(r, id.Namespace()); err != nil {
			return err
		}
		there, err := r.Tables([]lance.TableID{id})
		if err == nil && there[0].ID != 0 && mode == "Create" {
			err = state.TableExists(id)
		}
		return err
	})
}

func (d *dropper) register(t *lance.Table, finds []chain.Found, mode string) error {
	ns, err := state.NamespaceAt(d.tx, t.Path.Namespace())
	if err != nil {
		return err
	}
	if mode == "Overwrite" {
		there, err := d.tx.Tables([]lance.TableID{t.Path})
		if err != nil {
			return err
		}
		if there[0].ID != 0 {
			if err := d.table(there[0], lance.TableDeregistered); err != nil {
				return err
			}
			if len(d.pending) > 0 {
				return state.ErrRolledBack
			}
		}
	}
	t.Namespace, t.CreatedAt, t.Properties = ns.ID, d.tx.Now(), chain.Inherited(t.Properties, ns)
	err = d.tx.InsertTable(*t)
	if refusal := state.DeclareRefusal(err, t.Path, t.Location); refusal != nil {
		return refusal
	}
	if err != nil {
		return err
	}
	versions := make([]lance.Version, len(finds))
	for i, f := range finds {
		versions[i] = f.Version
		if err := chain.NoteClone(d.tx, t.ID, f.Bases); err != nil {
			return err
		}
	}
	return d.tx.InsertVersions(versions)
}

// unshared refuses to drop tables whose files live tables need, once all that is to be dropped is.
func (d *dropper) unshared() error {
	for _, t := range d.removed {
		names, err := chain.ClonesOf(d.tx, t.Location)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			return api.Errorf(api.CodeInvalidTableState, "table %q cannot be dropped: files in its directory belong to %s too, made of it by a shallow clone: drop that first, or deregister this one, which leaves its files", lance.ShowID(t.Path), strings.Join(names, ", "))
		}
	}
	return nil
}
