package finish

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// Finished is the end of a transaction.
type Finished struct {
	State    lance.TransactionState
	Entries  []lance.Entry
	Versions []lance.Version // by entry; only where the entry makes one
	// Of an aborted transaction: the entry that could not be carried out, -1 where only another server met the reason, and why;
	// Refusal is nil where a bypassing writer won.
	Index   int
	Refusal *api.Error
}

// Driven is what the server that reserved a transaction knows beyond its record; a helper knows nothing.
type Driven struct {
	Data [][]byte // what to publish, by entry; nil where it must be read again
	// Kept is called in the transaction that makes the end visible; nil does nothing. It may run twice.
	Kept func(store.Tx, *Finished) error
}

// errNotPending makes the store forget a resolution that somebody else has made already.
var errNotPending = errors.New("the transaction is not pending")

// Finish takes a reserved transaction to its end: publish everything, then resolve, or abort if that cannot be (C6, C10). It is
// idempotent, and safe beside others who do the same. The context must not be the caller's own (C11), and the caller has entered the
// transaction with Begin. The error says why it is pending still, which tells nothing of its outcome: an abort is no error.
func (c *Completer) Finish(ctx context.Context, t *lance.Transaction, d Driven) (*Finished, error) {
	for {
		done, err := c.publish(ctx, t, d.Data)
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
		if err := c.HelpAll(ctx, pending); err != nil {
			return nil, err
		}
	}
}

// resolve marks a published transaction committed and makes all its effects visible in one database transaction. It returns
// other transactions that must end first, if there are any.
func (c *Completer) resolve(ctx context.Context, t *lance.Transaction, done []published, d Driven) (*Finished, []lance.TransactionID, error) {
	var e effects
	var pending []lance.TransactionID
	err := c.state.Store.Update(ctx, func(tx store.Tx) error {
		e = effects{tx: tx, t: t, entries: slices.Clone(t.Entries)}
		pending = nil
		if err := e.run(done); err != nil {
			return err
		}
		if e.refusal != nil {
			return state.ErrRolledBack
		}
		if len(e.waiting) > 0 {
			pending = e.waiting
			return state.ErrRolledBack
		}
		err := e.commit()
		if err == nil && slices.ContainsFunc(t.Entries, attaches) {
			err = tx.InsertJob(store.Job{ID: tx.NewID(), Kind: JobDropDetached, Payload: string(t.ID), RunAt: tx.Now().Add(detachedKeep)})
		}
		if err != nil || d.Kept == nil {
			return err
		}
		return d.Kept(tx, e.finished())
	})
	switch {
	case errors.Is(err, errNotPending):
		f, err := c.endOf(ctx, t)
		return f, nil, err
	case errors.Is(err, state.ErrRolledBack) && len(pending) > 0:
		return nil, pending, nil
	case errors.Is(err, state.ErrRolledBack):
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
	_, attached := DetachedOf(e)
	return attached
}

// endOf reports a transaction that somebody else has ended.
func (c *Completer) endOf(ctx context.Context, t *lance.Transaction) (*Finished, error) {
	f := &Finished{Index: -1}
	err := c.state.Store.View(ctx, func(r store.Reader) error {
		now, err := r.Transaction(t.ID)
		if err != nil {
			return err
		}
		f.State, f.Entries, f.Versions = now.State, now.Entries, make([]lance.Version, len(now.Entries))
		var slots []lance.Slot
		var at []int
		for i, e := range now.Entries {
			if e.Kind == lance.EntryCreateVersion {
				slots, at = append(slots, SlotOf(e)), append(at, i)
			}
		}
		rows, err := r.Versions(slots)
		if err != nil {
			return err
		}
		for k, row := range rows {
			f.Versions[at[k]] = row
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read transaction %s: %w", t.ID, err)
	}
	if f.State == lance.TransactionPending {
		return nil, fmt.Errorf("transaction %s is pending, and its rows are not", t.ID)
	}
	if f.State == lance.TransactionAborted {
		// What this server published meanwhile must not stay.
		if err := c.RemovePublished(ctx, t); err != nil {
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
func (c *Completer) abort(ctx context.Context, t *lance.Transaction, done []published, why defeat) (*Finished, error) {
	contents, slots, err := contentsOf(t, done)
	if err != nil {
		return nil, err
	}
	var was bool
	var job store.Job
	err = c.state.Store.Update(ctx, func(tx store.Tx) error {
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
		job = store.Job{ID: tx.NewID(), Kind: JobCleanAborted, Payload: string(t.ID), RunAt: tx.Now().Add(AbortGrace)}
		return tx.InsertJob(job)
	})
	if err != nil {
		return nil, fmt.Errorf("abort transaction %s: %w", t.ID, err)
	}
	if !was {
		f, err := c.endOf(ctx, t)
		if err == nil {
			f.Index, f.Refusal = why.index, why.refusal
		}
		return f, err
	}
	c.counters.Aborts.Add(1)
	e := t.Entries[why.index]
	c.Notify(ctx, Event{Kind: EventAborted, Table: lance.ShowID(e.Path), Version: e.Version, Transaction: t.ID, Detail: "it could not be completed"})
	if err := c.RemovePublished(ctx, t); err != nil {
		return nil, err
	}
	// The job stays: a write that was under way elsewhere when the transaction was aborted may land after this.
	return &Finished{State: lance.TransactionAborted, Entries: t.Entries, Index: why.index, Refusal: why.refusal}, nil
}

// RemovePublished removes the objects under final names that hold the contents of a transaction that was aborted (C10). Errors: 19 (a location in
// no allowed root), and those of the state and of the storage, as they are.
func (c *Completer) RemovePublished(ctx context.Context, t *lance.Transaction) error {
	for _, e := range t.Entries {
		if e.Kind != lance.EntryCreateVersion {
			continue
		}
		p, err := c.places.At(e.Location)
		if err != nil {
			return err
		}
		final := p.Final(e.Branch, e.Version, e.Scheme)
		if err := c.removeOwn(ctx, p, final, e); err != nil {
			return fmt.Errorf("remove %s of the aborted transaction %s: %w", final, t.ID, err)
		}
	}
	return nil
}

// removeOwn removes the object under a final name if it holds the content of an entry that was aborted.
func (c *Completer) removeOwn(ctx context.Context, p place.Place, final string, e lance.Entry) error {
	digest, err := lance.ParseDigest(e.Digest)
	if err != nil {
		return err
	}
	there, own, err := c.settled(ctx, p, final, e)
	if err != nil || !own || there.foreign {
		return err
	}
	_, err = c.RemoveAborted(ctx, p, there.info, store.Content{Slot: SlotOf(e), Digest: digest})
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
		digest, err := lance.ParseDigest(e.Digest)
		if err != nil {
			return nil, nil, err
		}
		slots = append(slots, SlotOf(e))
		contents = append(contents, store.Content{Slot: SlotOf(e), Digest: digest, Seen: !done[i].foreign})
	}
	return contents, slots, nil
}

// publishedRow says what a version's row becomes once its manifest is published.
func publishedRow(e lance.Entry, t *lance.Transaction, info objstore.Info) lance.Version {
	return lance.Version{
		Slot: SlotOf(e), State: lance.VersionCommitted, Origin: lance.OriginCatalog, Transaction: t.ID,
		Scheme: e.Scheme, Staged: e.Staged, Size: info.Size, ETag: info.ETag,
	}
}
