package chain

import (
	"context"
	"errors"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/store"
)

// ReadRounds bounds how often a read looks again after it finished somebody's transaction, adopted versions, or found
// manifests gone.
const ReadRounds = 20

// Version returns the committed version in a slot of a table. It finishes a transaction that is at it (C7), looks in storage for one that no row
// knows (C9), and marks one whose manifest is gone. Errors: 11, 15, 17, 19, 21 (the table changes too fast).
func (c *Chains) Version(ctx context.Context, t lance.Table, slot lance.Slot) (lance.Version, error) {
	cp, err := c.Of(t, slot.Chain.Branch)
	if err != nil {
		return lance.Version{}, err
	}
	if !Managed(t) {
		return c.storedVersion(ctx, t, slot)
	}
	sought := false
	for range ReadRounds {
		row, head, err := c.state.RowAndHead(ctx, slot)
		switch {
		case err != nil:
			return row, err
		case row.Number == 0 && sought:
			return row, cp.Place.Proven(ctx, missingVersion(t, slot))
		case row.Number == 0:
			sought = true
			err = c.seek(ctx, cp, slot, head)
		case row.State == lance.VersionPending:
			err = c.completer.Help(ctx, row.Transaction)
		case row.State != lance.VersionCommitted:
			return row, missingVersion(t, slot)
		case row.Number == head.Number && slot.Chain.Branch == lance.Main:
			return row, nil
		default:
			gone, err := c.pruneGone(ctx, cp, []lance.Version{row}, head)
			if err != nil || len(gone) == 0 {
				return row, err
			}
		}
		if err != nil {
			return row, err
		}
	}
	return lance.Version{}, tooBusy(t)
}

// seek looks in storage for a version that no row knows.
func (c *Chains) seek(ctx context.Context, cp Located, slot lance.Slot, head lance.Version) error {
	var err error
	if slot.Number > head.Number {
		_, err = c.Adopt(ctx, cp)
	} else {
		_, err = c.AdoptSlot(ctx, cp, slot.Number)
	}
	return err
}

func missingVersion(t lance.Table, slot lance.Slot) error {
	return api.Errorf(api.CodeTableVersionNotFound, "table %q has no version %d on %s", lance.ShowID(t.Path), slot.Number, slot.Chain.Branch)
}

func tooBusy(t lance.Table) error {
	return api.Errorf(api.CodeThrottling, "table %q changes too fast to be read; try again", lance.ShowID(t.Path))
}

// Latest returns the head of a chain, Number 0 where the table is only declared. Errors: 15, 17, 19, 21, 22 (the branch does not exist).
func (c *Chains) Latest(ctx context.Context, t lance.Table, branch lance.Branch) (lance.Version, error) {
	page, _, err := c.Page(ctx, t, branch, store.VersionPage{Limit: 1, Descending: true}, nil)
	return first(page), err
}

func first(page []lance.Version) lance.Version {
	if len(page) == 0 {
		return lance.Version{}
	}
	return page[0]
}

// VersionChunk is how many versions a list reads at a time.
const VersionChunk = 500

// Page reads one page of a chain's committed versions, after finishing what is pending on it and marking those whose
// manifests are gone (C7, C9). It reports whether there are more, from a row that it does not look at in storage: asking for the latest
// version costs no look at the one before it. seen are the page's rows where they were read already, nil to read them now.
// Errors: 15, 17, 19, 21, 22 (the branch does not exist).
func (c *Chains) Page(ctx context.Context, t lance.Table, branch lance.Branch, want store.VersionPage, seen *Rows) ([]lance.Version, bool, error) {
	cp, err := c.Of(t, branch)
	if err != nil {
		return nil, false, err
	}
	if !Managed(t) {
		return c.storedPage(ctx, t, branch, want)
	}
	sought := false
	for range ReadRounds {
		if seen == nil {
			if seen, err = c.rowsOf(ctx, cp.Chain, want); err != nil {
				return nil, false, err
			}
		}
		page, more := Cut(seen.rows, want.Limit)
		head := seen.head
		seen = nil
		if len(page) == 0 && want.After == 0 && head.Number == 0 {
			// Nothing is known: a writer may have gone past the catalog (C9).
			if sought {
				return nil, false, c.emptyChain(ctx, t, cp)
			}
			sought = true
			if _, err := c.Adopt(ctx, cp); err != nil {
				return nil, false, err
			}
			continue
		}
		if i := pendingIn(page); i >= 0 {
			if err := c.completer.Help(ctx, page[i].Transaction); err != nil {
				return nil, false, err
			}
			continue
		}
		if !sought && reaches(page, head, want) {
			sought = true
			found, err := c.adoptNext(ctx, cp, head)
			if err != nil {
				return nil, false, err
			}
			if found {
				continue
			}
		}
		gone, err := c.pruneGone(ctx, cp, page, head)
		if err != nil || len(gone) == 0 {
			return page, more, err
		}
	}
	return nil, false, tooBusy(t)
}

