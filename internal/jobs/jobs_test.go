package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/jobs"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// bench is a state with a clock that stands still until a test moves it, for runners to share.
type bench struct {
	state *sqlstore.SQLite
	clock atomic.Int64 // in milliseconds
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{}
	b.clock.Store(1_795_959_467_000)
	var err error
	b.state, err = sqlstore.OpenSQLite(context.Background(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "catalog.db"), Now: b.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.state.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) now() time.Time { return time.UnixMilli(b.clock.Load()).UTC() }

func (b *bench) pass(d time.Duration) { b.clock.Add(d.Milliseconds()) }

// start runs a runner until the test ends or the returned function is called, which waits for it. It rests for an hour when nothing is
// due, so that whatever happens earlier was not found by looking from time to time.
func (b *bench) start(t *testing.T, o jobs.Options) (*jobs.Runner, func()) {
	t.Helper()
	if o.Store == nil {
		o.Store = b.state
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Interval == 0 {
		o.Interval = time.Hour
	}
	o.Kinds, o.Now = []string{"kind"}, b.now
	r := jobs.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	stop := func() {
		cancel()
		within(t, "the runner's end", ended)
	}
	t.Cleanup(stop)
	return r, stop
}

// add adds jobs with the payloads, due now.
func (b *bench) add(t *testing.T, payloads ...string) {
	t.Helper()
	err := b.state.Update(context.Background(), func(tx store.Tx) error {
		for _, p := range payloads {
			if err := tx.InsertJob(store.Job{ID: tx.NewID(), Kind: "kind", Payload: p, RunAt: tx.Now()}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// left returns the jobs that are there.
func (b *bench) left(t *testing.T) []store.Job {
	t.Helper()
	var all []store.Job
	err := b.state.View(context.Background(), func(r store.Reader) (err error) {
		all, err = r.Jobs("kind", 0, 1000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// until waits for the jobs that are left to be as wanted.
func (b *bench) until(t *testing.T, what string, as func([]store.Job) bool) []store.Job {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		if left := b.left(t); as(left) {
			return left
		}
	}
	t.Fatalf("%s: not within a minute; left are %+v", what, b.left(t))
	return nil
}

func none(left []store.Job) bool { return len(left) == 0 }

// within waits for a channel, and fails the test if it takes a minute: something waits that must not.
func within[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("%s: nothing happened within a minute", what)
		panic("unreachable")
	}
}

// TestRun: what is due when the runner starts is run once and is gone.
func TestRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(t, "1", "2", "3")
	ran := make(chan string, 10)
	_, stop := b.start(t, jobs.Options{Run: func(_ context.Context, job store.Job) error { ran <- job.Kind + job.Payload; return nil }})
	got := map[string]bool{within(t, "a job", ran): true, within(t, "a job", ran): true, within(t, "a job", ran): true}
	if diff := cmp.Diff(map[string]bool{"kind1": true, "kind2": true, "kind3": true}, got); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	b.until(t, "removal", none)
	stop()
	if len(ran) != 0 {
		t.Errorf("%d more runs", len(ran))
	}
}

// TestWake: a runner that rests looks at once when it is told to; telling it never blocks.
func TestWake(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ran := make(chan string, 10)
	r, _ := b.start(t, jobs.Options{Run: func(_ context.Context, job store.Job) error { ran <- job.Payload; return nil }})
	for i := range 5 {
		b.add(t, fmt.Sprint(i))
		for range 3 {
			r.Wake()
		}
		if got := within(t, "the job", ran); got != fmt.Sprint(i) {
			t.Errorf("ran %s, want %d", got, i)
		}
	}
}

// TestInterval: a runner that nobody wakes looks from time to time.
func TestInterval(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ran := make(chan string, 10)
	b.start(t, jobs.Options{Interval: time.Millisecond, Run: func(_ context.Context, job store.Job) error { ran <- job.Payload; return nil }})
	b.add(t, "late")
	within(t, "the job", ran)
}

// TestRetry: a job that fails is tried again, after pauses that double up to ten minutes, with its attempts and its last error on
// record; in the end it succeeds and is gone.
func TestRetry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(t, "x")
	const failures = 13
	var runs atomic.Int64
	r, _ := b.start(t, jobs.Options{Run: func(context.Context, store.Job) error {
		if n := runs.Add(1); n <= failures {
			return fmt.Errorf("failure %d", n)
		}
		return nil
	}})
	pause := time.Second
	for n := 1; n <= failures; n++ {
		left := b.until(t, fmt.Sprintf("failure %d", n), func(left []store.Job) bool { return len(left) == 1 && left[0].Attempts == n })
		if job := left[0]; job.LastErr != fmt.Sprintf("failure %d", n) || job.RunAt.Sub(b.now()) != pause {
			t.Errorf("after failure %d: error %q, again in %s; want a pause of %s", n, job.LastErr, job.RunAt.Sub(b.now()), pause)
		}
		// Before its time it is not due, however often the runner looks.
		b.pass(pause - time.Millisecond)
		if due := b.due(t); due {
			t.Errorf("due %s before its time", time.Millisecond)
		}
		b.pass(time.Millisecond)
		r.Wake()
		pause = min(2*pause, 10*time.Minute)
	}
	b.until(t, "success", none)
	if n := runs.Load(); n != failures+1 {
		t.Errorf("%d runs, want %d", n, failures+1)
	}
}

func (b *bench) due(t *testing.T) (due bool) {
	t.Helper()
	err := b.state.View(context.Background(), func(r store.Reader) (err error) {
		due, err = r.JobsDue([]string{"kind"}, b.now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return due
}

// TestLease: of runners on one state each job is run by one.
func TestLease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const count = 40
	var payloads []string
	for i := range count {
		payloads = append(payloads, fmt.Sprint(i))
	}
	b.add(t, payloads...)
	var mu sync.Mutex
	runs := map[string]int{}
	for range 3 {
		b.start(t, jobs.Options{Run: func(_ context.Context, job store.Job) error {
			mu.Lock()
			defer mu.Unlock()
			runs[job.Payload]++
			return nil
		}})
	}
	b.until(t, "all jobs", none)
	mu.Lock()
	defer mu.Unlock()
	if len(runs) != count {
		t.Errorf("%d jobs ran, want %d", len(runs), count)
	}
	for payload, n := range runs {
		if n != 1 {
			t.Errorf("job %s ran %d times", payload, n)
		}
	}
}

// TestLeaseOfTheDead: a job that a dead server had is left alone until its lease ends, and then run.
func TestLeaseOfTheDead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(t, "x")
	err := b.state.Update(context.Background(), func(tx store.Tx) error {
		leased, err := tx.LeaseJobs([]string{"kind"}, 1, time.Minute)
		if err == nil && len(leased) != 1 {
			return errors.New("nothing was leased")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan string, 10)
	r, _ := b.start(t, jobs.Options{Run: func(_ context.Context, job store.Job) error { ran <- job.Payload; return nil }})
	b.pass(time.Minute - time.Millisecond)
	b.add(t, "other") // when this one has run, the runner has looked
	r.Wake()
	if got := within(t, "the other", ran); got != "other" {
		t.Fatalf("ran %q within the lease of another server", got)
	}
	b.pass(time.Millisecond)
	r.Wake()
	if got := within(t, "the job", ran); got != "x" {
		t.Errorf("ran %q, want x", got)
	}
}

// TestParallel: as many jobs run at a time as it is told, and no more.
func TestParallel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(t, "1", "2", "3", "4", "5", "6", "7")
	running, most := 0, 0
	var mu sync.Mutex
	three := make(chan struct{})
	b.start(t, jobs.Options{Parallel: 3, Run: func(ctx context.Context, _ store.Job) error {
		mu.Lock()
		running++
		if most = max(most, running); running == 3 && most == 3 {
			select {
			case <-three:
			default:
				close(three)
			}
		}
		mu.Unlock()
		defer func() { mu.Lock(); running--; mu.Unlock() }()
		select {
		case <-three: // each waits until three were there at once
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	within(t, "three at once", three)
	b.until(t, "all jobs", none)
	mu.Lock()
	defer mu.Unlock()
	if most != 3 {
		t.Errorf("%d jobs ran at once, want 3", most)
	}
}

// TestStop: a runner that is told to stop lets its jobs know, waits for them, and leaves what they could not finish to the next, at once
// and without counting it as a failure.
func TestStop(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(t, "x")
	begun := make(chan struct{})
	var ended atomic.Bool
	_, stop := b.start(t, jobs.Options{Run: func(ctx context.Context, _ store.Job) error {
		close(begun)
		<-ctx.Done()
		ended.Store(true)
		return ctx.Err()
	}})
	within(t, "the job", begun)
	stop()
	if !ended.Load() {
		t.Error("the runner did not wait for its job")
	}
	if left := b.left(t); len(left) != 1 || left[0].Attempts != 0 || !b.due(t) {
		t.Errorf("left are %+v, want the job as it was, due", left)
	}
	ran := make(chan string, 1)
	b.start(t, jobs.Options{Run: func(_ context.Context, job store.Job) error { ran <- job.Payload; return nil }})
	if got := within(t, "the next server", ran); got != "x" {
		t.Errorf("ran %q", got)
	}
	b.until(t, "removal", none)
}

// TestStopAfterTheEffect: a job that succeeds while the runner stops is gone: it is not run again.
func TestStopAfterTheEffect(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(t, "x")
	begun := make(chan struct{})
	_, stop := b.start(t, jobs.Options{Run: func(ctx context.Context, _ store.Job) error {
		close(begun)
		<-ctx.Done()
		return nil
	}})
	within(t, "the job", begun)
	stop()
	if left := b.left(t); len(left) != 0 {
		t.Errorf("left are %+v, want none", left)
	}
}

// TestPanic: a job that panics has failed, is told of with where, and takes neither the runner nor the others with it.
func TestPanic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(t, "bad", "good")
	var log bytes.Buffer
	_, stop := b.start(t, jobs.Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Run: func(_ context.Context, job store.Job) error {
			if job.Payload == "bad" {
				panic("boom")
			}
			return nil
		},
	})
	left := b.until(t, "both jobs", func(left []store.Job) bool { return len(left) == 1 && left[0].Attempts == 1 })
	if left[0].Payload != "bad" || !strings.Contains(left[0].LastErr, "boom") {
		t.Errorf("left is %+v, want the bad one with its panic", left[0])
	}
	stop()
	for _, want := range []string{"level=WARN", "kind=kind", "attempt=1", "boom", "jobs_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log %q does not say %q", log.String(), want)
		}
	}
}

// TestDeadline: a job has as long as its lease, after which another server may take it.
func TestDeadline(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(t, "x")
	left := make(chan time.Duration, 1)
	b.start(t, jobs.Options{Lease: 20 * time.Minute, Run: func(ctx context.Context, _ store.Job) error {
		deadline, ok := ctx.Deadline()
		if !ok {
			return errors.New("no deadline")
		}
		left <- time.Until(deadline)
		return nil
	}})
	if d := within(t, "the job", left); d <= 19*time.Minute || d > 20*time.Minute {
		t.Errorf("the job has %s, want 20 minutes", d)
	}
}

// failing is a state that cannot be read for some time.
type failing struct {
	store.Store
	times atomic.Int64
}

func (f *failing) View(ctx context.Context, fn func(store.Reader) error) error {
	if f.times.Add(-1) >= 0 {
		return fmt.Errorf("view: %w", store.ErrUnavailable)
	}
	return f.Store.View(ctx, fn)
}

// TestStateAway: a runner goes on when the state cannot be read for a while, and says so.
func TestStateAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(t, "x")
	away := &failing{Store: b.state}
	away.times.Store(3)
	ran := make(chan string, 1)
	var log bytes.Buffer
	_, stop := b.start(t, jobs.Options{
		Store: away, Interval: time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Run: func(_ context.Context, job store.Job) error { ran <- job.Payload; return nil },
	})
	within(t, "the job", ran)
	stop()
	if n := strings.Count(log.String(), "level=ERROR"); n != 3 {
		t.Errorf("told %d times, want 3: %s", n, log.String())
	}
}

// TestKinds: a job of a kind that the runner is not told of is left as it is, for somebody who can do it.
func TestKinds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.state.Update(context.Background(), func(tx store.Tx) error {
		return tx.InsertJob(store.Job{ID: tx.NewID(), Kind: "other", Payload: "x", RunAt: tx.Now()})
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan string, 10)
	_, stop := b.start(t, jobs.Options{Run: func(_ context.Context, job store.Job) error { ran <- job.Kind; return nil }})
	b.add(t, "1")
	_, stopOther := b.start(t, jobs.Options{Run: func(_ context.Context, job store.Job) error { ran <- job.Kind; return nil }})
	if got := within(t, "a job", ran); got != "kind" {
		t.Errorf("ran a job of kind %q", got)
	}
	b.until(t, "removal", none)
	stop()
	stopOther()
	err = b.state.View(context.Background(), func(r store.Reader) error {
		left, err := r.Jobs("other", 0, 9)
		if err == nil && (len(left) != 1 || left[0].Attempts != 0 || !left[0].RunAt.Equal(b.now())) {
			t.Errorf("left: %+v, want the job as it was", left)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWatched: a job under way is renewed for as long as it takes, does not keep others from running, and ends when it is taken back.
func TestWatched(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(t, "long")
	began, ended := make(chan string, 10), make(chan error, 10)
	r, _ := b.start(t, jobs.Options{Lease: time.Minute, Watch: time.Millisecond, Run: func(ctx context.Context, job store.Job) error {
		began <- job.Payload
		if job.Payload != "long" {
			return nil
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return context.Cause(ctx)
	}})
	within(t, "the begin", began)
	for range 5 {
		b.pass(30 * time.Second)
		until := b.now().Add(time.Minute)
		b.until(t, "a renewal", func(left []store.Job) bool { return len(left) == 1 && left[0].RunAt.Equal(until) })
	}
	b.add(t, "short")
	r.Wake()
	if got := within(t, "another job", began); got != "short" {
		t.Errorf("%q began", got)
	}
	b.until(t, "the end of the short one", func(left []store.Job) bool { return len(left) == 1 })
	select {
	case err := <-ended:
		t.Fatalf("the job ended: %v", err)
	default:
	}
	err := b.state.Update(context.Background(), func(tx store.Tx) error { return tx.DeleteJob(b.left(t)[0].ID) })
	if err != nil {
		t.Fatal(err)
	}
	if err := within(t, "the end", ended); !errors.Is(err, jobs.ErrLost) {
		t.Errorf("ended by %v, want that it was taken back", err)
	}
	b.until(t, "nothing left", none)
}

// TestTakenOver: what a runner makes of a job that somebody else has by now has no effect.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(t, "x")
	began := make(chan struct{}, 1)
	_, stop := b.start(t, jobs.Options{Lease: time.Minute, Watch: time.Millisecond, Run: func(ctx context.Context, _ store.Job) error {
		began <- struct{}{}
		<-ctx.Done()
		return nil // "done", it says
	}})
	within(t, "the begin", began)
	var other time.Time
	err := b.state.Update(context.Background(), func(tx store.Tx) error {
		job := b.left(t)[0]
		other = job.RunAt.Add(time.Hour)
		_, err := tx.HoldJob(job.ID, job.RunAt, other)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if left := b.left(t); len(left) != 1 || !left[0].RunAt.Equal(other) {
		t.Errorf("left: %+v, want the job as the other has it", left)
	}
}

// TestAgain: a job that says when it wants to run again is not counted as failed.
func TestAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(t, "x")
	ran := make(chan int, 10)
	r, _ := b.start(t, jobs.Options{Run: func(_ context.Context, job store.Job) error {
		ran <- job.Attempts
		return jobs.Again{After: time.Hour}
	}})
	for range 3 {
		if n := within(t, "a run", ran); n != 0 {
			t.Errorf("%d attempts counted", n)
		}
		next := b.now().Add(time.Hour)
		b.until(t, "the next time", func(left []store.Job) bool { return len(left) == 1 && left[0].RunAt.Equal(next) })
		b.pass(time.Hour)
		r.Wake()
	}
}
