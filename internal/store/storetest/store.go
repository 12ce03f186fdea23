package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

func (s suite) lifecycle(t *testing.T) {
	s.run(t, "Ping/of an open store", func(h *harness) {
		if err := h.Ping(h.Context()); err != nil {
			h.Errorf("Ping: %v", err)
		}
	})
	s.run(t, "Close/twice, then ErrClosed", func(h *harness) {
		for range 2 {
			if err := h.Close(); err != nil {
				h.Errorf("Close: %v", err)
			}
		}
		for name, err := range map[string]error{
			"View":   h.View(h.Context(), func(store.Reader) error { return nil }),
			"Update": h.Update(h.Context(), func(store.Tx) error { return nil }),
			"Ping":   h.Ping(h.Context()),
		} {
			if !errors.Is(err, store.ErrClosed) {
				h.Errorf("%s: got error %v, want ErrClosed", name, err)
			}
		}
	})
	s.run(t, "Close/waits for what runs", func(h *harness) {
		started, closed := make(chan struct{}), make(chan error, 1)
		go func() {
			<-started
			closed <- h.Close()
		}()
		h.view(func(r store.Reader) error {
			close(started)
			for range 100 {
				if _, err := r.Namespace(nil); err != nil {
					return err
				}
			}
			return nil
		})
		if err := <-closed; err != nil {
			h.Errorf("Close: %v", err)
		}
	})
	s.run(t, "reopen keeps everything", s.reopen)
	s.closures(t)
	s.handles(t)
}

func (s suite) closures(t *testing.T) {
	s.run(t, "Update/the closure's error comes back as it is, nothing was written", func(h *harness) {
		mine := errors.New("the closure's own error")
		err := h.Update(h.Context(), func(tx store.Tx) error {
			return errors.Join(writeEverywhere(tx), mine)
		})
		if !errors.Is(err, mine) {
			h.Errorf("got error %v, want the closure's own", err)
		}
		h.checkEmpty()
	})
	s.run(t, "Update/a panic unwinds the caller, nothing was written", func(h *harness) {
		func() {
			defer func() {
				if got := recover(); got != "of the closure" {
					h.Errorf("recovered %v, want the closure's panic", got)
				}
			}()
			_ = h.Update(h.Context(), func(tx store.Tx) error {
				if err := writeEverywhere(tx); err != nil {
					h.Errorf("write: %v", err)
				}
				panic("of the closure")
			})
		}()
		h.checkEmpty()
		h.table("t")
	})
	s.run(t, "View/a panic unwinds the caller", func(h *harness) {
		for range 20 { // more than there can be readers
			func() {
				defer func() { _ = recover() }()
				_ = h.View(h.Context(), func(store.Reader) error { panic("of the closure") })
			}()
		}
		h.view(func(r store.Reader) error {
			_, err := r.Namespace(nil)
			return err
		})
	})
}

func (s suite) handles(t *testing.T) {
	s.run(t, "Update/reads see the transaction's own writes", func(h *harness) {
		h.update(func(tx store.Tx) error {
			if err := writeEverywhere(tx); err != nil {
				return err
			}
			tables, err := tx.Tables([]lance.TableID{{"a", "t"}})
			if err == nil && tables[0].ID == 0 {
				return errors.New("the table just inserted is not there")
			}
			return err
		})
	})
	s.run(t, "a handle kept beyond its closure is refused", func(h *harness) {
		var kept store.Tx
		h.update(func(tx store.Tx) error {
			kept = tx
			return nil
		})
		if err := kept.InsertMeta("late", "x"); err == nil {
			h.Error("InsertMeta after Update returned: got no error")
		}
	})
	s.runAt(t, "Now/one reading, UTC, in milliseconds", func(h *harness, now *time.Time) {
		*now = time.Unix(1_750_000_000, 123_999_999).In(time.FixedZone("x", 3600))
		got := wrote(h, func(tx store.Tx) (time.Time, error) { return tx.Now(), nil })
		h.equal("now", got, time.Unix(1_750_000_000, 123_000_000).UTC())
	})
	s.runAt(t, "NewID/differs while the clock stands still", func(h *harness, _ *time.Time) {
		seen := map[lance.ObjectID]bool{}
		for range 3 {
			h.update(func(tx store.Tx) error {
				for range 1000 {
					id := tx.NewID()
					if id <= 0 || seen[id] {
						return fmt.Errorf("id %d is not positive or was given before", id)
					}
					seen[id] = true
				}
				return nil
			})
		}
	})
}

