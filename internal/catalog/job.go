package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/store"
)

// The kinds of jobs that commits queue (C12). All are idempotent.
const (
	// JobPurge removes the directory of a dropped table, then its rows.
	JobPurge = "purge_table"
	// JobForget removes the rows of a deregistered table and leaves its files alone.
	JobForget = "forget_table"
	// JobDeleteManifests removes the manifests of versions that were deleted by request.
	JobDeleteManifests = "delete_manifests"
	// JobDropDetached removes the detached versions that a transaction attached, some time after: what they hold has numbers of their own.
	JobDropDetached = "drop_detached"
	// JobCleanAborted removes what an aborted transaction had published (C10).
	JobCleanAborted = "clean_aborted"
)

// JobKinds returns the kinds of jobs that RunJob performs.
func JobKinds() []string {
	return []string{JobPurge, JobForget, JobDeleteManifests, JobDropDetached, JobCleanAborted}
}

// abortGrace is how long after an abort its objects are looked for once more: by then writes that were under way have landed.
const abortGrace = 30 * time.Second

// forgetRows is how many rows one database transaction of a job removes.
const forgetRows = 1000

type purgePayload struct {
	Table    lance.ObjectID `json:"table"`
	Location string         `json:"location"`
}

type forgetPayload struct {
	Table lance.ObjectID `json:"table"`
}

type manifestsPayload struct {
	Table    lance.ObjectID   `json:"table"`
	Location string           `json:"location"`
	Branch   lance.Branch     `json:"branch,omitempty"`
	Versions []deletedVersion `json:"versions"`
}

// deletedVersion is a version whose manifest is to be removed, if it still is this one.
type deletedVersion struct {
	Number lance.VersionNumber `json:"number"`
	Scheme lance.NamingScheme  `json:"scheme"`
	Digest string              `json:"digest"`
}

// RunJob performs one job. An error means that it is to be tried again later.
func (c *Catalog) RunJob(ctx context.Context, job store.Job) error {
	switch job.Kind {
	case JobPurge:
		return runJob(ctx, job, c.purge)
	case JobForget:
		return runJob(ctx, job, func(ctx context.Context, p forgetPayload) error { return c.forget(ctx, p.Table) })
	case JobDeleteManifests:
		return runJob(ctx, job, c.deleteManifests)
	case JobDropDetached:
		return c.dropDetached(ctx, lance.TransactionID(job.Payload))
	case JobCleanAborted:
		return c.cleanAborted(ctx, lance.TransactionID(job.Payload))
	}
	return fmt.Errorf("job %d is of unknown kind %q", job.ID, job.Kind)
}

func runJob[P any](ctx context.Context, job store.Job, run func(context.Context, P) error) error {
	var p P
	if err := json.Unmarshal([]byte(job.Payload), &p); err != nil {
		return fmt.Errorf("payload of job %d (%s): %w", job.ID, job.Kind, err)
	}
	return run(ctx, p)
}

// purge removes a dropped table's directory, and with its rows the claim on its location. Until then the state refuses every
// overlapping location, so that nothing of another table can lie below it (case E9). A large one goes in slices of time, between which other
// jobs have their turn.
func (c *Catalog) purge(ctx context.Context, p purgePayload) error {
	var t lance.Table
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		t, err = r.TableByID(p.Table)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if t.State != lance.TableDropped || t.Location != p.Location {
		return fmt.Errorf("table %d is not a dropped one at %s", p.Table, p.Location)
	}
	at, err := c.provenPlace(ctx, p.Location)
	if err != nil {
		return err
	}
	if err := c.checkPurge(ctx, at); err != nil {
		return err
	}
	slice, done := context.WithTimeout(ctx, c.opts.PurgeSlice)
	defer done()
	_, err = at.objects.DeleteTree(slice, at.dir+"/")
	if err != nil && slice.Err() != nil && ctx.Err() == nil {
		return c.store.Update(ctx, func(tx store.Tx) error { return insertJob(tx, JobPurge, p) })
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", p.Location, err)
	}
	return c.forget(ctx, p.Table)
}

