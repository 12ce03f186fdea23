package catalog

import (
	"context"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// view is State.View.
func (c *Catalog) view(ctx context.Context, fn func(store.Reader) error) error {
	return c.state.View(ctx, fn)
}

// update is State.Update.
func (c *Catalog) update(ctx context.Context, fn func(store.Tx) error) error {
	return c.state.Update(ctx, fn)
}

// tableAt is state.TableAt.
func tableAt(r store.Reader, id lance.TableID) (lance.Table, error) { return state.TableAt(r, id) }
