package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/store"
)

// pruneGone looks at the manifest of every version but the head of main, and marks those pruned whose manifest is gone, or is no
// longer theirs: clients clean up in storage without telling the catalog (client contract, fact 68), and a late write of an
// aborted transaction may land in a slot that became empty so (C10). It returns them. Where a branch's head and its reference are
// both gone, the branch was deleted: its rows are removed.
func (c *Catalog) pruneGone(ctx context.Context, cp chainPlace, versions []lance.Version, head lance.Version) ([]lance.VersionNumber, error) {
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
	if err := c.proveTable(ctx, cp); err != nil {
		return nil, err
	}
	if headGone {
		if state, err := c.branchState(ctx, cp); err != nil || !state.registered {
			return []lance.VersionNumber{head.Number}, err
		}
	}
	return gone, c.prune(ctx, cp, gone)
}

// missing reports of each version whether its manifest is gone. The head of main counts as there.
func (c *Catalog) missing(ctx context.Context, cp chainPlace, versions []lance.Version, head lance.Version) ([]bool, error) {
	var doubtful []int
	for i, v := range versions {
		if v.Number != head.Number || cp.chain.Branch != lance.Main {
			doubtful = append(doubtful, i)
		}
	}
	if len(doubtful) > lookAlone && cp.place.root.Distant {
		var err error
		if doubtful, err = unlisted(ctx, cp, versions, doubtful); err != nil {
			return nil, err
		}
	}
	missing := make([]bool, len(versions))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.atOnce(cp.place))
	for _, i := range doubtful {
		g.Go(func() error {
			there, err := c.stillThere(gctx, cp, versions[i])
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
func unlisted(ctx context.Context, cp chainPlace, versions []lance.Version, at []int) ([]int, error) {
	sought := make(map[string]int, len(at))
	var keys []string
	for _, i := range at {
		key := cp.place.final(cp.chain.Branch, versions[i].Number, versions[i].Scheme)
		sought[key], keys = i, append(keys, key)
	}
	slices.Sort(keys)
	first, last, others := keys[0], keys[len(keys)-1], 0
	// The key that is listed after must come right before the first one.
	for info, err := range cp.place.objects.List(ctx, lance.VersionsPrefix(cp.place.dir, cp.chain.Branch), first[:len(first)-1]) {
		if err != nil {
			return nil, storageError("list the manifests of table "+strconv.Quote(show(cp.path)), err)
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

// proveTable sees that a table's storage is there before anything is concluded from an absence in it: its root, and the latest
// manifest of main, which no client's cleanup removes.
func (c *Catalog) proveTable(ctx context.Context, cp chainPlace) error {
	if err := cp.place.root.prove(ctx); err != nil {
		return err
	}
	head, err := c.head(ctx, lance.Chain{Table: cp.chain.Table})
	if err != nil || head.Number == 0 || head.State != lance.VersionCommitted {
		return err
	}
	key := cp.place.final(lance.Main, head.Number, head.Scheme)
	_, err = cp.place.objects.Head(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) {
		return api.Errorf(api.CodeInvalidTableState, "the manifest of the latest version, %s, is gone: its storage is incomplete, and nothing can be said of older versions until it is restored", key)
	}
	if err != nil {
		return storageError("look at "+key, err)
	}
	return nil
}

// stillThere reports whether a version's manifest is in storage. Where the store calls it another object than when it was published,
// its content decides: a store that was copied gives everything new names for the same bytes.
func (c *Catalog) stillThere(ctx context.Context, cp chainPlace, v lance.Version) (bool, error) {
	key := cp.place.final(cp.chain.Branch, v.Number, v.Scheme)
	info, err := cp.place.objects.Head(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, storageError("look at "+key, err)
	}
	if info.ETag == v.ETag && info.Size == v.Size {
		return true, nil
	}
	found, err := c.read(ctx, cp.place, key, info.Size)
	if errors.Is(err, objstore.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, storageError("read "+key, err)
	}
	defer found.free()
	digest := lance.Digest(sha256.Sum256(found.data))
	if digest == v.Digest {
		return true, nil
	}
	if _, err := c.removeAborted(ctx, cp.place, found.info, store.Content{Slot: v.Slot, Digest: digest}); err != nil {
		return false, storageError("remove "+key, err)
	}
	return false, nil
}

// prune marks versions whose manifests are gone.
func (c *Catalog) prune(ctx context.Context, cp chainPlace, gone []lance.VersionNumber) error {
	if len(gone) == 0 {
		return nil
	}
	err := c.update(ctx, func(tx store.Tx) error {
		for _, n := range gone {
			if _, err := tx.MarkVersions(cp.chain, n, n, lance.VersionPruned, 1); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		c.counters.Pruned.Add(int64(len(gone)))
		c.notify(ctx, Event{Kind: EventPruned, Table: show(cp.path), Version: gone[len(gone)-1], Detail: cp.chain.Branch.String()})
	}
	return err
}