// writeEverywhere writes at least one row of each kind.
func writeEverywhere(tx store.Tx) error {
	ns := lance.Namespace{ID: tx.NewID(), Path: lance.NamespaceID{"a"}}
	table := lance.Table{ID: tx.NewID(), Namespace: ns.ID, Path: lance.TableID{"a", "t"}, Location: "mem:///t"}
	return errors.Join(
		tx.InsertNamespace(ns),
		tx.InsertTable(table),
		tx.InsertVersions([]lance.Version{version(mainChain, 1, lance.VersionCommitted)}),
		tx.InsertTransaction(transaction("a")),
		tx.RecordAborted("a", []store.Content{{Slot: lance.Slot{Chain: mainChain, Number: 1}}}),
		tx.InsertJob(store.Job{ID: tx.NewID(), Kind: "k"}),
		tx.InsertMeta("key", "value"),
	)
}

// contents is what checkEmpty and reopen look at, after writeEverywhere.
type contents struct {
	Namespaces  []lance.Namespace
	Tables      []lance.Table
	Versions    []lance.Version
	Transaction lance.Transaction
	Aborted     []bool
	Jobs        []store.Job
	Meta        string
}

func (h *harness) contents() contents {
	h.Helper()
	var c contents
	h.view(func(r store.Reader) error {
		var errs [7]error
		c.Namespaces, errs[0] = r.ListNamespaces(lance.RootID, "", 10)
		c.Tables, errs[1] = r.ListAllTables(store.TablePage{Limit: 10})
		c.Versions, errs[2] = r.ListVersions(mainChain, store.VersionPage{Limit: 10})
		c.Transaction, errs[3] = r.Transaction("a")
		c.Aborted, errs[4] = r.Aborted([]store.Content{{Slot: lance.Slot{Chain: mainChain, Number: 1}}})
		c.Jobs, errs[5] = r.Jobs("k", 0, 10)
		c.Meta, errs[6] = r.Meta("key")
		for _, err := range errs {
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		return nil
	})
	return c
}

func (h *harness) checkEmpty() {
	h.Helper()
	h.equal("contents", h.contents(), contents{Aborted: []bool{false}})
}

func (s suite) reopen(h *harness) {
	h.update(writeEverywhere)
	want := h.contents()
	h.equal("tables", len(want.Tables), 1)
	if err := h.Close(); err != nil {
		h.Fatalf("Close: %v", err)
	}
	again := s.harness(h.T, h.options)
	h.equal("contents", again.contents(), want)
	again.refuse(store.ErrExists, insertNamespace("a"))
}

func (s suite) concurrency(t *testing.T) {
	s.run(t, "Update/one name, 100 at once", func(h *harness) {
		h.equal("won", h.race(100, func(int) func(store.Tx) error { return insertTable("t") }), 1)
		h.equal("tables", h.listTables(lance.RootID, store.TablePage{Limit: 10}), []string{"t"})
	})
	s.run(t, "Update/one location, many at once", func(h *harness) {
		h.race(20, func(i int) func(store.Tx) error {
			return func(tx store.Tx) error {
				err := insertTableAt([]string{"file:///d/x", "file:///d/x/y"}[i%2])(tx)
				if errors.Is(err, store.ErrLocationTaken) {
					return store.ErrExists
				}
				return err
			}
		})
		h.equal("tables", len(h.listTables(lance.RootID, store.TablePage{Limit: 100})), 1)
	})
	s.run(t, "Update/one slot, many at once", func(h *harness) {
		won := h.race(50, func(i int) func(store.Tx) error {
			return func(tx store.Tx) error {
				own := version(lance.Chain{Table: lance.ObjectID(1000 + i)}, 1, lance.VersionPending)
				return tx.InsertVersions([]lance.Version{own, version(mainChain, 1, lance.VersionPending)})
			}
		})
		h.equal("won", won, 1)
	})
	s.run(t, "Update/head and next, many at once", s.increments)
	s.run(t, "View/one consistent snapshot", s.snapshot)
	s.run(t, "View/sees every Update that returned", func(h *harness) {
		for n := lance.VersionNumber(1); n <= 50; n++ {
			h.insert(version(mainChain, n, lance.VersionCommitted))
			h.equal("head", h.heads(mainChain)[0].Number, n)
		}
	})
	s.cancellations(t)
}

func (s suite) cancellations(t *testing.T) {
	s.run(t, "Update/ctx cancelled before its turn", func(h *harness) {
		ctx, cancel := context.WithCancel(h.Context())
		cancel()
		err := h.Update(ctx, func(store.Tx) error {
			h.Error("the closure ran")
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			h.Errorf("got error %v, want context.Canceled", err)
		}
		if err := h.View(ctx, func(store.Reader) error { return nil }); !errors.Is(err, context.Canceled) {
			h.Errorf("View: got error %v, want context.Canceled", err)
		}
	})
	alone := suite{open: s.open, options: s.options}
	alone.options.Writers = 1
	alone.run(t, "Update/ctx cancelled while queued", s.cancelQueued)
	s.run(t, "Update/ctx cancelled while running does not stop it", func(h *harness) {
		ctx, cancel := context.WithCancel(h.Context())
		defer cancel()
		err := h.Update(ctx, func(tx store.Tx) error {
			cancel()
			return writeEverywhere(tx)
		})
		if err != nil {
			h.Errorf("got error %v, want nil", err)
		}
		h.equal("tables", len(h.contents().Tables), 1)
	})
	t.Run("Update/ErrUnavailable when the queue is full", func(t *testing.T) {
		t.Parallel()
		o := s.options
		o.Writers, o.QueueLength = 1, 1
		fullQueue(s.harness(t, o))
	})
}

// fullQueue starts three Updates while one runs and the queue has room for one: two are refused at once.
func fullQueue(h *harness) {
	var rest sync.WaitGroup
	h.update(func(store.Tx) error {
		ended := make(chan error, 3)
		for range 3 {
			rest.Go(func() { ended <- h.Update(h.Context(), func(store.Tx) error { return nil }) })
		}
		for range 2 {
			if err := <-ended; !errors.Is(err, store.ErrUnavailable) {
				h.Errorf("got error %v, want ErrUnavailable", err)
			}
		}
		return nil
	})
	rest.Wait()
}

// race runs n closures at once and returns how many succeeded. All others must end with ErrExists.
func (h *harness) race(n int, closure func(i int) func(store.Tx) error) int {
	h.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = h.Update(h.Context(), closure(i)) })
	}
	wg.Wait()
	won := 0
	for i, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, store.ErrExists):
			h.Errorf("closure %d: got error %v, want nil or ErrExists", i, err)
		}
	}
	return won
}

