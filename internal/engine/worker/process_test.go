package worker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/engine/worker"
)

// rows is a stream of three rows: id, vector, text.
func rows(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("../enginetest/rows.arrows")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (l *lake) create(t *testing.T) {
	t.Helper()
	_, err := l.Do(t.Context(), "CreateTable", &api.CreateTableRequest{Target: api.At("t"), ArrowStream: api.ArrowStream{Data: bytes.NewReader(rows(t))}})
	if err != nil {
		t.Fatal(err)
	}
}

// count asks a worker how many rows there are.
func (l *lake) count(ctx context.Context) (int64, error) {
	where := "id > 0"
	got, err := l.Do(ctx, "CountTableRows", &api.CountTableRowsRequest{Target: api.At("t"), Predicate: &where})
	if err != nil {
		return 0, err
	}
	return got.(*api.CountTableRowsResponse).Count, nil
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		if holds() {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	t.Fatalf("%s: it did not happen within a minute", what)
}

// pids returns the processes that workers of an engine run in now: those whose command line names its directory of sockets.
func (l *lake) pids(t *testing.T) []int {
	t.Helper()
	var found []int
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(files) == 0 {
		t.Skip("there is no /proc to find processes in")
	}
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(env, []byte("PYTHONPATH="+l.dir)) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(f, "/")[2])
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, pid)
	}
	return found
}

func (l *lake) kill(t *testing.T) {
	t.Helper()
	for _, pid := range l.pids(t) {
		p, err := os.FindProcess(pid)
		if err == nil {
			err = p.Kill()
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
	}
}

// TestWorkerDies: a worker that is killed between requests is replaced, and what was committed is there.
func TestWorkerDies(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	for range 2 {
		l.kill(t)
		var n int64
		eventually(t, "a count after a kill", func() bool {
			var err error
			if n, err = l.count(t.Context()); err != nil && api.CodeOf(err) != api.CodeServiceUnavailable {
				t.Fatalf("count: %v", err)
			}
			return err == nil
		})
		if n != 3 {
			t.Errorf("%d rows", n)
		}
	}
	if !strings.Contains(l.log.String(), "is replaced") {
		t.Error("the log does not say that a worker was replaced")
	}
}

// held is a stream that stops in its middle until it is let go, and tells when it got there.
type held struct {
	io.Reader
	reached, release chan struct{}
	once             sync.Once
}

func hold(data []byte) *held {
	h := &held{reached: make(chan struct{}), release: make(chan struct{})}
	h.Reader = io.MultiReader(bytes.NewReader(data[:len(data)/2]), waiting{h}, bytes.NewReader(data[len(data)/2:]))
	return h
}

type waiting struct{ h *held }

func (w waiting) Read([]byte) (int, error) {
	w.h.once.Do(func() { close(w.h.reached) })
	<-w.h.release
	return 0, io.EOF
}

// TestWorkerDiesInsideAWrite: a worker that is killed while rows are still sent has changed nothing, and says so: 503, and the version is as
// before. Nothing hangs.
func TestWorkerDiesInsideAWrite(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	h := hold(rows(t))
	defer close(h.release)
	failed := make(chan error, 1)
	go func() {
		_, err := l.Do(context.Background(), "InsertIntoTable", &api.InsertIntoTableRequest{Target: api.At("t"), ArrowStream: api.ArrowStream{Data: h}})
		failed <- err
	}()
	<-h.reached
	l.kill(t)
	select {
	case err := <-failed:
		if api.CodeOf(err) != api.CodeServiceUnavailable || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("insert: %v, want code 17 and that nothing was changed", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the insert hangs")
	}
	eventually(t, "a count", func() bool {
		n, err := l.count(t.Context())
		return err == nil && n == 3
	})
}

// TestCallerGivesUp: a caller that hangs up while it sends rows leaves nothing behind, and the worker does not stay busy with it.
func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	ctx, hangUp := context.WithCancel(context.Background())
	h := hold(rows(t))
	defer close(h.release)
	failed := make(chan error, 1)
	go func() {
		_, err := l.Do(ctx, "InsertIntoTable", &api.InsertIntoTableRequest{Target: api.At("t"), ArrowStream: api.ArrowStream{Data: h}})
		failed <- err
	}()
	<-h.reached
	hangUp()
	select {
	case err := <-failed:
		if err == nil {
			t.Error("the insert succeeded")
		}
	case <-time.After(time.Minute):
		t.Fatal("the insert hangs")
	}
	if n, err := l.count(t.Context()); n != 3 || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
}

// TestMemory: a worker that has grown beyond its bound is replaced without an error for anybody.
func TestMemory(t *testing.T) {
	t.Parallel()
	l := newLake(t, func(o *worker.Options) { o.Memory = 1 })
	l.create(t)
	before := l.pids(t)
	eventually(t, "another process", func() bool {
		if n, err := l.count(t.Context()); n != 3 || err != nil {
			t.Fatalf("%d rows, %v", n, err)
		}
		now := l.pids(t)
		return len(before) > 0 && len(now) > 0 && now[len(now)-1] != before[0]
	})
}

// TestNoWorker: a Python that cannot run a worker is told in the log with what it said, and requests are answered 503 after a while.
func TestNoWorker(t *testing.T) {
	t.Parallel()
	l := newLake(t, func(o *worker.Options) {
		o.Prepare = run(worker.Command{Path: python(t), Args: []string{"-c", "raise SystemExit('no library here')"}})
		o.Patience = 300 * time.Millisecond
	})
	_, err := l.Do(t.Context(), "CreateTable", &api.CreateTableRequest{Target: api.At("t"), ArrowStream: api.ArrowStream{Data: bytes.NewReader(rows(t))}})
	if api.CodeOf(err) != api.CodeServiceUnavailable {
		t.Errorf("create: %v, want code 17", err)
	}
	eventually(t, "a log", func() bool {
		return strings.Contains(l.log.String(), "no library here") && strings.Contains(l.log.String(), "does not start")
	})
	// The name is free again.
	if _, err := l.catalog.TableExists(t.Context(), &api.TableExistsRequest{Target: api.At("t")}); api.CodeOf(err) != api.CodeTableNotFound {
		t.Errorf("the table: %v, want that there is none", err)
	}
}

// wake has workers started by a request whose end nobody waits for.
func (l *lake) wake(t *testing.T) {
	t.Helper()
	ctx, hangUp := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = l.Do(ctx, "CreateTable", &api.CreateTableRequest{Target: api.At("woken"), ArrowStream: api.ArrowStream{Data: bytes.NewReader(rows(t))}})
	})
	t.Cleanup(func() {
		hangUp()
		wg.Wait()
	})
}

