package finish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/store"
)

// Where storage can put an object faster than it can make it durable, a commit does not wait for the disk a second time: the
// transaction that makes a version visible keeps its manifest's bytes in the state, which is durable already (C6). Once storage has made
// many such manifests durable in one go, the state lets go of them. After a power failure those that are damaged are written
// again before anything is served.

// unsyncedMax is the size up to which a manifest's bytes are kept in the state.
const unsyncedMax = 64 << 10

// unsyncedPage is how many manifests are read or let go of in one transaction.
const unsyncedPage = 500

// lazy returns a place's storage if manifests may be put there without waiting for the disk.
func (c *Completer) lazy(p place.Place) (objstore.Lazy, bool) {
	if !c.opts.KeepUnsynced {
		return nil, false
	}
	s, ok := p.Objects.(objstore.Lazy)
	return s, ok
}

// put puts a manifest under its final name, and returns its bytes where the state has to keep them.
func (c *Completer) put(ctx context.Context, p place.Place, final string, data []byte) (published, error) {
	if lazy, ok := c.lazy(p); ok && len(data) <= unsyncedMax {
		info, err := lazy.PutSoon(ctx, final, data)
		if !errors.Is(err, errors.ErrUnsupported) {
			return published{info: info, unsynced: data}, err
		}
	}
	info, err := p.Objects.PutIfAbsent(ctx, final, data)
	return published{info: info}, err
}

// secure makes a manifest of its own content that somebody else put durable, where that put may have been one that did not wait: by the
// state, or else by storage, which syncs what is in the way of a put.
func (c *Completer) secure(ctx context.Context, p place.Place, done published, data []byte) (published, error) {
	if _, ok := p.Objects.(objstore.Lazy); !ok {
		return done, nil
	}
	if _, ok := c.lazy(p); ok && len(data) <= unsyncedMax {
		done.unsynced = data
		return done, nil
	}
	_, err := p.Objects.PutIfAbsent(ctx, done.info.Key, data)
	if errors.Is(err, objstore.ErrExists) {
		err = nil
	}
	return done, err
}

// damaged reports whether an object is what a power failure left of a manifest that was put soon: nothing that can be read, and older
// than this process.
func (c *Completer) damaged(p place.Place, info objstore.Info, data []byte) bool {
	if _, ok := p.Objects.(objstore.Lazy); !ok || !info.Modified.Before(c.started) {
		return false
	}
	_, err := lance.ReadManifest(data)
	return err != nil
}

// keepUnsynced keeps the bytes of published manifests that storage may still lose, in the transaction that makes them visible.
func (e *effects) keepUnsynced(done []published) error {
	var keep []store.Unsynced
	for i, entry := range e.entries {
		if entry.Kind == lance.EntryCreateVersion && done[i].unsynced != nil {
			keep = append(keep, store.Unsynced{
				ID: e.tx.NewID(), Slot: SlotOf(entry), Scheme: entry.Scheme, Location: entry.Location, Data: done[i].unsynced,
			})
		}
	}
	e.unsynced = len(keep) > 0
	if !e.unsynced {
		return nil
	}
	return e.tx.InsertUnsynced(keep)
}

// RestoreUnsynced sees that every manifest that the state keeps is whole in storage, and writes again what a power failure took away or
// damaged. It is to be called before anything is served, and returns how many manifests it wrote. On an error, which is the state's or the
// storage's, nothing may be served: a version that was acknowledged may be missing.
func (c *Completer) RestoreUnsynced(ctx context.Context) (int, error) {
	restored := 0
	for after := lance.ObjectID(0); ; {
		var page []store.Unsynced
		var rows []lance.Version
		err := c.state.Store.View(ctx, func(r store.Reader) (err error) {
			page, rows, err = unsyncedRows(r, after)
			return err
		})
		if err != nil {
			return restored, fmt.Errorf("read the manifests to restore: %w", err)
		}
		if len(page) == 0 {
			break
		}
		n, err := c.restorePage(ctx, page, rows)
		restored += n
		if err != nil {
			return restored, err
		}
		after = page[len(page)-1].ID
	}
	c.restored.Store(true)
	return restored, c.syncManifests(ctx)
}

// syncOwn is syncManifests in the background and at the end. Who has not restored what was kept before lets go of nothing: whether
// that is in storage, nobody has looked.
func (c *Completer) syncOwn(ctx context.Context) error {
	if !c.restored.Load() {
		return nil
	}
	return c.syncManifests(ctx)
}

func (c *Completer) restorePage(ctx context.Context, page []store.Unsynced, rows []lance.Version) (int, error) {
	written := make([]bool, len(page))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.places.AtOnce())
	for i, m := range page {
		if rows[i].Number == 0 || rows[i].State != lance.VersionCommitted {
			continue // it was deleted meanwhile
		}
		g.Go(func() (err error) {
			if written[i], err = c.rewrite(ctx, m); err != nil {
				return fmt.Errorf("restore version %d of the table at %s: %w", m.Slot.Number, m.Location, err)
			}
			return nil
		})
	}
	err := g.Wait()
	n := 0
	for i, was := range written {
		if was {
			n++
			c.Notify(ctx, Event{Kind: EventRestored, Table: page[i].Location, Version: page[i].Slot.Number, Detail: "its manifest was lost or damaged, as by a power failure, and is written again"})
		}
	}
	return n, err
}

