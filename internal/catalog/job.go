package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/internal/commit/finish"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/store"
)

// The kinds of jobs that a catalog queues (C12; package finish says more). All are idempotent.
const (
	JobPurge           = finish.JobPurge
	JobForget          = finish.JobForget
	JobDeleteManifests = finish.JobDeleteManifests
	JobDropDetached    = finish.JobDropDetached
	JobCleanAborted    = finish.JobCleanAborted
)

// backlogMax is up to what number the backlog is counted.
const backlogMax = 10_000

// Backlog counts transactions that are pending and jobs that are waiting, each up to 10,000.
func (c *Catalog) Backlog(ctx context.Context) (pending, jobs int, err error) {
	ctx = store.WithOperation(ctx, "backlog")
	err = c.state.Store.View(ctx, func(r store.Reader) error {
		ids, err := r.PendingTransactions(time.Now(), backlogMax)
		if err != nil {
			return err
		}
		pending, jobs = len(ids), 0
		for _, kind := range JobKinds() {
			some, err := r.Jobs(kind, 0, backlogMax)
			if err != nil {
				return err
			}
			jobs += len(some)
		}
		return nil
	})
	return pending, jobs, err
}

// JobKinds returns the kinds of jobs that RunJob performs.
func JobKinds() []string {
	return []string{JobPurge, JobForget, JobDeleteManifests, JobDropDetached, JobCleanAborted}
}

// forgetRows is how many rows one database transaction of a job removes.
const forgetRows = 1000

// RunJob performs one job. An error means that it is to be tried again later.
func (c *Catalog) RunJob(ctx context.Context, job store.Job) error {
	switch job.Kind {
	case JobPurge:
		return runJob(ctx, job, c.purge)
	case JobForget:
		return runJob(ctx, job, func(ctx context.Context, p finish.ForgetPayload) error { return c.forget(ctx, p.Table) })
	case JobDeleteManifests:
		return runJob(ctx, job, c.deleteManifests)
	case JobDropDetached:
		return c.chains.DropDetached(ctx, lance.TransactionID(job.Payload))
	case JobCleanAborted:
		return c.chains.CleanAborted(ctx, lance.TransactionID(job.Payload))
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
func (c *Catalog) purge(ctx context.Context, p finish.PurgePayload) error {
	var t lance.Table
	err := c.state.Store.View(ctx, func(r store.Reader) (err error) {
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
	at, err := c.places.ProvenAt(ctx, p.Location)
	if err != nil {
		return err
	}
	if err := c.places.CheckPurge(ctx, at); err != nil {
		return err
	}
	slice, done := context.WithTimeout(ctx, c.opts.PurgeSlice)
	defer done()
	_, err = at.Objects.DeleteTree(slice, at.Dir+"/")
	if err != nil && slice.Err() != nil && ctx.Err() == nil {
		return c.state.Store.Update(ctx, func(tx store.Tx) error { return finish.InsertJob(tx, JobPurge, p) })
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", p.Location, err)
	}
	return c.forget(ctx, p.Table)
}

func (c *Catalog) forget(ctx context.Context, id lance.ObjectID) error {
	for done := false; !done; {
		err := c.state.Store.Update(ctx, func(tx store.Tx) (err error) {
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
func (c *Catalog) deleteManifests(ctx context.Context, p finish.ManifestsPayload) error {
	at, err := c.places.ProvenAt(ctx, p.Location)
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

func (c *Catalog) deleteManifest(ctx context.Context, at place.Place, p finish.ManifestsPayload, v finish.DeletedVersion) error {
	names, err := c.places.Referred(ctx, lance.Table{Location: p.Location}, p.Branch, [][2]lance.VersionNumber{{v.Number, v.Number}})
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return c.chains.Restore(ctx, lance.Slot{Chain: lance.Chain{Table: p.Table, Branch: p.Branch}, Number: v.Number})
	}
	return c.removeContent(ctx, at, at.Final(p.Branch, v.Number, v.Scheme), v.Digest)
}

// removeContent removes an object if it holds the given content.
func (c *Catalog) removeContent(ctx context.Context, at place.Place, key, digest string) error {
	found, err := c.places.Read(ctx, at, key, 0)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", key, err)
	}
	defer found.Free()
	if lance.HexDigest(sha256.Sum256(found.Data)) != digest {
		return nil
	}
	if err := at.Objects.DeleteIf(ctx, key, found.Info.ETag); err != nil && !errors.Is(err, objstore.ErrChanged) {
		return fmt.Errorf("remove %s: %w", key, err)
	}
	return nil
}