func (c *Catalog) forget(ctx context.Context, id lance.ObjectID) error {
	for done := false; !done; {
		err := c.store.Update(ctx, func(tx store.Tx) (err error) {
			done, err = tx.ForgetTable(id, forgetRows)
			return err
		})
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteManifests removes the manifests of deleted versions. By now another may stand in such a place, of a branch or a table that
// was made anew there: only the very content that was deleted goes. A version to which a tag or a branch was made to refer just as it was
// deleted comes back instead.
func (c *Catalog) deleteManifests(ctx context.Context, p manifestsPayload) error {
	at, err := c.provenPlace(ctx, p.Location)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(manifestsAtOnce)
	for _, v := range p.Versions {
		g.Go(func() error { return c.deleteManifest(ctx, at, p, v) })
	}
	return g.Wait()
}

// manifestsAtOnce is how many manifests one job removes at a time.
const manifestsAtOnce = 16

func (c *Catalog) deleteManifest(ctx context.Context, at place, p manifestsPayload, v deletedVersion) error {
	names, err := c.referred(ctx, lance.Table{Location: p.Location}, p.Branch, [][2]lance.VersionNumber{{v.Number, v.Number}})
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return c.restore(ctx, lance.Slot{Chain: lance.Chain{Table: p.Table, Branch: p.Branch}, Number: v.Number})
	}
	return c.removeContent(ctx, at, at.final(p.Branch, v.Number, v.Scheme), v.Digest)
}

// restore makes a deleted or pruned version a committed one again.
func (c *Catalog) restore(ctx context.Context, slot lance.Slot) error {
	return c.store.Update(ctx, func(tx store.Tx) error {
		_, err := tx.RestoreVersion(slot)
		return err
	})
}

// removeContent removes an object if it holds the given content.
func (c *Catalog) removeContent(ctx context.Context, at place, key, digest string) error {
	found, err := c.read(ctx, at, key, 0)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", key, err)
	}
	defer found.free()
	if hexDigest(sha256.Sum256(found.data)) != digest {
		return nil
	}
	if err := at.objects.DeleteIf(ctx, key, found.info.ETag); err != nil && !errors.Is(err, objstore.ErrChanged) {
		return fmt.Errorf("remove %s: %w", key, err)
	}
	return nil
}

// detachedKeep is how long a detached version outlives its being attached, for those who still read it by its number (C13).
const detachedKeep = time.Hour

// dropDetached removes the manifests and the rows of the detached versions that a transaction attached.
func (c *Catalog) dropDetached(ctx context.Context, id lance.TransactionID) error {
	t, err := c.recorded(ctx, id)
	if err != nil {
		return err
	}
	for _, e := range t.Entries {
		number, attached := detachedOf(e)
		if !attached {
			continue
		}
		at, err := c.provenPlace(ctx, e.Location)
		if err != nil {
			return err
		}
		if err := at.objects.Delete(ctx, at.final(e.Branch, number, lance.SchemeV2)); err != nil {
			return fmt.Errorf("remove detached version %d of table %q: %w", number, show(e.Path), err)
		}
		err = c.store.Update(ctx, func(tx store.Tx) error {
			_, err := tx.MarkVersions(slotOf(e).Chain, number, number, lance.VersionDeleted, 1)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// detachedOf returns the number of the detached version that an entry attaches.
func detachedOf(e lance.Entry) (lance.VersionNumber, bool) {
	number, _, final := lance.ParseManifestName(e.Staged)
	return number, e.Kind == lance.EntryCreateVersion && final && number.Detached() && number != e.Version
}

func (c *Catalog) cleanAborted(ctx context.Context, id lance.TransactionID) error {
	t, err := c.recorded(ctx, id)
	if err != nil {
		return err
	}
	for _, e := range t.Entries {
		if _, err := c.provenPlace(ctx, e.Location); err != nil {
			return err
		}
	}
	if err := c.removePublished(ctx, &t); err != nil {
		return err
	}
	return c.mendLate(ctx, &t)
}

// recorded returns the transaction that a job is about, one without entries if its record is gone.
func (c *Catalog) recorded(ctx context.Context, id lance.TransactionID) (lance.Transaction, error) {
	var t lance.Transaction
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		t, err = r.Transaction(id)
		return err
	})
	return t, ignoreNotFound(err)
}

// provenPlace returns the place of a location whose storage is there: a job that found nothing to remove in one that is away would
// count as done and leave everything behind.
func (c *Catalog) provenPlace(ctx context.Context, location string) (place, error) {
	p, err := c.place(location)
	if err != nil {
		return p, err
	}
	return p, p.root.prove(ctx)
}
