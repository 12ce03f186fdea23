package catalog

import (
	"cmp"
	"context"
	"errors"
	"maps"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// LocationProperty is the property of a namespace that says where its new tables go, and those of the namespaces below it that do not
// say it themselves.
const LocationProperty = "location"

// CreateNamespace makes a namespace below one that exists. Mode Create refuses a name that is taken (2), ExistOk returns the
// namespace as it is, Overwrite drops an empty one first and refuses one that is not (3): no data is ever dropped by it.
// The property "location" puts its tables under another place in the allowed roots, and comes back in canonical form. The property
// "managed_versioning" says whether the catalog manages the versions of its tables; namespaces in it have it, too, unless they say otherwise.
// Errors: 1 (parent missing), 2 (taken, also by a table, and always for the root), 3, 13 (also where the location is outside the allowed
// roots, or inside a table's).
func (c *Catalog) CreateNamespace(ctx context.Context, req *api.CreateNamespaceRequest) (*api.CreateNamespaceResponse, error) {
	id := lance.NamespaceID(req.ID)
	mode, err := choose("mode", req.Mode, "Create", "ExistOk", "Overwrite")
	if err != nil {
		return nil, err
	}
	if err := checkProperties(req.Properties); err != nil {
		return nil, err
	}
	if len(id) == 0 {
		if mode == "ExistOk" {
			return &api.CreateNamespaceResponse{Properties: map[string]string{}}, nil
		}
		return nil, api.Errorf(api.CodeNamespaceAlreadyExists, "the root namespace always exists")
	}
	asked, space, err := c.placed(ctx, filled(req.Properties))
	if err != nil {
		return nil, err
	}
	var properties map[string]string
	err = c.state.Update(ctx, func(tx store.Tx) error {
		parent, err := state.NamespaceAt(tx, id[:len(id)-1])
		if err != nil {
			return err
		}
		properties = chain.Inherited(asked, parent)
		there, err := tx.Namespace(id)
		if err == nil {
			switch mode {
			case "ExistOk":
				properties = filled(there.Properties)
				return keep(ctx, tx, &api.CreateNamespaceResponse{Properties: properties})
			case "Create":
				return api.Errorf(api.CodeNamespaceAlreadyExists, "namespace %q already exists", lance.ShowID(id))
			}
			if err := dropEmpty(tx, there); err != nil {
				return err
			}
		} else if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		// A namespace never changes, so what is below it can copy its place.
		err = tx.InsertNamespace(lance.Namespace{
			ID: tx.NewID(), Parent: parent.ID, Path: id, Location: cmp.Or(space, parent.Location), Properties: properties, CreatedAt: tx.Now(),
		})
		if errors.Is(err, store.ErrExists) {
			return api.Errorf(api.CodeNamespaceAlreadyExists, "%q already exists as a table: names are unique among all children of a namespace", lance.ShowID(id))
		}
		if errors.Is(err, store.ErrLocationTaken) {
			return api.Errorf(api.CodeInvalidInput, "property %s: %q lies in the location of a table: choose a place where no table is", LocationProperty, space)
		}
		if err != nil {
			return err
		}
		return keep(ctx, tx, &api.CreateNamespaceResponse{Properties: properties})
	})
	if err != nil {
		return nil, err
	}
	return &api.CreateNamespaceResponse{Properties: properties}, nil
}

// placed returns the properties of a namespace with their location in canonical form, and that location, "" where they have none.
func (c *Catalog) placed(ctx context.Context, properties map[string]string) (map[string]string, string, error) {
	given, ok := properties[LocationProperty]
	if !ok {
		return properties, "", nil
	}
	loc, err := c.places.ParseGiven(given)
	if err == nil {
		err = c.places.CheckSpace(loc)
	}
	if err != nil {
		return nil, "", api.Errorf(api.CodeInvalidInput, "property %s: %v", LocationProperty, err)
	}
	if err := c.places.CheckShared(ctx, loc); err != nil {
		return nil, "", err
	}
	properties = maps.Clone(properties)
	properties[LocationProperty] = loc.String()
	return properties, loc.String(), nil
}

// ListNamespaces lists the names of the direct children of a namespace, sorted bytewise. Errors: 1, 13.
func (c *Catalog) ListNamespaces(ctx context.Context, req *api.ListNamespacesRequest) (*api.ListNamespacesResponse, error) {
	limit, cur, err := c.openPage(req.Page, "ns/"+lance.PathKey(req.ID))
	if err != nil {
		return nil, err
	}
	resp := &api.ListNamespacesResponse{}
	more := false
	err = c.state.View(ctx, func(r store.Reader) error {
		resp.Namespaces = []string{}
		ns, err := state.NamespaceAt(r, req.ID)
		if err != nil {
			return err
		}
		children, err := r.ListNamespaces(ns.ID, cur.Name, limit+1)
		if err != nil {
			return err
		}
		children, more = chain.Cut(children, limit)
		for _, child := range children {
			resp.Namespaces = append(resp.Namespaces, child.Name())
			cur.Name = child.Name()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	resp.PageToken, err = c.closeCursor(cur, more)
	return resp, err
}

// openPage checks the limit and the token of a request for one page of a list.
func (c *Catalog) openPage(p api.Page, scope string) (int, cursor, error) {
	limit, err := pageLimit(p)
	if err != nil {
		return 0, cursor{}, err
	}
	cur, err := c.openCursor(p, scope)
	return limit, cur, err
}

// DescribeNamespace returns the properties of a namespace, {} for the root. Errors: 1.
func (c *Catalog) DescribeNamespace(ctx context.Context, req *api.DescribeNamespaceRequest) (*api.DescribeNamespaceResponse, error) {
	var ns lance.Namespace
	err := c.state.View(ctx, func(r store.Reader) (err error) {
		ns, err = state.NamespaceAt(r, req.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.DescribeNamespaceResponse{Properties: filled(ns.Properties)}, nil
}

// NamespaceExists succeeds if the namespace exists. Errors: 1.
func (c *Catalog) NamespaceExists(ctx context.Context, req *api.NamespaceExistsRequest) (*api.NamespaceExistsResponse, error) {
	err := c.state.View(ctx, func(r store.Reader) error {
		_, err := state.NamespaceAt(r, req.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.NamespaceExistsResponse{}, nil
}

// DropNamespace removes a namespace. Mode Fail refuses a missing one (1), Skip accepts it; behavior Restrict refuses one that has
// children (3), Cascade drops all its tables, with their data, and all namespaces below it, in one transaction.
// A table in it whose files a shallow clone outside needs is refused. Errors: 1, 3, 13 (also for the root), 19.
func (c *Catalog) DropNamespace(ctx context.Context, req *api.DropNamespaceRequest) (*api.DropNamespaceResponse, error) {
	mode, err := choose("mode", req.Mode, "Fail", "Skip")
	if err != nil {
		return nil, err
	}
	behavior, err := choose("behavior", req.Behavior, "Restrict", "Cascade")
	if err != nil {
		return nil, err
	}
	if len(req.ID) == 0 {
		return nil, api.Errorf(api.CodeInvalidInput, "the root namespace cannot be dropped: name one below it")
	}
	resp := &api.DropNamespaceResponse{}
	for {
		var d dropper
		err := c.state.Update(ctx, func(tx store.Tx) error {
			d = dropper{tx: tx}
			ns, err := state.NamespaceAt(tx, req.ID)
			if err != nil {
				if api.CodeOf(err) == api.CodeNamespaceNotFound && mode == "Skip" {
					return keep(ctx, tx, resp)
				}
				return err
			}
			resp.Properties = filled(ns.Properties)
			if behavior == "Cascade" {
				err = d.cascade(ns)
			} else {
				err = dropEmpty(tx, ns)
			}
			if err == nil && len(d.pending) > 0 {
				return state.ErrRolledBack
			}
			if err == nil {
				err = d.unshared()
			}
			if err != nil {
				return err
			}
			return keep(ctx, tx, resp)
		})
		if errors.Is(err, state.ErrRolledBack) {
			if err := c.completer.HelpAll(ctx, d.pending); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		c.wake(d.dropped)
		return resp, nil
	}
}

// dropEmpty removes a namespace without children, and refuses one that has any.
func dropEmpty(tx store.Tx, ns lance.Namespace) error {
	below, err := tx.ListNamespaces(ns.ID, "", 1)
	if err != nil {
		return err
	}
	tables, err := tx.ListTables(ns.ID, store.TablePage{Limit: 1})
	if err != nil {
		return err
	}
	if len(below)+len(tables) > 0 {
		return api.Errorf(api.CodeNamespaceNotEmpty, "namespace %q is not empty: drop what is in it first, or ask for behavior Cascade", lance.ShowID(ns.Path))
	}
	return tx.DeleteNamespace(ns.ID)
}

// dropper drops everything below a namespace.
type dropper struct {
	tx      store.Tx
	pending []lance.TransactionID // transactions that must end first
	dropped bool
	removed []lance.Table // whose directories are to be removed
}

// dropChunk is how many children are read at a time.
const dropChunk = 500

func (d *dropper) cascade(ns lance.Namespace) error {
	for {
		below, err := d.tx.ListNamespaces(ns.ID, "", dropChunk)
		if err != nil {
			return err
		}
		for _, child := range below {
			if err := d.cascade(child); err != nil || len(d.pending) > 0 {
				return err
			}
		}
		if len(below) < dropChunk {
			break
		}
	}
	for {
		tables, err := d.tx.ListTables(ns.ID, store.TablePage{Limit: dropChunk})
		if err != nil {
			return err
		}
		for _, t := range tables {
			if err := d.table(t, lance.TableDropped); err != nil || len(d.pending) > 0 {
				return err
			}
		}
		if len(tables) < dropChunk {
			return d.tx.DeleteNamespace(ns.ID)
		}
	}
}
