package chain

import (
	"context"
	"fmt"

	"github.com/lancerest/lancerest/internal/commit/finish"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// DropDetached removes the manifests and the rows of the detached versions that a transaction attached: JobDropDetached. A transaction that is gone
// has none. The error says what could not be removed; it is to be tried again.
func (c *Chains) DropDetached(ctx context.Context, id lance.TransactionID) error {
	t, err := c.recorded(ctx, id)
	if err != nil {
		return err
	}
	for _, e := range t.Entries {
		number, attached := finish.DetachedOf(e)
		if !attached {
			continue
		}
		at, err := c.places.ProvenAt(ctx, e.Location)
		if err != nil {
			return err
		}
		if err := at.Objects.Delete(ctx, at.Final(e.Branch, number, lance.SchemeV2)); err != nil {
			return fmt.Errorf("remove detached version %d of table %q: %w", number, lance.ShowID(e.Path), err)
		}
		err = c.state.Store.Update(ctx, func(tx store.Tx) error {
			_, err := tx.MarkVersions(finish.SlotOf(e).Chain, number, number, lance.VersionDeleted, 1)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// CleanAborted removes what an aborted transaction had published, and mends what its late requests did: JobCleanAborted (C10). The error is
// that of a storage or of the state; it is to be tried again.
func (c *Chains) CleanAborted(ctx context.Context, id lance.TransactionID) error {
	t, err := c.recorded(ctx, id)
	if err != nil {
		return err
	}
	for _, e := range t.Entries {
		if _, err := c.places.ProvenAt(ctx, e.Location); err != nil {
			return err
		}
	}
	if err := c.completer.RemovePublished(ctx, &t); err != nil {
		return err
	}
	return c.mendLate(ctx, &t)
}

// recorded returns the transaction that a job is about, one without entries if its record is gone.
func (c *Chains) recorded(ctx context.Context, id lance.TransactionID) (lance.Transaction, error) {
	var t lance.Transaction
	err := c.state.Store.View(ctx, func(r store.Reader) (err error) {
		t, err = r.Transaction(id)
		return err
	})
	return t, state.IgnoreNotFound(err)
}
