// Package jobs runs durable work: it leases due jobs from the state, runs them, and retries those that fail with growing pauses. It knows
// no job by name. Any number of servers may run it on one state, each for the kinds that it can do: a lease keeps others away, and a
// server that dies lets go of its jobs when the lease ends.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lancerest/lancerest/internal/store"
)

// Options say what a runner works with. Store, Kinds, Run and Logger are required.
type Options struct {
	Store store.Store
	// Kinds are the kinds of jobs that it takes, 1 to store.JobKinds of them. All others are left alone.
	Kinds []string
	// Run performs one job; it must be idempotent. An error means: try again later. Again is no failure, but says when to run it next.
	Run    func(context.Context, store.Job) error
	Logger *slog.Logger
	// Interval is how long the runner rests when nothing is due and nobody wakes it (default 15 s).
	Interval time.Duration
	// Lease is how long a job stays with a runner (default 5 minutes).
	Lease time.Duration
	// Watch is how often a job under way is looked at. Where it is 0, a job may take as long as its lease. Where it is not, the lease is renewed
	// for as long as the job runs, and its context ends, with the cause ErrLost, when the job was deleted or somebody else has it.
	Watch time.Duration
	// Parallel is how many jobs run at a time (default 2).
	Parallel int
	// Now is the clock (default time.Now).
	Now func() time.Time
}

// ErrLost is why a job's context ends where the job is not the runner's any more. Nothing that Run returns then has an effect.
var ErrLost = errors.New("the job was taken back")

// Again is what Run returns for a job that is to run once more, so long after: that is no failure.
type Again struct{ After time.Duration }

// Error implements error.
func (a Again) Error() string { return fmt.Sprintf("to run again after %s", a.After) }

// Runner runs jobs until its context ends. Create it with New.
type Runner struct {
	opts  Options
	wake  chan struct{}
	slots chan struct{} // holds a value for each job that runs
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
	return &Runner{opts: opts, wake: make(chan struct{}, 1), slots: make(chan struct{}, opts.Parallel)}
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
	var running sync.WaitGroup
	defer running.Wait()
	for ctx.Err() == nil {
		leased, err := r.lease(ctx)
		if err != nil && ctx.Err() == nil {
			r.opts.Logger.LogAttrs(ctx, slog.LevelError, "jobs cannot be read", slog.String("error", err.Error()))
		}
		for _, l := range leased {
			r.slots <- struct{}{} // there is room: only this loop fills it
			running.Go(func() {
				r.one(ctx, l)
				<-r.slots
				r.Wake() // there may be more than there was room for
			})
		}
		if len(leased) > 0 {
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

// lease takes what is due, as many jobs as there is room for.
func (r *Runner) lease(ctx context.Context) ([]*leased, error) {
	room := cap(r.slots) - len(r.slots)
	if room == 0 {
		return nil, nil
	}
	due, err := r.due(ctx)
	if err != nil || !due {
		return nil, err
	}
	var taken []*leased
	err = r.opts.Store.Update(ctx, func(tx store.Tx) error {
		taken = nil
		jobs, err := tx.LeaseJobs(r.opts.Kinds, room, r.opts.Lease)
		for _, job := range jobs {
			taken = append(taken, &leased{job: job, held: tx.Now().Add(r.opts.Lease)})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}

// due looks without a write, so that an idle server does not touch its disk.
func (r *Runner) due(ctx context.Context) (due bool, err error) {
	err = r.opts.Store.View(ctx, func(rd store.Reader) (err error) {
		due, err = rd.JobsDue(r.opts.Kinds, r.opts.Now())
		return err
	})
	return due, err
}

// one runs a job and removes it, or sets it back with the error on record.
func (r *Runner) one(ctx context.Context, l *leased) {
	job := l.job
	ctx = store.WithOperation(ctx, "job "+job.Kind)
	runCtx, end := r.begin(ctx, l)
	failed := r.run(runCtx, job)
	end()
	stopped := ctx.Err() != nil // asked once: what is counted as a failure is also logged as one
	if stopped && failed != nil {
		failed = Again{} // a server that stops is no failure of the job, and the next one may begin with it at once
	}
	err := r.opts.Store.Update(context.WithoutCancel(ctx), func(tx store.Tx) error { return settle(tx, l, failed) })
	if errors.As(failed, new(Again)) || errors.Is(context.Cause(runCtx), ErrLost) {
		failed = nil
	}
	for _, e := range []error{failed, err} {
		if e != nil && !stopped {
			r.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "job failed and will be tried again",
				slog.String("kind", job.Kind), slog.Int64("job", int64(job.ID)), slog.Int("attempt", job.Attempts+1), slog.String("error", e.Error()))
		}
	}
}

// settle does with a job what its run came to, if it still is the runner's.
func settle(tx store.Tx, l *leased, failed error) error {
	var again Again
	wants := errors.As(failed, &again)
	ours, err := tx.HoldJob(l.job.ID, l.held, tx.Now().Add(again.After))
	switch {
	case err != nil || !ours || wants:
		return err
	case failed == nil:
		return tx.DeleteJob(l.job.ID)
	}
	return tx.RetryJob(l.job.ID, failed.Error(), tx.Now().Add(pause(l.job.Attempts)))
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