// reaches reports whether a page holds the head of its chain, or ends the chain in another way.
func reaches(page []lance.Version, head lance.Version, want store.VersionPage) bool {
	return len(page) < want.Limit || page[0].Number == head.Number || page[len(page)-1].Number == head.Number
}

// adoptNext looks whether storage has the version after the head, as after a writer that went past the catalog, and adopts the chain
// if it does: who asks for the latest version gets what such a writer made (C9). It costs one look at one name.
func (c *Chains) adoptNext(ctx context.Context, cp Located, head lance.Version) (bool, error) {
	key := cp.Place.Final(cp.Chain.Branch, head.Number+1, head.Scheme)
	_, err := cp.Place.Objects.Head(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, place.StorageError("look at "+key, err)
	}
	n, err := c.Adopt(ctx, cp)
	return n > 0, err
}

func pendingIn(page []lance.Version) int {
	for i, v := range page {
		if v.State == lance.VersionPending {
			return i
		}
	}
	return -1
}

// emptyChain says what it means that a chain has no version: the table is only declared; the branch exists and has no version of
// its own yet; or it does not exist.
func (c *Chains) emptyChain(ctx context.Context, t lance.Table, cp Located) error {
	if cp.Chain.Branch == lance.Main {
		return cp.Place.Proven(ctx, nil)
	}
	_, err := cp.Place.ReadBranch(ctx, cp.Chain.Branch)
	if errors.Is(err, objstore.ErrNotFound) {
		return cp.Place.Proven(ctx, missingBranch(t, cp.Chain.Branch))
	}
	if err != nil {
		return place.RefError("read the reference of branch "+cp.Chain.Branch.String(), err)
	}
	return nil
}

func missingBranch(t lance.Table, b lance.Branch) error {
	return api.Errorf(api.CodeTableBranchNotFound, "table %q has no branch %q", lance.ShowID(t.Path), b)
}

// Rows is a page of a chain's rows, with one more to know whether there are more, and the chain's head.
type Rows struct {
	rows []lance.Version
	head lance.Version
}

func (c *Chains) rowsOf(ctx context.Context, chain lance.Chain, want store.VersionPage) (*Rows, error) {
	var p *Rows
	err := c.state.View(ctx, func(r store.Reader) (err error) {
		p, err = ReadRows(r, chain, want)
		return err
	})
	return p, err
}

// ReadRows reads a page of a chain's rows, and its head, on a snapshot. Errors: the store's.
func ReadRows(r store.Reader, chain lance.Chain, want store.VersionPage) (*Rows, error) {
	want.Limit++
	rows, err := r.ListVersions(chain, want)
	if err != nil {
		return nil, err
	}
	heads, err := r.Heads([]lance.Chain{chain})
	if err != nil {
		return nil, err
	}
	return &Rows{rows: rows, head: heads[0]}, nil
}

// Cut takes the items beyond limit off a list that was read one longer, and reports whether there were any.
func Cut[T any](items []T, limit int) ([]T, bool) {
	if len(items) > limit {
		return items[:limit], true
	}
	return items, false
}
