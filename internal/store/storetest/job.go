package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

func (s suite) jobs(t *testing.T) {
	s.run(t, "Jobs/of a kind, in order of ids, every limit", func(h *harness) {
		var want []store.Job
		for range 5 {
			want = append(want, h.job("purge", time.UnixMilli(1_750_000_000_000).UTC()))
			h.job("other", time.Time{})
		}
		slices.SortFunc(want, func(a, b store.Job) int { return cmp.Compare(a.ID, b.ID) })
		for limit := 1; limit <= len(want)+1; limit++ {
			var got []store.Job
			var after lance.ObjectID
			for more := true; more; {
				list := read(h, func(r store.Reader) ([]store.Job, error) { return r.Jobs("purge", after, limit) })
				got = append(got, list...)
				if more = len(list) == limit; more {
					after = list[limit-1].ID
				}
			}
			h.equal(fmt.Sprintf("limit %d", limit), got, want)
		}
	})
	s.runAt(t, "LeaseJobs/due ones, oldest first", func(h *harness, now *time.Time) {
		begin := *now
		late := h.job("a", begin.Add(-time.Second))
		early := h.job("b", begin.Add(-time.Minute))
		soon := h.job("c", begin.Add(time.Second))
		always := h.job("d", time.Time{})
		h.equal("limit", jobIDs(h.lease(2, time.Minute)), []lance.ObjectID{always.ID, early.ID})
		h.equal("the rest", jobIDs(h.lease(10, time.Minute)), []lance.ObjectID{late.ID})
		h.equal("leased", jobIDs(h.lease(10, time.Minute)), []lance.ObjectID(nil))
		*now = begin.Add(time.Second)
		h.equal("at its time", jobIDs(h.lease(10, time.Minute)), []lance.ObjectID{soon.ID})
		*now = begin.Add(time.Minute)
		h.equal("after the lease", jobIDs(h.lease(10, time.Hour)), slices.Sorted(slices.Values([]lance.ObjectID{late.ID, early.ID, always.ID})))
	})
	s.runAt(t, "JobsDue/at RunAt and later", func(h *harness, now *time.Time) {
		due := func(at time.Time) bool {
			return read(h, func(r store.Reader) (bool, error) { return r.JobsDue(letters(), at) })
		}
		h.equal("without jobs", due(now.Add(time.Hour)), false)
		h.job("a", *now)
		h.equal("before", due(now.Add(-time.Millisecond)), false)
		h.equal("at", due(*now), true)
		h.equal("later", due(now.Add(time.Hour)), true)
		h.lease(1, time.Minute)
		h.equal("leased", due(*now), false)
	})
	s.runAt(t, "RetryJob/counts, keeps the error, waits", func(h *harness, now *time.Time) {
		job := h.job("a", *now)
		h.lease(1, time.Minute)
		again := now.Add(time.Second)
		h.update(func(tx store.Tx) error { return tx.RetryJob(job.ID, "first", *now) })
		h.update(func(tx store.Tx) error { return tx.RetryJob(job.ID, "no é", again) })
		h.equal("before", jobIDs(h.lease(1, time.Minute)), []lance.ObjectID(nil))
		job.Attempts, job.LastErr, job.RunAt = 2, "no é", again
		h.equal("job", read(h, func(r store.Reader) ([]store.Job, error) { return r.Jobs("a", 0, 2) }), []store.Job{job})
		*now = again
		h.equal("at its time", jobIDs(h.lease(1, time.Minute)), []lance.ObjectID{job.ID})
	})
	s.runAt(t, "LeaseJobs/JobsDue/of the kinds that are named alone", func(h *harness, now *time.Time) {
		a, b := h.job("a", *now), h.job("b", *now)
		h.job("", *now)
		ask := func(kinds ...string) (due bool, leased []store.Job) {
			due = read(h, func(r store.Reader) (bool, error) { return r.JobsDue(kinds, *now) })
			return due, wrote(h, func(tx store.Tx) ([]store.Job, error) { return tx.LeaseJobs(kinds, 9, time.Minute) })
		}
		due, leased := ask("c", "A")
		h.equal("others are due", due, false)
		h.equal("others", jobIDs(leased), []lance.ObjectID(nil))
		due, leased = ask("c", "b")
		h.equal("one is due", due, true)
		h.equal("one", jobIDs(leased), []lance.ObjectID{b.ID})
		_, leased = ask("a", "b", "c", "d", "e", "f", "g", "h")
		h.equal("as many as may be named", jobIDs(leased), []lance.ObjectID{a.ID})
	})
	s.runAt(t, "HoldJob/by who holds it alone", func(h *harness, now *time.Time) {
		job := h.job("a", *now)
		hold := func(held, until time.Time) bool {
			return wrote(h, func(tx store.Tx) (bool, error) { return tx.HoldJob(job.ID, held, until) })
		}
		until, later := now.Add(time.Minute), now.Add(time.Hour)
		h.lease(1, time.Minute)
		h.equal("with another time", hold(later, later), false)
		h.equal("with its time", hold(until, later), true)
		job.RunAt = later
		h.equal("job", read(h, func(r store.Reader) (store.Job, error) { return r.Job(job.ID) }), job)
		h.equal("with the time before", hold(until, until), false)
		h.update(func(tx store.Tx) error { return tx.DeleteJob(job.ID) })
		h.equal("once it is gone", hold(later, later), false)
		h.view(func(r store.Reader) error {
			_, err := r.Job(job.ID)
			h.equal("a job that is gone", errors.Is(err, store.ErrNotFound), true)
			return nil
		})
	})
	s.run(t, "RetryJob/DeleteJob/a job that is gone is left alone", func(h *harness) {
		job, kept := h.job("a", time.Time{}), h.job("a", time.Time{})
		for range 2 {
			h.update(func(tx store.Tx) error { return tx.DeleteJob(job.ID) })
			h.update(func(tx store.Tx) error { return tx.RetryJob(job.ID, "x", time.Time{}) })
		}
		h.equal("jobs", read(h, func(r store.Reader) ([]store.Job, error) { return r.Jobs("a", 0, 9) }), []store.Job{kept})
	})
}

// letters are the kinds that jobs of these tests are of.
func letters() []string { return []string{"a", "b", "c", "d"} }

// runAt runs a subtest on a fresh store whose clock the subtest sets.
func (s suite) runAt(t *testing.T, name string, fn func(h *harness, now *time.Time)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		now := time.UnixMilli(1_750_000_000_000).UTC()
		o := s.options
		o.Now = func() time.Time { return now }
		fn(s.harness(t, o), &now)
	})
}

// job adds a job and returns it.
func (h *harness) job(kind string, runAt time.Time) store.Job {
	h.Helper()
	return wrote(h, func(tx store.Tx) (store.Job, error) {
		job := store.Job{ID: tx.NewID(), Kind: kind, Payload: `{"table":7}`, RunAt: runAt}
		return job, tx.InsertJob(job)
	})
}

func (h *harness) lease(limit int, lease time.Duration) []store.Job {
	h.Helper()
	return wrote(h, func(tx store.Tx) ([]store.Job, error) { return tx.LeaseJobs(letters(), limit, lease) })
}

func jobIDs(jobs []store.Job) []lance.ObjectID {
	var ids []lance.ObjectID
	for _, job := range jobs {
		ids = append(ids, job.ID)
	}
	return ids
}
