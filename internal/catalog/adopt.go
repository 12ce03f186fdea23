package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/store"
)

// chainPlace is a chain together with where it lies in storage.
type chainPlace struct {
	chain lance.Chain
	place place
	path  lance.TableID
}

// found is a manifest under a final name that no row knows.
type found struct {
	version lance.Version
	info    objstore.Info
	zombie  bool
	bases   []string // beside the table's own directory, where files of it lie
}

// adoptAll adopts chains and notes that they were.
func (c *Catalog) adoptAll(ctx context.Context, chains []chainPlace, adopted map[lance.Chain]bool) error {
	for _, cp := range chains {
		if adopted[cp.chain] {
			continue
		}
		if _, err := c.adopt(ctx, cp); err != nil {
			return err
		}
		adopted[cp.chain] = true
	}
	return nil
}

// adopt inserts rows for the versions above the head of a chain that storage has and no row knows: some writers publish past
// the catalog, and clients take the next number from a listing of storage (C9). It returns how many it added. Objects
// that do not parse, or are of another version than their name says, are left alone; contents of aborted transactions are removed (C10).
func (c *Catalog) adopt(ctx context.Context, cp chainPlace) (int, error) {
	head, err := c.resolvedHead(ctx, cp.chain)
	if err != nil {
		return 0, err
	}
	candidates, err := c.manifestsAbove(ctx, cp, head.Number)
	if err != nil || len(candidates) == 0 {
		return 0, err
	}
	return c.takeIn(ctx, cp, candidates)
}

// takeIn makes manifests that bypassing writers published durable, which they may not have done themselves, and enters them.
func (c *Catalog) takeIn(ctx context.Context, cp chainPlace, infos []objstore.Info) (int, error) {
	finds, err := c.inspect(ctx, cp, infos, func(key string, data []byte) error {
		// A store that finds the name taken has made sure that what is there stays.
		info, err := cp.place.objects.PutIfAbsent(ctx, key, data)
		if errors.Is(err, objstore.ErrExists) {
			return nil
		}
		if err != nil {
			return err
		}
		// It was removed since it was read, by an abort perhaps, and must not come back (C10).
		if err := cp.place.objects.DeleteIf(ctx, key, info.ETag); err != nil && !errors.Is(err, objstore.ErrChanged) {
			return err
		}
		return objstore.ErrNotFound
	})
	if err != nil || len(finds) == 0 {
		return 0, err
	}
	return c.enter(ctx, cp, finds)
}

// resolvedHead returns the head of a chain after finishing the transaction that is at it: what was written upon a version that is
// then aborted must not be judged before that is known.
func (c *Catalog) resolvedHead(ctx context.Context, chain lance.Chain) (lance.Version, error) {
	for {
		head, err := c.head(ctx, chain)
		if err != nil || head.Number == 0 || head.State != lance.VersionPending {
			return head, err
		}
		if err := c.help(ctx, head.Transaction); err != nil {
			return head, err
		}
	}
}

// adoptSlot does the same for one version by its number, which may also be detached or below the head.
func (c *Catalog) adoptSlot(ctx context.Context, cp chainPlace, v lance.VersionNumber) (int, error) {
	for _, scheme := range []lance.NamingScheme{lance.SchemeV2, lance.SchemeV1} {
		info, err := cp.place.objects.Head(ctx, cp.place.final(cp.chain.Branch, v, scheme))
		if errors.Is(err, objstore.ErrNotFound) {
			continue
		}
		if err != nil {
			return 0, storageError("look for version in storage", err)
		}
		return c.takeIn(ctx, cp, []objstore.Info{info})
	}
	return 0, nil
}

// manifestsAbove lists the final manifests of a chain with numbers above the given one.
func (c *Catalog) manifestsAbove(ctx context.Context, cp chainPlace, above lance.VersionNumber) ([]objstore.Info, error) {
	prefix := lance.VersionsPrefix(cp.place.dir, cp.chain.Branch)
	byNumber := map[lance.VersionNumber]objstore.Info{}
	for info, err := range cp.place.objects.List(ctx, prefix, "") {
		if err != nil {
			return nil, storageError("list "+prefix, err)
		}
		v, scheme, ok := lance.ParseManifestName(strings.TrimPrefix(info.Key, prefix))
		if !ok || v.Detached() || v <= above {
			continue
		}
		// Of two names for one version the newer scheme's is what clients read first.
		if _, twice := byNumber[v]; !twice || scheme == lance.SchemeV2 {
			byNumber[v] = info
		}
	}
	infos := make([]objstore.Info, 0, len(byNumber))
	for _, info := range byNumber {
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b objstore.Info) int { return strings.Compare(a.Key, b.Key) })
	return infos, nil
}

