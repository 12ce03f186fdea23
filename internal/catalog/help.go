package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// detach returns a context for what is left of a commit once reserving has begun: neither a client that hangs up nor the start of a shutdown
// ends it, but its own deadline (C11).
func (c *Catalog) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), c.opts.CommitTimeout)
}

// begin enters a transaction as being finished in this process, after waiting for anybody who is at it already, and returns the
// function that ends it. It fails when ctx ends first, or when the catalog is closed: the transaction is then left to the next server.
func (c *Catalog) begin(ctx context.Context, id lance.TransactionID) (func(), error) {
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, errors.New("the catalog is closed")
		}
		other, busy := c.active[id]
		if !busy {
			done := make(chan struct{})
			c.active[id] = done
			c.running.Add(1)
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				delete(c.active, id)
				c.mu.Unlock()
				close(done)
				c.running.Done()
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// waitFor waits until nobody in this process is finishing the transaction.
func (c *Catalog) waitFor(ctx context.Context, id lance.TransactionID) error {
	c.mu.Lock()
	other, busy := c.active[id]
	c.mu.Unlock()
	if !busy {
		return nil
	}
	select {
	case <-other:
		return nil
	case <-ctx.Done():
		return withCause(api.Errorf(api.CodeServiceUnavailable, "transaction %s is taking long to finish; try again", id), ctx.Err())
	}
}

// helpAll takes transactions that somebody else left pending to their ends: nobody is ever shown half of one (C7).
func (c *Catalog) helpAll(ctx context.Context, ids []lance.TransactionID) error {
	for _, id := range ids {
		if err := c.help(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// help waits for whoever in this process is finishing a transaction and, where nobody is or they could not, finishes it. The
// error is of code ServiceUnavailable: the helper itself has changed nothing that anybody was told of.
func (c *Catalog) help(ctx context.Context, id lance.TransactionID) error {
	if err := c.waitFor(ctx, id); err != nil {
		return err
	}
	var t lance.Transaction
	err := c.view(ctx, func(r store.Reader) (err error) {
		t, err = r.Transaction(id)
		return err
	})
	if errors.Is(err, store.ErrNotFound) || err == nil && t.State != lance.TransactionPending {
		return nil
	}
	if err != nil {
		return err
	}
	detached, cancel := c.detach(ctx)
	defer cancel()
	f, err := c.finishOf(detached, &t)
	if err != nil {
		why := "that did not work now"
		var unpublished *publishError
		if errors.As(err, &unpublished) {
			why = unpublished.what() + " now"
		}
		return withCause(api.Errorf(api.CodeServiceUnavailable, "transaction %s has to be finished first, and %s; try again", id, why), err)
	}
	c.counters.Helps.Add(1)
	c.opts.Notify(ctx, Event{Kind: EventHelped, Transaction: id, Detail: fmt.Sprintf("it is %s now", stateName(f.state))})
	return nil
}

// finishOf finishes a transaction that this process did not reserve.
func (c *Catalog) finishOf(ctx context.Context, t *lance.Transaction) (*finished, error) {
	end, err := c.begin(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	defer end()
	return c.finish(ctx, t, driven{})
}

// recoverBatch is how many pending transactions one look of the background job takes.
const recoverBatch = 10_000

// Recover finishes pending transactions, those of the given scope: after a crash nothing waits for the next reader (C7). It returns how many it found; the error joins those of single
// transactions, which stay pending.
func (c *Catalog) Recover(ctx context.Context, scope RecoverScope) (int, error) {
	var ids []lance.TransactionID
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		before := c.now()
		if scope == RecoverStale {
			before = before.Add(-c.opts.CommitTimeout)
		}
		ids, err = r.PendingTransactions(before, recoverBatch)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("list pending transactions: %w", err)
	}
	var errs []error
	for _, id := range ids {
		if err := c.help(ctx, id); err != nil {
			errs = append(errs, err)
		}
	}
	return len(ids), errors.Join(errs...)
}

// backlogMax is up to what number the backlog is counted.
const backlogMax = 10_000

// Backlog counts transactions that are pending and jobs that are waiting, each up to 10,000.
func (c *Catalog) Backlog(ctx context.Context) (pending, jobs int, err error) {
	ctx = store.WithOperation(ctx, "backlog")
	err = c.store.View(ctx, func(r store.Reader) error {
		ids, err := r.PendingTransactions(c.now(), backlogMax)
		if err != nil {
			return err
		}
		pending, jobs = len(ids), 0
		for _, kind := range JobKinds() {
			some, err := r.Jobs(kind, 0, backlogMax)
			if err != nil {
				return err
			}
			jobs += len(some)
		}
		return nil
	})
	return pending, jobs, err
}

// RecoverScope says which pending transactions to finish.
type RecoverScope int

// The scopes of Recover: those that no living server can still be at, or all.
const (
	RecoverStale RecoverScope = iota
	RecoverAll
)

func stateName(s lance.TransactionState) string {
	switch s {
	case lance.TransactionCommitted:
		return "committed"
	case lance.TransactionAborted:
		return "aborted"
	}
	return "pending"
}
