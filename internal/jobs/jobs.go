// Package jobs runs the work that must follow commits: it leases due jobs from the state, runs them, and retries those that fail
// with growing pauses. It knows no job by name. Any number of servers may run it on one state: a lease keeps others away, and a
// server that dies lets go of its jobs when the lease ends.
package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/internal/store"
)

// Options say what a runner works with. Store, Run and Logger are required.
type Options struct {
	Store store.Store
	// Run performs one job; it must be idempotent. An error means: try again later.
	Run    func(context.Context, store.Job) error
	Logger *slog.Logger
	// Interval is how long the runner rests when nothing is due and nobody wakes it (default 15 s).
	Interval time.Duration
	// Lease is how long a job stays with a runner (default 5 minutes).
	Lease time.Duration
	// Parallel is how many jobs run at a time (default 2).
	Parallel int
	// Now is the clock (default time.Now).
	Now func() time.Time
}

// Runner runs jobs until its context ends. Create it with New.
type Runner struct {
	opts Options
	wake chan struct{}
}

// New returns a runner that does nothing yet.
func New(opts Options) *Runner {
	if opts.Interval == 0 {
		opts.Interval = 15 * time.Second
	}
	if opts.Lease == 0 {
		opts.Lease = 5 * time.Minute
	}
	if opts.Parallel == 0 {
		opts.Parallel = 2
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Runner{opts: opts, wake: make(chan struct{}, 1)}
}

// Wake makes the runner look for due jobs now. It never blocks.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run runs jobs until ctx ends, and returns when those under way have ended.
func (r *Runner) Run(ctx context.Context) {
	ctx = store.WithOperation(ctx, "jobs")
	for ctx.Err() == nil {
		n, err := r.round(ctx)
		if err != nil && ctx.Err() == nil {
			r.opts.Logger.LogAttrs(ctx, slog.LevelError, "jobs cannot be read", slog.String("error", err.Error()))
		}
		if n > 0 {
			continue
		}
		timer := time.NewTimer(r.opts.Interval)
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// round leases what is due and runs it, and returns how many jobs that were.
func (r *Runner) round(ctx context.Context) (int, error) {
	due, err := r.due(ctx)
	if err != nil || !due {
		return 0, err
	}
	var jobs []store.Job
	err = r.opts.Store.Update(ctx, func(tx store.Tx) (err error) {
		jobs, err = tx.LeaseJobs(r.opts.Parallel, r.opts.Lease)
		return err
	})
	if err != nil {
		return 0, err
	}
	var g errgroup.Group
	for _, job := range jobs {
		g.Go(func() error {
			r.one(ctx, job)
			return nil
		})
	}
	return len(jobs), g.Wait()
}

// due looks without a write, so that an idle server does not touch its disk.
func (r *Runner) due(ctx context.Context) (due bool, err error) {
	err = r.opts.Store.View(ctx, func(rd store.Reader) (err error) {
		due, err = rd.JobsDue(r.opts.Now())
		return err
	})
	return due, err
}

// one runs a job and removes it, or sets it back with the error on record.
func (r *Runner) one(ctx context.Context, job store.Job) {
	ctx = store.WithOperation(ctx, "job "+job.Kind)
	runCtx, cancel := context.WithTimeout(ctx, r.opts.Lease)
	defer cancel()
	failed := r.run(runCtx, job)
	stopped := ctx.Err() != nil // asked once: what is counted as a failure is also logged as one
	err := r.opts.Store.Update(context.WithoutCancel(ctx), func(tx store.Tx) error {
		if failed == nil {
			return tx.DeleteJob(job.ID)
		}
		if stopped {
			// The server stops: that is no failure of the job, and the next server may begin with it at once.
			if err := tx.DeleteJob(job.ID); err != nil {
				return err
			}
			job.RunAt = tx.Now()
			return tx.InsertJob(job)
		}
		return tx.RetryJob(job.ID, failed.Error(), tx.Now().Add(pause(job.Attempts)))
	})
	for _, e := range []error{failed, err} {
		if e != nil && !stopped {
			r.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "job failed and will be tried again",
				slog.String("kind", job.Kind), slog.Int64("job", int64(job.ID)), slog.Int("attempt", job.Attempts+1), slog.String("error", e.Error()))
		}
	}
}

// run runs a job. One that panics has failed, and takes nobody with it.
func (r *Runner) run(ctx context.Context, job store.Job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return r.opts.Run(ctx, job)
}

// pause is how long to wait after an attempt: 1 s, then twice as long each time, up to 10 minutes.
func pause(attempts int) time.Duration {
	return min(time.Second<<min(attempts, 20), 10*time.Minute)
}