// TestLazy: no worker runs before a request needs one, and that one waits for it.
func TestLazy(t *testing.T) {
	t.Parallel()
	prepared := make(chan struct{})
	l := newLake(t, func(o *worker.Options) {
		how := o.Prepare
		o.Prepare = func(ctx context.Context, tell func(string)) (worker.Command, error) {
			close(prepared)
			return how(ctx, tell)
		}
	})
	if _, err := l.count(t.Context()); api.CodeOf(err) != api.CodeTableNotFound {
		t.Errorf("count: %v, want that there is no table", err)
	}
	select {
	case <-prepared:
		t.Error("a worker was prepared for a table that does not exist")
	default:
	}
	l.create(t)
	<-prepared
}

// TestPrepare: while what workers need is made, requests are refused at once with how far that is, and so they are after a failure of it, which
// is tried again; then they wait for the worker. No refused request leaves the name of a table behind.
func TestPrepare(t *testing.T) {
	t.Parallel()
	release, begun := make(chan error), make(chan struct{})
	l := newLake(t, func(o *worker.Options) {
		how := o.Prepare
		o.Again = time.Millisecond
		o.Prepare = func(ctx context.Context, tell func(string)) (worker.Command, error) {
			tell("downloading the third of five files")
			begun <- struct{}{}
			select {
			case err := <-release:
				if err != nil {
					return worker.Command{}, err
				}
			case <-ctx.Done():
				return worker.Command{}, ctx.Err()
			}
			return how(ctx, tell)
		}
	})
	refused := func(code api.Code, words string) {
		t.Helper()
		_, err := l.Do(t.Context(), "CreateTable", &api.CreateTableRequest{Target: api.At("t"), ArrowStream: api.ArrowStream{Data: bytes.NewReader(rows(t))}})
		if api.CodeOf(err) != code || !strings.Contains(err.Error(), words) {
			t.Errorf("create: %v, want code %d and %q", err, code, words)
		}
		if _, err := l.catalog.TableExists(t.Context(), &api.TableExistsRequest{Target: api.At("t")}); api.CodeOf(err) != api.CodeTableNotFound {
			t.Errorf("the table: %v, want that there is none", err)
		}
	}
	l.wake(t)
	<-begun
	refused(api.CodeServiceUnavailable, "downloading the third of five files")
	release <- errors.New("the index of packages is away")
	<-begun // again
	if !strings.Contains(l.log.String(), "the index of packages is away") {
		t.Error("the log does not tell what failed")
	}
	release <- nil
	eventually(t, "a table", func() bool {
		_, err := l.Do(t.Context(), "CreateTable", &api.CreateTableRequest{Target: api.At("t"), ArrowStream: api.ArrowStream{Data: bytes.NewReader(rows(t))}})
		if err != nil && api.CodeOf(err) != api.CodeServiceUnavailable {
			t.Fatal(err)
		}
		return err == nil
	})
}

