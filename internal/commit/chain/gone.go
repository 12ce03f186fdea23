package chain

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit/finish"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/store"
)

// pruneGone looks at the manifest of every version but the head of main, and marks those pruned whose manifest is gone, or is no
// longer theirs: clients clean up in storage without telling the catalog (client contract, fact 68), and a late write of an
// aborted transaction may land in a slot that became empty so (C10). It returns them. Where a branch's head and its reference are
// both gone, the branch was deleted: its rows are removed.
func (c *Chains) pruneGone(ctx context.Context, cp Located, versions []lance.Version, head lance.Version) ([]lance.VersionNumber, error) {
	missing, err := c.missing(ctx, cp, versions, head)
	if err != nil {
		return nil, err
	}
	var gone []lance.VersionNumber
	headGone := false
	for i, v := range versions {
		switch {
		case missing[i] && v.Number == head.Number:
			headGone = true
		case missing[i]:
			gone = append(gone, v.Number)
		}
	}
	if len(gone) == 0 && !headGone {
		return nil, nil
	}
	if err := c.ProveTable(ctx, cp); err != nil {
		return nil, err
	}
	if headGone {
		if state, err := c.BranchState(ctx, cp); err != nil || !state.Registered {
			return []lance.VersionNumber{head.Number}, err
		}
	}
	return gone, c.Prune(ctx, cp, gone)
}

// missing reports of each version whether its manifest is gone. The head of main counts as there.
func (c *Chains) missing(ctx context.Context, cp Located, versions []lance.Version, head lance.Version) ([]bool, error) {
	var doubtful []int
	for i, v := range versions {
		if v.Number != head.Number || cp.Chain.Branch != lance.Main {
			doubtful = append(doubtful, i)
		}
	}
	if len(doubtful) > lookAlone && cp.Place.Root.Distant {
		var err error
		if doubtful, err = unlisted(ctx, cp, versions, doubtful); err != nil {
			return nil, err
		}
	}
	missing := make([]bool, len(versions))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.places.AtOnce(cp.Place))
	for _, i := range doubtful {
		g.Go(func() error {
			there, err := c.StillThere(gctx, cp, versions[i])
			missing[i] = !there
			return err
		})
	}
	return missing, g.Wait()
}

// lookAlone is up to how many manifests are looked at one by one where every look is a request: more are found in a listing, which
// costs one request for a thousand names. beyondListed is how many other names are passed over before that is given up.
const (
	lookAlone    = 3
	beyondListed = 2000
)

// unlisted returns those of the versions at the given places whose manifests a listing does not show as they were published. It concludes
// nothing: each of them is still to be looked at.
func unlisted(ctx context.Context, cp Located, versions []lance.Version, at []int) ([]int, error) {
	sought := make(map[string]int, len(at))
	var keys []string
	for _, i := range at {
		key := cp.Place.Final(cp.Chain.Branch, versions[i].Number, versions[i].Scheme)
		sought[key], keys = i, append(keys, key)
	}
	slices.Sort(keys)
	first, last, others := keys[0], keys[len(keys)-1], 0
	// The key that is listed after must come right before the first one.
	for info, err := range cp.Place.Objects.List(ctx, lance.VersionsPrefix(cp.Place.Dir, cp.Chain.Branch), first[:len(first)-1]) {
		if err != nil {
			return nil, place.StorageError("list the manifests of table "+strconv.Quote(lance.ShowID(cp.Path)), err)
		}
		if i, ok := sought[info.Key]; !ok {
			others++
		} else if info.ETag == versions[i].ETag && info.Size == versions[i].Size {
			delete(sought, info.Key)
		}
		if info.Key >= last || others > beyondListed || len(sought) == 0 {
			break
		}
	}
	return slices.Sorted(maps.Values(sought)), nil
}

// ProveTable sees that a table's storage is there before anything is concluded from an absence in it: its root, and the latest
// manifest of main, which no client's cleanup removes. Errors: 15, 17, 19 (that manifest is gone), and those of State.View.
func (c *Chains) ProveTable(ctx context.Context, cp Located) error {
	if err := cp.Place.Root.Prove(ctx); err != nil {
		return err
	}
	head, err := c.state.Head(ctx, lance.Chain{Table: cp.Chain.Table})
	if err != nil || head.Number == 0 || head.State != lance.VersionCommitted {
		return err
	}
	key := cp.Place.Final(lance.Main, head.Number, head.Scheme)
	_, err = cp.Place.Objects.Head(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) {
		return api.Errorf(api.CodeInvalidTableState, "the manifest of the latest version, %s, is gone: its storage is incomplete, and nothing can be said of older versions until it is restored", key)
	}
	if err != nil {
		return place.StorageError("look at "+key, err)
	}
	return nil
}

// StillThere reports whether a version's manifest is in storage. Where the store calls it another object than when it was published,
// its content decides: a store that was copied gives everything new names for the same bytes. Content of an aborted transaction in its place is removed
// (C10). Errors: 15, 17.
func (c *Chains) StillThere(ctx context.Context, cp Located, v lance.Version) (bool, error) {
	key := cp.Place.Final(cp.Chain.Branch, v.Number, v.Scheme)
	info, err := cp.Place.Objects.Head(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, place.StorageError("look at "+key, err)
	}
	if info.ETag == v.ETag && info.Size == v.Size {
		return true, nil
	}
	found, err := c.places.Read(ctx, cp.Place, key, info.Size)
	if errors.Is(err, objstore.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, place.StorageError("read "+key, err)
	}
	defer found.Free()
	digest := lance.Digest(sha256.Sum256(found.Data))
	if digest == v.Digest {
		return true, nil
	}
	if _, err := c.completer.RemoveAborted(ctx, cp.Place, found.Info, store.Content{Slot: v.Slot, Digest: digest}); err != nil {
		return false, place.StorageError("remove "+key, err)
	}
	return false, nil
}

// Prune marks versions of a chain, by their numbers, whose manifests are gone. Errors: those of State.Update.
func (c *Chains) Prune(ctx context.Context, cp Located, gone []lance.VersionNumber) error {
	if len(gone) == 0 {
		return nil
	}
	err := c.state.Update(ctx, func(tx store.Tx) error {
		for _, n := range gone {
			if _, err := tx.MarkVersions(cp.Chain, n, n, lance.VersionPruned, 1); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		c.completer.Counters().Pruned.Add(int64(len(gone)))
		c.completer.Notify(ctx, finish.Event{Kind: finish.EventPruned, Table: lance.ShowID(cp.Path), Version: gone[len(gone)-1], Detail: cp.Chain.Branch.String()})
	}
	return err
}

// Restore makes a deleted or pruned version a committed one again, and leaves any other as it is. Errors: the store's, as they are.
func (c *Chains) Restore(ctx context.Context, slot lance.Slot) error {
	return c.state.Store.Update(ctx, func(tx store.Tx) error {
		_, err := tx.RestoreVersion(slot)
		return err
	})
}
