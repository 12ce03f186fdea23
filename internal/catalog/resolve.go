package catalog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/store"
)

// finished is the end of a transaction.
type finished struct {
	state    lance.TransactionState
	entries  []lance.Entry
	versions []lance.Version // by entry; only where the entry makes one
	// Of an aborted transaction: the entry that could not be carried out, -1 where only another server met the reason, and why;
	// refusal is nil where a bypassing writer won.
	index   int
	refusal *api.Error
}

// driven is what the server that reserved a transaction knows beyond its record; a helper knows nothing.
type driven struct {
	data [][]byte // what to publish, by entry; nil where it must be read again
	kept func(store.Tx, *finished) error
}

// errNotPending makes the store forget a resolution that somebody else has made already.
var errNotPending = errors.New("the transaction is not pending")

// finish takes a reserved transaction to its end: publish everything, then resolve, or abort if that cannot be (C6, C10). It is
// idempotent, and safe beside others who do the same. The context must not be the caller's own (C11), and the caller has entered the
// transaction with begin.
func (c *Catalog) finish(ctx context.Context, t *lance.Transaction, d driven) (*finished, error) {
	for {
		done, err := c.publish(ctx, t, d.data)
		if err != nil {
			return nil, err
		}
		for i, p := range done {
			if p.blocked != "" {
				return c.abort(ctx, t, done, defeat{index: i, refusal: api.Errorf(api.CodeInvalidTableState,
					"something that is no object stands under the final name %s, and nothing of the commit was kept: remove it", p.blocked)})
			}
			if p.foreign {
				return c.abort(ctx, t, done, defeat{index: i})
			}
			if p.gone {
				return c.abort(ctx, t, done, defeat{index: i, refusal: api.Errorf(api.CodeInvalidInput,
					"the staged manifest was removed or replaced before it could be published: stage it again")})
			}
		}
		f, pending, err := c.resolve(ctx, t, done, d)
		if err != nil {
			return nil, err
		}
		if len(pending) == 0 {
			return f, nil
		}
		if err := c.helpAll(ctx, pending); err != nil {
			return nil, err
		}
	}
}

// resolve marks a published transaction committed and makes all its effects visible in one database transaction. It returns
// other transactions that must end first, if there are any.
func (c *Catalog) resolve(ctx context.Context, t *lance.Transaction, done []published, d driven) (*finished, []lance.TransactionID, error) {
	var e effects
	var pending []lance.TransactionID
	err := c.store.Update(ctx, func(tx store.Tx) error {
		e = effects{tx: tx, t: t, entries: slices.Clone(t.Entries)}
		pending = nil
		if err := e.run(done); err != nil {
			return err
		}
		if e.refusal != nil {
			return errRolledBack
		}
		if len(e.waiting) > 0 {
			pending = e.waiting
			return errRolledBack
		}
		err := e.commit()
		if err == nil && slices.ContainsFunc(t.Entries, attaches) {
			err = tx.InsertJob(store.Job{ID: tx.NewID(), Kind: JobDropDetached, Payload: string(t.ID), RunAt: tx.Now().Add(detachedKeep)})
		}
		if err != nil || d.kept == nil {
			return err
		}
		return d.kept(tx, e.finished())
	})
	switch {
	case errors.Is(err, errNotPending):
		f, err := c.endOf(ctx, t)
		return f, nil, err
	case errors.Is(err, errRolledBack) && len(pending) > 0:
		return nil, pending, nil
	case errors.Is(err, errRolledBack):
		f, err := c.abort(ctx, t, done, defeat{index: e.index, refusal: e.refusal})
		return f, nil, err
	case err != nil:
		return nil, nil, fmt.Errorf("resolve transaction %s: %w", t.ID, err)
	}
	if e.queued {
		c.opts.Wake()
	}
	if e.unsynced {
		c.syncer.later()
	}
	return e.finished(), nil, nil
}

func attaches(e lance.Entry) bool {
	_, attached := detachedOf(e)
	return attached
}

