package chain

import (
	"context"
	"fmt"
	"time"

	"github.com/lancerest/lancerest/internal/commit/finish"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// A request that was given up, or whose sender died, can take effect later. Where the server of a storage judges the conditions of puts and
// removals, such a latecomer meets what stands in the slot by then and does nothing. Where it does not, the put of an aborted content can
// replace a version that was committed after it, and the removal of such a content can remove that version. For a while after every
// abort the slots of its contents are therefore looked at again, and a committed version whose manifest is gone, or is that content, is
// published again from its staged copy, which is kept for longer than that (C10).

// mendLate looks at the slots of an aborted transaction where the storage judges too little, and sees to it that this is done again, after pauses
// that double, until nothing can come late any more.
func (c *Chains) mendLate(ctx context.Context, t *lance.Transaction) error {
	unjudged := false
	for _, e := range t.Entries {
		p, err := c.places.At(e.Location)
		if err != nil {
			return err
		}
		if e.Kind != lance.EntryCreateVersion || p.Root.Unjudged == "" {
			continue
		}
		unjudged = true
		if err := c.mend(ctx, Located{Chain: finish.SlotOf(e).Chain, Place: p, Path: e.Path}, finish.SlotOf(e)); err != nil {
			return err
		}
	}
	since := time.Now().Sub(t.ResolvedAt)
	if !unjudged || since > finish.LateMax {
		return nil
	}
	return c.state.Store.Update(ctx, func(tx store.Tx) error {
		return tx.InsertJob(store.Job{ID: tx.NewID(), Kind: finish.JobCleanAborted, Payload: string(t.ID), RunAt: tx.Now().Add(max(since, finish.AbortGrace))})
	})
}

// mend publishes the committed version in a slot again if its manifest is gone or another's.
func (c *Chains) mend(ctx context.Context, cp Located, slot lance.Slot) error {
	row, err := c.state.RowIn(ctx, slot)
	if err != nil || row.State != lance.VersionCommitted || row.Staged == "" {
		return err
	}
	there, err := c.StillThere(ctx, cp, row)
	if err != nil || there {
		return err
	}
	if err := c.completer.Republish(ctx, cp.Place, row); err != nil {
		return fmt.Errorf("publish version %d of table %q again, whose manifest is gone: %w", row.Number, lance.ShowID(cp.Path), err)
	}
	c.completer.Notify(ctx, finish.Event{Kind: finish.EventRestored, Table: lance.ShowID(cp.Path), Version: row.Number, Detail: "its manifest was lost to a late request, and is written again"})
	return nil
}
