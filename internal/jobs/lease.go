package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/lancerest/lancerest/internal/store"
)

// leased is a job that a runner has, until held.
type leased struct {
	job  store.Job
	held time.Time
	// asked is until when a renewal would hold it of which it is not known whether it took effect.
	asked time.Time
}

// begin returns the context that a job runs in, and what is to be called when it has ended; held stands still from then on.
func (r *Runner) begin(ctx context.Context, l *leased) (context.Context, func()) {
	if r.opts.Watch == 0 {
		return context.WithTimeout(ctx, r.opts.Lease)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		r.watch(ctx, l, cancel, ended)
	}()
	return ctx, func() {
		close(ended)
		<-done
		cancel(nil)
	}
}

// watch looks after a job under way until it has ended: it renews the lease, and cancels the job once it is not the runner's any more. A state
// that cannot be reached costs the job only when its lease is over: until then nobody else takes it.
func (r *Runner) watch(ctx context.Context, l *leased, cancel context.CancelCauseFunc, ended <-chan struct{}) {
	ticker := time.NewTicker(r.opts.Watch)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		ours, err := r.hold(ctx, l)
		if err != nil {
			ours = r.opts.Now().Before(l.held)
		}
		if !ours {
			cancel(ErrLost)
			return
		}
	}
}

// hold reports whether a job still is the runner's, and renews its lease once a third of it is over.
func (r *Runner) hold(ctx context.Context, l *leased) (bool, error) {
	var now store.Job
	err := r.opts.Store.View(ctx, func(rd store.Reader) (err error) {
		now, err = rd.Job(l.job.ID)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if now.RunAt.Equal(l.asked) {
		l.held = l.asked
	}
	if !now.RunAt.Equal(l.held) {
		return false, nil
	}
	if l.held.Sub(r.opts.Now()) > r.opts.Lease*2/3 {
		return true, nil
	}
	var ours bool
	err = r.opts.Store.Update(ctx, func(tx store.Tx) (err error) {
		l.asked = tx.Now().Add(r.opts.Lease)
		ours, err = tx.HoldJob(l.job.ID, l.held, l.asked)
		return err
	})
	if err == nil && ours {
		l.held = l.asked
	}
	return ours, err
}
