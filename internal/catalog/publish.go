package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/store"
)

// published is what came of publishing one entry.
type published struct {
	info     objstore.Info
	unsynced []byte // the manifest, where the state has to keep it until storage has made it durable
	// foreign says that other bytes stand under the final name, or that the staged manifest is gone before its bytes were
	// published: the transaction cannot be completed (C10).
	foreign bool
	gone    bool
	// blocked is the name under which something stands that is no object and so can neither be read nor replaced: a directory, say.
	blocked string
}

// publishError says which entry of a transaction could not be published for now.
type publishError struct {
	entry lance.Entry
	cause error
}

func (e *publishError) Error() string { return e.what() + ": " + e.cause.Error() }
func (e *publishError) Unwrap() error { return e.cause }

// what says it without the storage's own words, for callers.
func (e *publishError) what() string {
	return fmt.Sprintf("version %d of table %q cannot be published", e.entry.Version, show(e.entry.Path))
}

// publishAttempts bounds how often the contents of aborted transactions are removed from one slot before giving up for now.
const publishAttempts = 8

// publish puts the manifests of a transaction under their final names, in parallel and create-only (C6). data holds what is
// still in memory, by entry; the rest is read from the staged manifests again. Any number of servers may do this at once.
func (c *Catalog) publish(ctx context.Context, t *lance.Transaction, data [][]byte) ([]published, error) {
	done := make([]published, len(t.Entries))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.atOnce(c.placesOf(t)...))
	for i, e := range t.Entries {
		if e.Kind != lance.EntryCreateVersion {
			continue
		}
		g.Go(func() error {
			var known []byte
			if data != nil {
				known = data[i]
			}
			var err error
			done[i], err = c.publishOne(ctx, e, known)
			if err != nil {
				return &publishError{entry: e, cause: err}
			}
			return nil
		})
	}
	return done, g.Wait()
}

// placesOf returns the places of a transaction's entries, as far as they are in roots that are allowed.
func (c *Catalog) placesOf(t *lance.Transaction) []place {
	var places []place
	for _, e := range t.Entries {
		if p, err := c.place(e.Location); err == nil {
			places = append(places, p)
		}
	}
	return places
}

func (c *Catalog) publishOne(ctx context.Context, e lance.Entry, data []byte) (published, error) {
	p, err := c.place(e.Location)
	if err != nil {
		return published{}, err
	}
	final := p.final(e.Branch, e.Version, e.Scheme)
	if data == nil {
		// A helper looks first: most often the manifest is there already.
		if there, done, err := c.settled(ctx, p, final, e); err != nil || done {
			return there, err
		}
	}
	for range publishAttempts {
		put, putErr := c.putOnce(ctx, p, e, data)
		if !errors.Is(putErr, objstore.ErrExists) && !errors.Is(putErr, errStagedGone) {
			return put, putErr
		}
		there, done, err := c.settled(ctx, p, final, e)
		if err != nil || done {
			return there, err
		}
		if errors.Is(putErr, errStagedGone) {
			there.gone = true
			return there, nil
		}
	}
	return published{foreign: true, blocked: final}, nil
}

// settled looks at what stands under a final name. It is done if that is the entry's own content, put there by a helper, or
// foreign. Nothing there, or the content of an aborted transaction, which it removes (C10), is not the end of it.
func (c *Catalog) settled(ctx context.Context, p place, final string, e lance.Entry) (published, bool, error) {
	found, err := c.read(ctx, p, final, e.Size)
	if errors.Is(err, objstore.ErrNotFound) {
		return published{}, false, nil
	}
	if err != nil {
		return published{}, false, err
	}
	defer found.free()
	there, info := found.data, found.info
	digest := lance.Digest(sha256.Sum256(there))
	if hexDigest(digest) == e.Digest {
		own, err := c.secure(ctx, p, published{info: info}, there)
		return own, err == nil, err
	}
	if c.damaged(p, info, there) {
		err := p.objects.DeleteIf(ctx, info.Key, info.ETag)
		if errors.Is(err, objstore.ErrChanged) {
			err = nil
		}
		return published{}, false, err
	}
	zombie, err := c.removeAborted(ctx, p, info, store.Content{Slot: slotOf(e), Digest: digest})
	if err != nil || zombie {
		return published{}, false, err
	}
	return published{foreign: true}, true, nil
}

// removeAborted removes an object whose content belongs to an aborted transaction's entry for its slot, and reports whether it
// was one. A late write of such a transaction can land at any time (C10).
func (c *Catalog) removeAborted(ctx context.Context, p place, info objstore.Info, content store.Content) (bool, error) {
	var aborted []bool
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		aborted, err = r.Aborted([]store.Content{content})
		return err
	})
	if err != nil || !aborted[0] {
		return false, err
	}
	err = p.objects.DeleteIf(ctx, info.Key, info.ETag)
	if err != nil && !errors.Is(err, objstore.ErrChanged) {
		return true, err
	}
	c.counters.Zombies.Add(1)
	c.opts.Notify(ctx, Event{Kind: EventZombie, Version: content.Slot.Number, Detail: info.Key})
	return true, nil
}

// errStagedGone says that a staged manifest is gone, or no longer holds what was reserved.
var errStagedGone = errors.New("the staged manifest is gone")

// putOnce puts the bytes of an entry under its final name: those at hand, or else what is staged. errStagedGone; objstore.ErrExists.
func (c *Catalog) putOnce(ctx context.Context, p place, e lance.Entry, data []byte) (published, error) {
	final := p.final(e.Branch, e.Version, e.Scheme)
	if data != nil {
		return c.put(ctx, p, final, data)
	}
	staged, err := c.readStaged(ctx, p, e)
	if err != nil {
		return published{}, err
	}
	defer staged.free()
	return c.put(ctx, p, final, staged.data)
}

// readStaged reads the bytes of an entry from its staged manifest. errStagedGone.
func (c *Catalog) readStaged(ctx context.Context, p place, e lance.Entry) (held, error) {
	staged, err := c.read(ctx, p, p.staged(e.Branch, e.Staged), e.Size)
	if errors.Is(err, objstore.ErrNotFound) {
		return held{}, errStagedGone
	}
	if err != nil {
		return held{}, err
	}
	if number, _, final := lance.ParseManifestName(e.Staged); final && number != e.Version {
		staged.data, err = attach(ctx, p, attachment{data: staged.data, branch: e.Branch, version: e.Version, after: e.After, between: e.Between, limit: c.opts.MaxManifest})
	}
	if err == nil && hexDigest(sha256.Sum256(staged.data)) == e.Digest {
		return staged, nil
	}
	staged.free()
	var outage *api.Error
	if errors.As(err, &outage) {
		return held{}, err
	}
	return held{}, errStagedGone
}

func slotOf(e lance.Entry) lance.Slot {
	return lance.Slot{Chain: lance.Chain{Table: e.Table, Branch: e.Branch}, Number: e.Version}
}
