package finish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// Detach returns a context for what is left of a commit once reserving has begun: neither a client that hangs up nor the start of a shutdown
// ends it, but its own deadline (C11).
func (c *Completer) Detach(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), c.opts.CommitTimeout)
}

// Begin enters a transaction as being finished in this process, after waiting for anybody who is at it already, and returns the
// function that ends it. It fails when ctx ends first, or when the Completer is closed: the transaction is then left to the next server.
func (c *Completer) Begin(ctx context.Context, id lance.TransactionID) (func(), error) {
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
func (c *Completer) waitFor(ctx context.Context, id lance.TransactionID) error {
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
		return api.Errorf(api.CodeServiceUnavailable, "transaction %s is taking long to finish; try again", id).Because(ctx.Err())
	}
}

// HelpAll takes transactions that somebody else left pending to their ends: nobody is ever shown half of one (C7). Errors: those of Help.
func (c *Completer) HelpAll(ctx context.Context, ids []lance.TransactionID) error {
	for _, id := range ids {
		if err := c.Help(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// Help waits for whoever in this process is finishing a transaction and, where nobody is or they could not, finishes it. One that has ended, or
// is not known, is left as it is. Errors: 17 (it cannot be finished now: the helper itself has changed nothing that anybody was told of),
// and those of State.View.
func (c *Completer) Help(ctx context.Context, id lance.TransactionID) error {
	if err := c.waitFor(ctx, id); err != nil {
		return err
	}
	var t lance.Transaction
	err := c.state.View(ctx, func(r store.Reader) (err error) {
		t, err = r.Transaction(id)
		return err
	})
	if errors.Is(err, store.ErrNotFound) || err == nil && t.State != lance.TransactionPending {
		return nil
	}
	if err != nil {
		return err
	}
	detached, cancel := c.Detach(ctx)
	defer cancel()
	f, err := c.finishOf(detached, &t)
	if err != nil {
		why := "that did not work now"
		var unpublished *publishError
		if errors.As(err, &unpublished) {
			why = unpublished.what() + " now"
		}
		return api.Errorf(api.CodeServiceUnavailable, "transaction %s has to be finished first, and %s; try again", id, why).Because(err)
	}
	c.counters.Helps.Add(1)
	c.Notify(ctx, Event{Kind: EventHelped, Transaction: id, Detail: fmt.Sprintf("it is %s now", stateName(f.State))})
	return nil
}

// finishOf finishes a transaction that this process did not reserve.
func (c *Completer) finishOf(ctx context.Context, t *lance.Transaction) (*Finished, error) {
	end, err := c.Begin(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	defer end()
	return c.Finish(ctx, t, Driven{})
}

// recoverBatch is how many pending transactions one look of the background job takes.
const recoverBatch = 10_000

// Recover finishes pending transactions, those of the given scope: after a crash nothing waits for the next reader (C7). It returns how
// many it found; the error joins those of single transactions, which stay pending.
func (c *Completer) Recover(ctx context.Context, scope RecoverScope) (int, error) {
	var ids []lance.TransactionID
	err := c.state.Store.View(ctx, func(r store.Reader) (err error) {
		before := time.Now()
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
		if err := c.Help(ctx, id); err != nil {
			errs = append(errs, err)
		}
	}
	return len(ids), errors.Join(errs...)
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
