package catalog

import (
	"context"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// DropDeclared drops a table that was declared at a location in order to be written, and was not: only if it still is the one there and
// no version of it is known, in which case all that lies in its directory are files that nobody refers to. Any other table stays as it is, which
// is no error.
func (c *Catalog) DropDeclared(ctx context.Context, id []string, location string) error {
	t, err := c.table(ctx, id)
	if err != nil || t.Location != location {
		return ignoreMissing(err)
	}
	// A writer that commits past the catalog may have made versions of it.
	if v, err := c.chains.Latest(ctx, t, lance.Main); err != nil || v.Number != 0 {
		return err
	}
	dropped := false
	err = c.state.Update(ctx, func(tx store.Tx) error {
		dropped = false
		now, err := state.TableAt(tx, id)
		if err != nil || now.ID != t.ID {
			return ignoreMissing(err)
		}
		branches, err := tx.Branches(t.ID)
		if err != nil || len(branches) > 0 {
			return err
		}
		d := dropper{tx: tx}
		err = d.table(t, lance.TableDropped)
		dropped = d.dropped
		return err
	})
	c.wake(dropped)
	return err
}

// ignoreMissing makes nothing of the error that a table, or its namespace, is not there.
func ignoreMissing(err error) error {
	if err != nil && (api.CodeOf(err) == api.CodeTableNotFound || api.CodeOf(err) == api.CodeNamespaceNotFound) {
		return nil
	}
	return err
}

// EngineOptions are what a worker of the engine needs to reach a table by itself: where storage is, and the operator's own keys; nil where the
// machine alone is enough, as for directories. They may be handed to nobody else. Errors: 17 (the provider does not answer), 18, 19 (the
// location is in no root).
func (c *Catalog) EngineOptions(ctx context.Context, location string) (map[string]string, error) {
	p, err := c.places.At(location)
	if err != nil {
		return nil, err
	}
	given, err := p.Root.Engine.WithKeys(ctx, p.Location)
	if err != nil {
		return nil, accessError(location, err)
	}
	return given.Values, nil
}