// rewrite writes a manifest again unless it is there, and reports whether it did. One that can be read is left alone even if it is another:
// that is no damage, and for `lancerest check` to tell.
func (c *Completer) rewrite(ctx context.Context, m store.Unsynced) (bool, error) {
	p, err := c.places.At(m.Location)
	if err != nil {
		return false, err
	}
	final := p.Final(m.Slot.Chain.Branch, m.Slot.Number, m.Scheme)
	_, err = c.put(ctx, p, final, m.Data)
	if !errors.Is(err, objstore.ErrExists) {
		return err == nil, err
	}
	there, _, err := p.Objects.Get(ctx, final, c.places.MaxManifest())
	if err != nil {
		return false, err
	}
	if _, err := lance.ReadManifest(there); err == nil {
		return false, nil
	}
	lazy, ok := p.Objects.(objstore.Lazy)
	if !ok {
		return false, fmt.Errorf("%s is damaged, and this storage cannot replace it", final)
	}
	_, err = lazy.Restore(ctx, final, m.Data)
	return err == nil, err
}

// syncManifests makes durable all manifests that the state keeps, and lets go of them. Which those are is read first: what is kept
// later may have been put after the sync.
func (c *Completer) syncManifests(ctx context.Context) error {
	for {
		var ids []lance.ObjectID
		err := c.state.Store.View(ctx, func(r store.Reader) (err error) {
			ids, err = r.UnsyncedIDs(0, 100*unsyncedPage)
			return err
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := c.syncRoots(ctx); err != nil {
			// A later sync would not tell that something was lost in this one: everything is written anew.
			c.Notify(ctx, Event{Kind: EventUnsynced, Detail: err.Error()})
			if err := c.rewriteUnsynced(ctx, ids[len(ids)-1]); err != nil {
				return err
			}
		}
		for len(ids) > 0 {
			n := min(len(ids), unsyncedPage)
			if err := c.state.Store.Update(ctx, func(tx store.Tx) error { return tx.DeleteUnsynced(ids[:n]) }); err != nil {
				return err
			}
			ids = ids[n:]
		}
	}
}

// rewriteUnsynced writes every kept manifest up to the given id again, durably, whatever can be read under its name now: that may be
// in memory only.
func (c *Completer) rewriteUnsynced(ctx context.Context, last lance.ObjectID) error {
	for after := lance.ObjectID(0); after < last; {
		var page []store.Unsynced
		var rows []lance.Version
		err := c.state.Store.View(ctx, func(r store.Reader) (err error) {
			page, rows, err = unsyncedRows(r, after)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for i, m := range page {
			if rows[i].Number == 0 || rows[i].State != lance.VersionCommitted {
				continue
			}
			p, err := c.places.At(m.Location)
			if err != nil {
				return err
			}
			lazy, ok := c.lazy(p)
			if !ok {
				continue
			}
			if _, err := lazy.Restore(ctx, p.Final(m.Slot.Chain.Branch, m.Slot.Number, m.Scheme), m.Data); err != nil {
				return err
			}
		}
		after = page[len(page)-1].ID
	}
	return nil
}

// unsyncedRows reads a page of kept manifests after an id, and the rows of their versions.
func unsyncedRows(r store.Reader, after lance.ObjectID) ([]store.Unsynced, []lance.Version, error) {
	page, err := r.Unsynced(after, unsyncedPage)
	if err != nil {
		return nil, nil, err
	}
	slots := make([]lance.Slot, len(page))
	for i, m := range page {
		slots[i] = m.Slot
	}
	rows, err := r.Versions(slots)
	return page, rows, err
}

func (c *Completer) syncRoots(ctx context.Context) error {
	done := map[objstore.Lazy]bool{}
	for _, r := range c.places.Roots() {
		if lazy, ok := c.lazy(place.Place{Objects: r.Objects}); ok && !done[lazy] {
			done[lazy] = true
			if err := lazy.Sync(ctx); err != nil {
				return fmt.Errorf("sync the storage at %s: %w", r.Location, err)
			}
		}
	}
	return nil
}

// KeptUnsynced tells of which versions the state keeps the manifests. Errors: those of State.View.
func (c *Completer) KeptUnsynced(ctx context.Context) (map[lance.Slot]bool, error) {
	kept := map[lance.Slot]bool{}
	for after := lance.ObjectID(0); ; {
		var page []store.Unsynced
		err := c.state.View(ctx, func(r store.Reader) (err error) {
			page, err = r.Unsynced(after, unsyncedPage)
			return err
		})
		if err != nil || len(page) == 0 {
			return kept, err
		}
		for _, m := range page {
			kept[m.Slot] = true
		}
		after = page[len(page)-1].ID
	}
}

// syncPause is how long manifests are gathered before they are made durable together.
const syncPause = 2 * time.Second

// manifestSyncer makes manifests durable in the background, some time after the first that was put.
type manifestSyncer struct {
	sync   func(context.Context) error
	failed func(error)

	mu     sync.Mutex
	wanted bool
	stop   chan struct{}
	done   sync.WaitGroup
}

// later asks for a sync.
func (s *manifestSyncer) later() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted {
		return
	}
	select {
	case <-s.stop:
		return
	default:
	}
	s.wanted = true
	s.done.Go(s.run)
}

func (s *manifestSyncer) run() {
	timer := time.NewTimer(syncPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stop:
		return // close syncs
	}
	s.mu.Lock()
	s.wanted = false // what is put from now on asks again
	s.mu.Unlock()
	if err := s.sync(context.Background()); err != nil {
		s.failed(err)
		s.later()
	}
}

// close ends the background and syncs a last time, as far as ctx allows.
func (s *manifestSyncer) close(ctx context.Context) {
	s.mu.Lock()
	select {
	case <-s.stop:
		s.mu.Unlock()
		return
	default:
	}
	close(s.stop)
	s.mu.Unlock()
	s.done.Wait()
	if err := s.sync(ctx); err != nil {
		s.failed(err)
	}
}