// endOf reports a transaction that somebody else has ended.
func (c *Catalog) endOf(ctx context.Context, t *lance.Transaction) (*finished, error) {
	f := &finished{index: -1}
	err := c.store.View(ctx, func(r store.Reader) error {
		now, err := r.Transaction(t.ID)
		if err != nil {
			return err
		}
		f.state, f.entries, f.versions = now.State, now.Entries, make([]lance.Version, len(now.Entries))
		var slots []lance.Slot
		var at []int
		for i, e := range now.Entries {
			if e.Kind == lance.EntryCreateVersion {
				slots, at = append(slots, slotOf(e)), append(at, i)
			}
		}
		rows, err := r.Versions(slots)
		if err != nil {
			return err
		}
		for k, row := range rows {
			f.versions[at[k]] = row
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read transaction %s: %w", t.ID, err)
	}
	if f.state == lance.TransactionPending {
		return nil, fmt.Errorf("transaction %s is pending, and its rows are not", t.ID)
	}
	if f.state == lance.TransactionAborted {
		// What this server published meanwhile must not stay.
		if err := c.removePublished(ctx, t); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// defeat is why a transaction cannot be completed: the entry, and the refusal that its resolution met; nil where a bypassing writer won.
type defeat struct {
	index   int
	refusal *api.Error
}

// abort marks a transaction aborted unless it has ended already: its rows go, and the contents of its entries stay on record, so
// that no late write of them is ever taken for a version. Then the objects that it had published are removed; a job of the
// same database transaction does it after a crash (C10).
func (c *Catalog) abort(ctx context.Context, t *lance.Transaction, done []published, why defeat) (*finished, error) {
	contents, slots, err := contentsOf(t, done)
	if err != nil {
		return nil, err
	}
	var was bool
	var job store.Job
	err = c.store.Update(ctx, func(tx store.Tx) error {
		var err error
		if was, err = tx.ResolveTransaction(t.ID, lance.TransactionAborted, nil); err != nil || !was {
			return err
		}
		if err := tx.RemoveVersions(slots, t.ID); err != nil {
			return err
		}
		if err := tx.RecordAborted(t.ID, contents); err != nil {
			return err
		}
		job = store.Job{ID: tx.NewID(), Kind: JobCleanAborted, Payload: string(t.ID), RunAt: tx.Now().Add(abortGrace)}
		return tx.InsertJob(job)
	})
	if err != nil {
		return nil, fmt.Errorf("abort transaction %s: %w", t.ID, err)
	}
	if !was {
		f, err := c.endOf(ctx, t)
		if err == nil {
			f.index, f.refusal = why.index, why.refusal
		}
		return f, err
	}
	c.counters.Aborts.Add(1)
	e := t.Entries[why.index]
	c.opts.Notify(ctx, Event{Kind: EventAborted, Table: show(e.Path), Version: e.Version, Transaction: t.ID, Detail: "it could not be completed"})
	if err := c.removePublished(ctx, t); err != nil {
		return nil, err
	}
	// The job stays: a write that was under way elsewhere when the transaction was aborted may land after this.
	return &finished{state: lance.TransactionAborted, entries: t.Entries, index: why.index, refusal: why.refusal}, nil
}

// removePublished removes the objects under final names that hold the contents of a transaction that was aborted.
func (c *Catalog) removePublished(ctx context.Context, t *lance.Transaction) error {
	for _, e := range t.Entries {
		if e.Kind != lance.EntryCreateVersion {
			continue
		}
		p, err := c.place(e.Location)
		if err != nil {
			return err
		}
		final := p.final(e.Branch, e.Version, e.Scheme)
		if err := c.removeOwn(ctx, p, final, e); err != nil {
			return fmt.Errorf("remove %s of the aborted transaction %s: %w", final, t.ID, err)
		}
	}
	return nil
}

// removeOwn removes the object under a final name if it holds the content of an entry that was aborted.
func (c *Catalog) removeOwn(ctx context.Context, p place, final string, e lance.Entry) error {
	digest, err := parseDigest(e.Digest)
	if err != nil {
		return err
	}
	there, own, err := c.settled(ctx, p, final, e)
	if err != nil || !own || there.foreign {
		return err
	}
	_, err = c.removeAborted(ctx, p, there.info, store.Content{Slot: slotOf(e), Digest: digest})
	return err
}

// contentsOf returns the contents of a transaction that is to be aborted. One that met a foreign object in its slot never stood
// there itself: an object of a pending transaction is not removed.
func contentsOf(t *lance.Transaction, done []published) ([]store.Content, []lance.Slot, error) {
	var contents []store.Content
	var slots []lance.Slot
	for i, e := range t.Entries {
		if e.Kind != lance.EntryCreateVersion {
			continue
		}
		digest, err := parseDigest(e.Digest)
		if err != nil {
			return nil, nil, err
		}
		slots = append(slots, slotOf(e))
		contents = append(contents, store.Content{Slot: slotOf(e), Digest: digest, Seen: !done[i].foreign})
	}
	return contents, slots, nil
}

func parseDigest(text string) (lance.Digest, error) {
	var d lance.Digest
	if n, err := hex.Decode(d[:], []byte(text)); err != nil || n != len(d) {
		return d, fmt.Errorf("digest %q on record is damaged", text)
	}
	return d, nil
}

// publishedRow says what a version's row becomes once its manifest is published.
func publishedRow(e lance.Entry, t *lance.Transaction, info objstore.Info) lance.Version {
	return lance.Version{
		Slot: slotOf(e), State: lance.VersionCommitted, Origin: lance.OriginCatalog, Transaction: t.ID,
		Scheme: e.Scheme, Staged: e.Staged, Size: info.Size, ETag: info.ETag,
	}
}