// inspect reads manifests and returns those that are what their names say, after settle was called for each.
func (c *Catalog) inspect(ctx context.Context, cp chainPlace, infos []objstore.Info, settle func(key string, data []byte) error) ([]found, error) {
	finds := make([]*found, len(infos))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.atOnce(cp.place))
	for i, info := range infos {
		g.Go(func() error {
			f, err := c.inspectOne(gctx, cp, info, settle)
			finds[i] = f
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var sound []found
	for _, f := range finds {
		if f != nil {
			sound = append(sound, *f)
		}
	}
	return sound, nil
}

func (c *Catalog) inspectOne(ctx context.Context, cp chainPlace, info objstore.Info, settle func(string, []byte) error) (*found, error) {
	there, err := c.read(ctx, cp.place, info.Key, info.Size)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, nil // removed since it was listed
	}
	if err != nil {
		return nil, storageError("read "+info.Key, err)
	}
	defer there.free()
	data, info := there.data, there.info
	v, scheme, _ := lance.ParseManifestName(info.Key[strings.LastIndexByte(info.Key, '/')+1:])
	m, err := lance.ReadManifest(data)
	if err != nil || m.Version != v {
		detail := info.Key + " is of another version than its name says"
		if err != nil {
			detail = info.Key + ": " + err.Error()
		}
		c.notify(ctx, Event{Kind: EventSkipped, Table: show(cp.path), Version: v, Detail: detail})
		return nil, nil
	}
	err = settle(info.Key, data)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, storageError("make "+info.Key+" durable", err)
	}
	return &found{info: info, bases: basesOf(data, m, cp.place.location), version: lance.Version{
		Slot:  lance.Slot{Chain: cp.chain, Number: v},
		State: lance.VersionCommitted, Origin: lance.OriginStorage, Scheme: scheme,
		Size: info.Size, ETag: info.ETag, Digest: sha256.Sum256(data), Timestamp: m.Timestamp.UTC().Truncate(time.Millisecond),
		Summary: m.Summary(),
	}}, nil
}

// enter adds rows for what was found. Whether a content belongs to an aborted transaction is asked in the same database
// transaction: an abort between reading and entering cannot slip through (C9).
func (c *Catalog) enter(ctx context.Context, cp chainPlace, finds []found) (int, error) {
	contents := make([]store.Content, len(finds))
	for i, f := range finds {
		contents[i] = store.Content{Slot: f.version.Slot, Digest: f.version.Digest}
	}
	var added int
	var pending lance.TransactionID
	err := c.update(ctx, func(tx store.Tx) error {
		pending = ""
		heads, err := tx.Heads([]lance.Chain{cp.chain})
		if err != nil {
			return err
		}
		if heads[0].Number != 0 && heads[0].State == lance.VersionPending {
			pending = heads[0].Transaction
			return errRolledBack
		}
		aborted, err := tx.Aborted(contents)
		if err != nil {
			return err
		}
		var rows []lance.Version
		for i := range finds {
			finds[i].zombie = aborted[i]
			if aborted[i] {
				continue
			}
			rows = append(rows, finds[i].version)
			if err := noteClone(tx, cp.chain.Table, finds[i].bases); err != nil {
				return err
			}
		}
		added, err = tx.AdoptVersions(rows)
		return err
	})
	if pending != "" {
		// Somebody reserved a version since the head was looked at: what stands above may have been made upon it.
		if err := c.help(ctx, pending); err != nil {
			return 0, err
		}
		return c.enter(ctx, cp, finds)
	}
	if err != nil {
		return 0, err
	}
	for i, f := range finds {
		if !f.zombie {
			continue
		}
		if _, err := c.removeAborted(ctx, cp.place, f.info, contents[i]); err != nil {
			return added, storageError("remove "+f.info.Key, err)
		}
	}
	if added > 0 {
		c.counters.Adoptions.Add(int64(added))
		c.notify(ctx, Event{Kind: EventAdopted, Table: show(cp.path), Version: finds[len(finds)-1].version.Number, Detail: cp.chain.Branch.String()})
	}
	return added, nil
}
