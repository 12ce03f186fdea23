package chain

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// Writers that go past the catalog, and clients that clean up, change storage without a word. Whoever asks for a version is told the truth at that
// moment (adopt.go, gone.go); this pass sees to it from time to time for the tables that are in use, so that lists, counts and the next commit
// need not. It makes no difference which server does it, nor whether several do.

// inUseMax bounds the tables that are remembered between two passes. What is above it is seen to when it is asked for again.
const inUseMax = 10_000

// inUse are the tables that this server was asked about since the last pass.
type inUse struct {
	mu     sync.Mutex
	tables map[lance.ObjectID]struct{}
}

// note remembers a table.
func (u *inUse) note(id lance.ObjectID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.tables == nil {
		u.tables = map[lance.ObjectID]struct{}{}
	}
	if len(u.tables) < inUseMax {
		u.tables[id] = struct{}{}
	}
}

// Use notes that somebody asked about a table: the next pass sees to it.
func (c *Chains) Use(id lance.ObjectID) { c.inUse.note(id) }

// take returns the tables and forgets them.
func (u *inUse) take() map[lance.ObjectID]struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.tables
	u.tables = nil
	return taken
}

// reconcileParallel bounds how many tables a pass looks at at a time: requests come first.
const reconcileParallel = 4

// Reconcile compares the rows of the tables that were asked about since it was last called with storage, by one listing for each of their chains:
// versions that writers made past the catalog are adopted (C9), and those whose manifests a client's cleanup removed are marked. It returns how
// many tables it looked at; the error tells of those for which that did not work, which are seen to again when they are asked about.
func (c *Chains) Reconcile(ctx context.Context) (int, error) {
	tables := c.inUse.take()
	var g errgroup.Group
	g.SetLimit(reconcileParallel)
	var mu sync.Mutex
	var errs []error
	for id := range tables {
		g.Go(func() error {
			if err := c.reconcileTable(ctx, id); err != nil && ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = g.Wait() // the errors stand in errs
	c.completer.Counters().Reconciled.Add(int64(len(tables)))
	c.completer.Counters().Unreconciled.Add(int64(len(errs)))
	if len(errs) > 1 {
		return len(tables), fmt.Errorf("%d tables, the first: %w", len(errs), errs[0])
	}
	return len(tables), errors.Join(errs...)
}

// reconcileTable sees to one table, if it is still there.
func (c *Chains) reconcileTable(ctx context.Context, id lance.ObjectID) error {
	var t lance.Table
	var branches []lance.Branch
	err := c.state.View(ctx, func(r store.Reader) (err error) {
		if t, err = r.TableByID(id); err != nil {
			return err
		}
		branches, err = r.Branches(id)
		return err
	})
	if err != nil || t.State != lance.TableLive {
		return state.IgnoreNotFound(err)
	}
	if !Managed(t) {
		_, _, err := c.storedPage(ctx, t, lance.Main, store.VersionPage{Limit: 1, Descending: true})
		return named(t, err)
	}
	if len(branches) == 0 {
		branches = []lance.Branch{lance.Main} // only declared, as far as the catalog knows
	}
	for _, b := range branches {
		cp, err := c.Of(t, b)
		if err == nil {
			err = c.reconcileChain(ctx, cp)
		}
		if err != nil {
			return named(t, err)
		}
	}
	return nil
}

// named says which table an error is about.
func named(t lance.Table, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("table %q: %w", lance.ShowID(t.Path), err)
}

// reconcileChain sees to one branch. Its storage is listed before its rows are read: a version that is committed meanwhile is then one that the
// listing lacks, which is looked at again, and not one that no row knows.
func (c *Chains) reconcileChain(ctx context.Context, cp Located) error {
	head, err := c.resolvedHead(ctx, cp.Chain)
	if err != nil {
		return err
	}
	infos, err := c.ManifestsAbove(ctx, cp, 0)
	if err != nil {
		return err
	}
	listed := make(map[lance.VersionNumber]bool, len(infos))
	for _, info := range infos {
		listed[numberOf(info)] = true
	}
	unknown, err := c.withoutRow(ctx, cp.Chain, infos)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		if _, err := c.takeIn(ctx, cp, unknown); err != nil {
			return err
		}
	}
	return c.markGone(ctx, cp, listed, head)
}

// withoutRow returns the manifests of versions that have no row, whatever its state: the slot of one that was deleted is never given again.
func (c *Chains) withoutRow(ctx context.Context, chain lance.Chain, infos []objstore.Info) ([]objstore.Info, error) {
	var unknown []objstore.Info
	for len(infos) > 0 {
		some := infos[:min(len(infos), VersionChunk)]
		infos = infos[len(some):]
		slots := make([]lance.Slot, len(some))
		for i, info := range some {
			slots[i] = lance.Slot{Chain: chain, Number: numberOf(info)}
		}
		err := c.state.View(ctx, func(r store.Reader) error {
			rows, err := r.Versions(slots)
			if err != nil {
				return err
			}
			slots = slots[:0:0]
			for _, row := range rows {
				slots = append(slots, row.Slot)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		for i, info := range some {
			if slots[i].Number == 0 {
				unknown = append(unknown, info)
			}
		}
	}
	return unknown, nil
}

// markGone marks the versions that were committed and are not in the listing, after looking at each of them. What is above the given head came
// while the listing was made.
func (c *Chains) markGone(ctx context.Context, cp Located, listed map[lance.VersionNumber]bool, head lance.Version) error {
	want := store.VersionPage{Limit: VersionChunk}
	for {
		page, err := c.rowsOf(ctx, cp.Chain, want)
		if err != nil {
			return err
		}
		rows, more := Cut(page.rows, want.Limit)
		var absent []lance.Version
		for _, row := range rows {
			if row.State == lance.VersionCommitted && row.Number <= head.Number && !listed[row.Number] {
				absent = append(absent, row)
			}
		}
		if len(absent) > 0 {
			if _, err := c.pruneGone(ctx, cp, absent, page.head); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		want.After = rows[len(rows)-1].Number
	}
}
