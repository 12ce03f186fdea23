package chain

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/internal/commit/finish"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// Found is a manifest under a final name that no row knows.
type Found struct {
	Version lance.Version // the row that it would have
	info    objstore.Info
	zombie  bool
	Bases   []string // beside the table's own directory, where files of it lie
}

// Adopt inserts rows for the versions above the head of a chain that storage has and no row knows: some writers publish past
// the catalog, and clients take the next number from a listing of storage (C9). It returns how many it added. Objects
// that do not parse, or are of another version than their name says, are left alone; contents of aborted transactions are removed (C10).
// Errors: 15, 17, and those of State.Update and Completer.Help.
func (c *Chains) Adopt(ctx context.Context, cp Located) (int, error) {
	head, err := c.resolvedHead(ctx, cp.Chain)
	if err != nil {
		return 0, err
	}
	candidates, err := c.ManifestsAbove(ctx, cp, head.Number)
	if err != nil || len(candidates) == 0 {
		return 0, err
	}
	return c.takeIn(ctx, cp, candidates)
}

// takeIn makes manifests that bypassing writers published durable, which they may not have done themselves, and enters them.
func (c *Chains) takeIn(ctx context.Context, cp Located, infos []objstore.Info) (int, error) {
	finds, err := c.Inspect(ctx, cp, infos, func(key string, data []byte) error {
		// A store that finds the name taken has made sure that what is there stays.
		info, err := cp.Place.Objects.PutIfAbsent(ctx, key, data)
		if errors.Is(err, objstore.ErrExists) {
			return nil
		}
		if err != nil {
			return err
		}
		// It was removed since it was read, by an abort perhaps, and must not come back (C10).
		if err := cp.Place.Objects.DeleteIf(ctx, key, info.ETag); err != nil && !errors.Is(err, objstore.ErrChanged) {
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
func (c *Chains) resolvedHead(ctx context.Context, chain lance.Chain) (lance.Version, error) {
	for {
		head, err := c.state.Head(ctx, chain)
		if err != nil || head.Number == 0 || head.State != lance.VersionPending {
			return head, err
		}
		if err := c.completer.Help(ctx, head.Transaction); err != nil {
			return head, err
		}
	}
}

// AdoptSlot does the same for one version by its number, which may also be detached or below the head. Errors: those of Adopt.
func (c *Chains) AdoptSlot(ctx context.Context, cp Located, v lance.VersionNumber) (int, error) {
	for _, scheme := range []lance.NamingScheme{lance.SchemeV2, lance.SchemeV1} {
		info, err := cp.Place.Objects.Head(ctx, cp.Place.Final(cp.Chain.Branch, v, scheme))
		if errors.Is(err, objstore.ErrNotFound) {
			continue
		}
		if err != nil {
			return 0, place.StorageError("look for version in storage", err)
		}
		return c.takeIn(ctx, cp, []objstore.Info{info})
	}
	return 0, nil
}

// ManifestsAbove lists the final manifests of a chain with numbers above the given one, sorted by key, detached ones left out. Errors: 15, 17.
func (c *Chains) ManifestsAbove(ctx context.Context, cp Located, above lance.VersionNumber) ([]objstore.Info, error) {
	prefix := lance.VersionsPrefix(cp.Place.Dir, cp.Chain.Branch)
	byNumber := map[lance.VersionNumber]objstore.Info{}
	for info, err := range cp.Place.Objects.List(ctx, prefix, "") {
		if err != nil {
			return nil, place.StorageError("list "+prefix, err)
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

// Inspect reads manifests of a chain and returns those that are what their names say, in the order given, after settle was called for each;
// what settle answers with objstore.ErrNotFound is left out, as is what cannot be read, which is an event. Errors: 15, 17.
func (c *Chains) Inspect(ctx context.Context, cp Located, infos []objstore.Info, settle func(key string, data []byte) error) ([]Found, error) {
	finds := make([]*Found, len(infos))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.places.AtOnce(cp.Place))
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
	var sound []Found
	for _, f := range finds {
		if f != nil {
			sound = append(sound, *f)
		}
	}
	return sound, nil
}

func (c *Chains) inspectOne(ctx context.Context, cp Located, info objstore.Info, settle func(string, []byte) error) (*Found, error) {
	there, err := c.places.Read(ctx, cp.Place, info.Key, info.Size)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, nil // removed since it was listed
	}
	if err != nil {
		return nil, place.StorageError("read "+info.Key, err)
	}
	defer there.Free()
	data, info := there.Data, there.Info
	v, scheme, _ := lance.ParseManifestName(info.Key[strings.LastIndexByte(info.Key, '/')+1:])
	m, err := lance.ReadManifest(data)
	if err != nil || m.Version != v {
		detail := info.Key + " is of another version than its name says"
		if err != nil {
			detail = info.Key + ": " + err.Error()
		}
		c.completer.Notify(ctx, finish.Event{Kind: finish.EventSkipped, Table: lance.ShowID(cp.Path), Version: v, Detail: detail})
		return nil, nil
	}
	err = settle(info.Key, data)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, place.StorageError("make "+info.Key+" durable", err)
	}
	return &Found{info: info, Bases: BasesOf(data, m, cp.Place.Location), Version: lance.Version{
		Slot:  lance.Slot{Chain: cp.Chain, Number: v},
		State: lance.VersionCommitted, Origin: lance.OriginStorage, Scheme: scheme,
		Size: info.Size, ETag: info.ETag, Digest: sha256.Sum256(data), Timestamp: m.Timestamp.UTC().Truncate(time.Millisecond),
		Summary: m.Summary(),
	}}, nil
}

// enter adds rows for what was found. Whether a content belongs to an aborted transaction is asked in the same database
// transaction: an abort between reading and entering cannot slip through (C9).
func (c *Chains) enter(ctx context.Context, cp Located, finds []Found) (int, error) {
	contents := make([]store.Content, len(finds))
	for i, f := range finds {
		contents[i] = store.Content{Slot: f.Version.Slot, Digest: f.Version.Digest}
	}
	var added int
	var pending lance.TransactionID
	err := c.state.Update(ctx, func(tx store.Tx) error {
		pending = ""
		heads, err := tx.Heads([]lance.Chain{cp.Chain})
		if err != nil {
			return err
		}
		if heads[0].Number != 0 && heads[0].State == lance.VersionPending {
			pending = heads[0].Transaction
			return state.ErrRolledBack
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
			rows = append(rows, finds[i].Version)
			if err := NoteClone(tx, cp.Chain.Table, finds[i].Bases); err != nil {
				return err
			}
		}
		added, err = tx.AdoptVersions(rows)
		return err
	})
	if pending != "" {
		// Somebody reserved a version since the head was looked at: what stands above may have been made upon it.
		if err := c.completer.Help(ctx, pending); err != nil {
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
		if _, err := c.completer.RemoveAborted(ctx, cp.Place, f.info, contents[i]); err != nil {
			return added, place.StorageError("remove "+f.info.Key, err)
		}
	}
	if added > 0 {
		c.completer.Counters().Adoptions.Add(int64(added))
		c.completer.Notify(ctx, finish.Event{Kind: finish.EventAdopted, Table: lance.ShowID(cp.Path), Version: finds[len(finds)-1].Version.Number, Detail: cp.Chain.Branch.String()})
	}
	return added, nil
}