// increments lets many writers each add the version after the head: serializable transactions lose none.
func (suite) increments(h *harness) {
	const writers, each = 8, 10
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				err := h.Update(h.Context(), func(tx store.Tx) error {
					heads, err := tx.Heads([]lance.Chain{mainChain})
					if err != nil {
						return err
					}
					return tx.InsertVersions([]lance.Version{version(mainChain, heads[0].Number+1, lance.VersionCommitted)})
				})
				if err != nil {
					h.Errorf("Update: %v", err)
				}
			}
		})
	}
	wg.Wait()
	h.equal("head", h.heads(mainChain)[0].Number, lance.VersionNumber(writers*each))
}

// snapshot has a writer add a version to two chains at once, and readers compare their heads, read one after the other.
func (suite) snapshot(h *harness) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for n := lance.VersionNumber(1); n <= 60; n++ {
			h.insert(version(mainChain, n, lance.VersionCommitted), version(otherChain, n, lance.VersionCommitted))
		}
	})
	for range 3 {
		wg.Go(func() {
			for running := true; running; {
				select {
				case <-done:
					running = false
				default:
				}
				err := h.View(h.Context(), func(r store.Reader) error {
					a, err := r.Heads([]lance.Chain{mainChain})
					if err != nil {
						return err
					}
					b, err := r.Heads([]lance.Chain{otherChain})
					if err == nil && a[0].Number != b[0].Number {
						return fmt.Errorf("one view has heads %d and %d", a[0].Number, b[0].Number)
					}
					return err
				})
				if err != nil {
					h.Errorf("View: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// cancelQueued cancels an Update that waits behind another one.
func (suite) cancelQueued(h *harness) {
	h.update(func(tx store.Tx) error {
		ctx, cancel := context.WithCancel(h.Context())
		defer cancel()
		waits := &watched{Context: ctx, waits: make(chan struct{})}
		queued := make(chan error, 1)
		go func() {
			queued <- h.Update(waits, func(tx store.Tx) error { return tx.InsertMeta("late", "x") })
		}()
		<-waits.waits
		cancel()
		// The other one cannot have its turn before this closure returns.
		if err := <-queued; !errors.Is(err, context.Canceled) {
			h.Errorf("got error %v, want context.Canceled", err)
		}
		return nil
	})
	h.refuse(store.ErrNotFound, func(tx store.Tx) error {
		_, err := tx.Meta("late")
		return err
	})
}

// watched is a context that tells when somebody waits for it.
type watched struct {
	context.Context
	waits chan struct{}
	once  sync.Once
}

func (w *watched) Done() <-chan struct{} {
	w.once.Do(func() { close(w.waits) })
	return w.Context.Done()
}
