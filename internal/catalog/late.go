package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/store"
)

// A request that was given up, or whose sender died, can take effect later. Where the server of a storage judges the conditions of puts and
// removals, such a latecomer meets what stands in the slot by then and does nothing. Where it does not, the put of an aborted content can
// replace a version that was committed after it, and the removal of such a content can remove that version. For a while after every
// abort the slots of its contents are therefore looked at again, and a committed version whose manifest is gone, or is that content, is
// published again from its staged copy, which is kept for longer than that (C10).

// lateMax is for how long after an abort its slots are looked at, and lateKeep how long staged manifests are kept for it.
const (
	lateMax  = 15 * time.Minute
	lateKeep = lateMax + 5*time.Minute
)

// mendLate looks at the slots of an aborted transaction where the storage judges too little, and sees to it that this is done again, after pauses
// that double, until nothing can come late any more.
func (c *Catalog) mendLate(ctx context.Context, t *lance.Transaction) error {
	unjudged := false
	for _, e := range t.Entries {
		p, err := c.place(e.Location)
		if err != nil {
			return err
		}
		if e.Kind != lance.EntryCreateVersion || p.root.Unjudged == "" {
			continue
		}
		unjudged = true
		if err := c.mend(ctx, chainPlace{chain: slotOf(e).Chain, place: p, path: e.Path}, slotOf(e)); err != nil {
			return err
		}
	}
	since := c.now().Sub(t.ResolvedAt)
	if !unjudged || since > lateMax {
		return nil
	}
	return c.store.Update(ctx, func(tx store.Tx) error {
		return tx.InsertJob(store.Job{ID: tx.NewID(), Kind: JobCleanAborted, Payload: string(t.ID), RunAt: tx.Now().Add(max(since, abortGrace))})
	})
}

// mend publishes the committed version in a slot again if its manifest is gone or another's.
func (c *Catalog) mend(ctx context.Context, cp chainPlace, slot lance.Slot) error {
	row, err := c.rowIn(ctx, slot)
	if err != nil || row.State != lance.VersionCommitted || row.Staged == "" {
		return err
	}
	there, err := c.stillThere(ctx, cp, row)
	if err != nil || there {
		return err
	}
	if err := c.republish(ctx, cp.place, row); err != nil {
		return fmt.Errorf("publish version %d of table %q again, whose manifest is gone: %w", row.Number, show(cp.path), err)
	}
	c.notify(ctx, Event{Kind: EventRestored, Table: show(cp.path), Version: row.Number, Detail: "its manifest was lost to a late request, and is written again"})
	return nil
}

// republish puts a committed version's manifest back from its staged copy.
func (c *Catalog) republish(ctx context.Context, p place, row lance.Version) error {
	e := lance.Entry{Branch: row.Chain.Branch, Version: row.Number, Staged: row.Staged, Digest: hexDigest(row.Digest), Size: row.Size}
	staged, err := c.readStaged(ctx, p, e)
	if errors.Is(err, errStagedGone) {
		return fmt.Errorf("the staged manifest %s is gone, or is not what was committed", row.Staged)
	}
	if err != nil {
		return err
	}
	defer staged.free()
	_, err = p.objects.PutIfAbsent(ctx, p.final(row.Chain.Branch, row.Number, row.Scheme), staged.data)
	return ignoreExists(err)
}

func ignoreExists(err error) error {
	if errors.Is(err, objstore.ErrExists) {
		return nil
	}
	return err
}