// TestPrepareFails: after a failure requests are told what it was, and with which code, until the next attempt.
func TestPrepareFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fails error
		code  api.Code
	}{
		{errors.New("the index of packages is away"), api.CodeServiceUnavailable},
		{api.Errorf(api.CodeUnsupported, "this is Python 2.7"), api.CodeUnsupported},
	} {
		t.Run(c.fails.Error(), func(t *testing.T) {
			t.Parallel()
			l := newLake(t, func(o *worker.Options) {
				o.Again = time.Hour
				o.Prepare = func(context.Context, func(string)) (worker.Command, error) { return worker.Command{}, c.fails }
			})
			_, err := l.Do(t.Context(), "CreateTable", &api.CreateTableRequest{Target: api.At("t"), ArrowStream: api.ArrowStream{Data: bytes.NewReader(rows(t))}})
			if api.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.fails.Error()) || !strings.Contains(err.Error(), "again") {
				t.Errorf("create: %v, want code %d and %q", err, c.code, c.fails)
			}
		})
	}
}

// TestClose ends all processes, with those of requests under way.
func TestClose(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	if len(l.pids(t)) != 1 {
		t.Errorf("%d processes, want one", len(l.pids(t)))
	}
	l.Close()
	eventually(t, "the end of the processes", func() bool { return len(l.pids(t)) == 0 })
	if _, err := l.count(t.Context()); err == nil {
		t.Error("a closed engine counts")
	}
}

// TestRemote: workers that somebody else runs do the same, if they are shown their secret.
func TestRemote(t *testing.T) {
	t.Parallel()
	for secret, want := range map[string]bool{"the right one": true, "another": false} {
		t.Run(secret, func(t *testing.T) {
			t.Parallel()
			address := runRemote(t, "the right one")
			l := newLake(t, func(o *worker.Options) {
				o.Prepare, o.Addresses, o.Secret = nil, []string{address}, secret
			})
			_, err := l.Do(t.Context(), "CreateTable", &api.CreateTableRequest{Target: api.At("t"), ArrowStream: api.ArrowStream{Data: bytes.NewReader(rows(t))}})
			if want != (err == nil) {
				t.Fatalf("create: %v", err)
			}
			if n, err := l.count(t.Context()); want && (n != 3 || err != nil) {
				t.Errorf("%d rows, %v", n, err)
			}
		})
	}
}

// runRemote runs a worker as an operator does and returns its address.
func runRemote(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "w")
	cmd := exec.Command(python(t), "-m", "lancerest_worker", "--stay", "--listen", path)
	cmd.Env = append(os.Environ(), "LANCEREST_WORKER_SECRET="+secret, "PYTHONPATH=../../../workers/lance", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line := make([]byte, 6)
	if _, err := io.ReadFull(out, line); err != nil || !regexp.MustCompile("^ready").Match(line) {
		t.Fatalf("the worker says %q, %v", line, err)
	}
	return "unix:" + path
}
