package finish

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
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
	return fmt.Sprintf("version %d of table %q cannot be published", e.entry.Version, lance.ShowID(e.entry.Path))
}

// publishAttempts bounds how often the contents of aborted transactions are removed from one slot before giving up for now.
const publishAttempts = 8

// publish puts the manifests of a transaction under their final names, in parallel and create-only (C6). data holds what is
// still in memory, by entry; the rest is read from the staged manifests again. Any number of servers may do this at once.
func (c *Completer) publish(ctx context.Context, t *lance.Transaction, data [][]byte) ([]published, error) {
	done := make([]published, len(t.Entries))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.places.AtOnce(c.placesOf(t)...))
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
func (c *Completer) placesOf(t *lance.Transaction) []place.Place {
	var places []place.Place
	for _, e := range t.Entries {
		if p, err := c.places.At(e.Location); err == nil {
			places = append(places, p)
		}
	}
	return places
}

func (c *Completer) publishOne(ctx context.Context, e lance.Entry, data []byte) (published, error) {
	p, err := c.places.At(e.Location)
	if err != nil {
		return published{}, err
	}
	final := p.Final(e.Branch, e.Version, e.Scheme)
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
func (c *Completer) settled(ctx context.Context, p place.Place, final string, e lance.Entry) (published, bool, error) {
	found, err := c.places.Read(ctx, p, final, e.Size)
	if errors.Is(err, objstore.ErrNotFound) {
		return published{}, false, nil
	}
	if err != nil {
		return published{}, false, err
	}
	defer found.Free()
	there, info := found.Data, found.Info
	digest := lance.Digest(sha256.Sum256(there))
	if lance.HexDigest(digest) == e.Digest {
		own, err := c.secure(ctx, p, published{info: info}, there)
		return own, err == nil, err
	}
	if c.damaged(p, info, there) {
		err := p.Objects.DeleteIf(ctx, info.Key, info.ETag)
		if errors.Is(err, objstore.ErrChanged) {
			err = nil
		}
		return published{}, false, err
	}
	zombie, err := c.RemoveAborted(ctx, p, info, store.Content{Slot: SlotOf(e), Digest: digest})
	if err != nil || zombie {
		return published{}, false, err
	}
	return published{foreign: true}, true, nil
}

// RemoveAborted removes an object, found in the slot of a content, if the content belongs to an aborted transaction's entry for that slot,
// and reports whether it does. A late write of such a transaction can land at any time (C10). Errors: those of the state and of the
// storage, as they are.
func (c *Completer) RemoveAborted(ctx context.Context, p place.Place, info objstore.Info, content store.Content) (bool, error) {
	var aborted []bool
	err := c.state.Store.View(ctx, func(r store.Reader) (err error) {
		aborted, err = r.Aborted([]store.Content{content})
		return err
	})
	if err != nil || !aborted[0] {
		return false, err
	}
	err = p.Objects.DeleteIf(ctx, info.Key, info.ETag)
	if err != nil && !errors.Is(err, objstore.ErrChanged) {
		return true, err
	}
	c.counters.Zombies.Add(1)
	c.Notify(ctx, Event{Kind: EventZombie, Version: content.Slot.Number, Detail: info.Key})
	return true, nil
}

// errStagedGone says that a staged manifest is gone, or no longer holds what was reserved.
var errStagedGone = errors.New("the staged manifest is gone")

// putOnce puts the bytes of an entry under its final name: those at hand, or else what is staged. errStagedGone; objstore.ErrExists.
func (c *Completer) putOnce(ctx context.Context, p place.Place, e lance.Entry, data []byte) (published, error) {
	final := p.Final(e.Branch, e.Version, e.Scheme)
	if data != nil {
		return c.put(ctx, p, final, data)
	}
	staged, err := c.readStaged(ctx, p, e)
	if err != nil {
		return published{}, err
	}
	defer staged.Free()
	return c.put(ctx, p, final, staged.Data)
}

// readStaged reads the bytes of an entry from its staged manifest. errStagedGone.
func (c *Completer) readStaged(ctx context.Context, p place.Place, e lance.Entry) (place.Held, error) {
	staged, err := c.places.Read(ctx, p, p.Staged(e.Branch, e.Staged), e.Size)
	if errors.Is(err, objstore.ErrNotFound) {
		return place.Held{}, errStagedGone
	}
	if err != nil {
		return place.Held{}, err
	}
	if number, _, final := lance.ParseManifestName(e.Staged); final && number != e.Version {
		staged.Data, err = Attach(ctx, p, Attachment{Data: staged.Data, Branch: e.Branch, Version: e.Version, After: e.After, Between: e.Between, Limit: c.places.MaxManifest()})
	}
	if err == nil && lance.HexDigest(sha256.Sum256(staged.Data)) == e.Digest {
		return staged, nil
	}
	staged.Free()
	var outage *api.Error
	if errors.As(err, &outage) {
		return place.Held{}, err
	}
	return place.Held{}, errStagedGone
}

// SlotOf returns the slot of the version that an entry makes.
func SlotOf(e lance.Entry) lance.Slot {
	return lance.Slot{Chain: lance.Chain{Table: e.Table, Branch: e.Branch}, Number: e.Version}
}

// Republish puts a committed version's manifest back under its final name from its staged copy. One that is there already is left alone.
// The error says that the copy is gone or another, or is the storage's.
func (c *Completer) Republish(ctx context.Context, p place.Place, row lance.Version) error {
	e := lance.Entry{Branch: row.Chain.Branch, Version: row.Number, Staged: row.Staged, Digest: lance.HexDigest(row.Digest), Size: row.Size}
	staged, err := c.readStaged(ctx, p, e)
	if errors.Is(err, errStagedGone) {
		return fmt.Errorf("the staged manifest %s is gone, or is not what was committed", row.Staged)
	}
	if err != nil {
		return err
	}
	defer staged.Free()
	_, err = p.Objects.PutIfAbsent(ctx, p.Final(row.Chain.Branch, row.Number, row.Scheme), staged.Data)
	return ignoreExists(err)
}

func ignoreExists(err error) error {
	if errors.Is(err, objstore.ErrExists) {
		return nil
	}
	return err
}
