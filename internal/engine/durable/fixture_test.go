package durable_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/engine"
	"github.com/lancerest/lancerest/internal/engine/durable"
	"github.com/lancerest/lancerest/internal/engine/worker"
	"github.com/lancerest/lancerest/internal/httpapi"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore/local"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// lake is a catalog with a server for its workers, and one worker.
type lake struct {
	catalog *catalog.Catalog
	state   *sqlstore.SQLite
	worker  *worker.Engine
	log     *text
}

// newLake starts a worker on an empty catalog.
func newLake(t *testing.T) *lake {
	t.Helper()
	address := runWorker(t)
	l := &lake{log: &text{}}
	var err error
	l.state, err = sqlstore.OpenSQLite(context.Background(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "catalog.db")})
	if err != nil {
		t.Fatal(err)
	}
	root, err := lance.ParseLocation("file://" + filepath.ToSlash(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := local.New(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.catalog, err = catalog.New(context.Background(), catalog.Options{Store: l.state, Roots: []catalog.Root{{Location: root, Objects: objects}}})
	if err != nil {
		t.Fatal(err)
	}
	const token = "the engine's own"
	handler, err := httpapi.New(httpapi.Options{Catalog: l.catalog, EngineToken: token})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	l.worker = worker.New(worker.Options{Catalog: l.catalog, URL: server.URL, Token: token, Addresses: []string{address}})
	l.worker.Start()
	t.Cleanup(func() {
		l.worker.Close()
		server.Close()
		if err := l.catalog.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := l.state.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(l.log)
		}
	})
	return l
}

// runWorker runs a worker as an operator does, and returns its address.
func runWorker(t *testing.T) string {
	t.Helper()
	python := os.Getenv("LANCEREST_PYTHON")
	if python == "" {
		t.Skip("LANCEREST_PYTHON names no Python with pylance, as make check does")
	}
	path := filepath.Join(t.TempDir(), "w")
	cmd := exec.Command(python, "-m", "lancerest_worker", "--stay", "--listen", path)
	cmd.Env = append(os.Environ(), "PYTHONPATH=../../../workers/lance", "PYTHONDONTWRITEBYTECODE=1")
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
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "ready\n" {
		t.Fatalf("the worker says %q, %v", line, err)
	}
	return "unix:" + path
}

// engine returns an engine on the lake that performs no jobs yet; change says how it differs from the usual one.
func (l *lake) engine(change ...func(*durable.Options)) *durable.Engine {
	o := durable.Options{
		Worker: l.worker, Catalog: l.catalog, Store: l.state, Logger: slog.New(slog.NewTextHandler(l.log, nil)),
		Watch: 5 * time.Millisecond, Interval: 20 * time.Millisecond,
	}
	for _, f := range change {
		f(&o)
	}
	return durable.New(o)
}

// run has an engine perform jobs until the test ends or the returned function is called, which waits for it.
func run(t *testing.T, e *durable.Engine) func() {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Run(ctx)
	}()
	stop := func() {
		cancel()
		within(t, "the engine's end", ended)
	}
	t.Cleanup(stop)
	return stop
}

// within waits for a channel, and fails the test if it takes a minute.
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

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		if holds() {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	t.Fatalf("%s: it did not happen within a minute", what)
}

// create makes a table of three rows with the columns id, vector and text, and a computed column "twice" that is empty.
func (l *lake) create(t *testing.T) {
	t.Helper()
	rows, err := os.ReadFile("../enginetest/rows.arrows")
	if err != nil {
		t.Fatal(err)
	}
	l.do(t, "CreateTable", &api.CreateTableRequest{Target: api.At("t"), ArrowStream: api.ArrowStream{Data: bytes.NewReader(rows)}})
	twice := "id * 2"
	l.do(t, "AlterTableAddColumns", &api.AlterTableAddColumnsRequest{Target: api.At("t"), NewColumns: []api.AddColumnsEntry{{Name: "twice", Computed: &twice}}})
}

func (l *lake) do(t *testing.T, operation string, request any) any {
	t.Helper()
	got, err := l.worker.Do(t.Context(), operation, request)
	if err != nil {
		t.Fatalf("%s: %v", operation, err)
	}
	return got
}

// filled counts the rows of a table whose computed column is right.
func (l *lake) filled(t *testing.T, table string) int64 {
	t.Helper()
	where := "twice = id * 2"
	return l.do(t, "CountTableRows", &api.CountTableRowsRequest{Target: api.At(table), Predicate: &where}).(*api.CountTableRowsResponse).Count
}

// version is the latest version of a table.
func (l *lake) version(t *testing.T, table string) int64 {
	t.Helper()
	main := "main"
	resp, err := l.catalog.DescribeTable(t.Context(), &api.DescribeTableRequest{Target: api.At(table), Branch: &main})
	if err != nil {
		t.Fatal(err)
	}
	return *resp.Version
}

// backfill asks for the column "twice" of the table "t" to be filled, and returns the id of the job.
func backfill(t *testing.T, e engine.Engine) string {
	t.Helper()
	got, err := e.Do(t.Context(), "AlterTableBackfillColumns", &api.AlterTableBackfillColumnsRequest{Target: api.At("t"), Column: "twice"})
	if err != nil {
		t.Fatal(err)
	}
	return got.(*api.AlterTableBackfillColumnsResponse).JobID
}

// describe tells how far a job is.
func (l *lake) describe(t *testing.T, job string) *api.DescribeTransactionResponse {
	t.Helper()
	got, err := l.catalog.DescribeTransaction(context.Background(), &api.DescribeTransactionRequest{Target: api.At(job)})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// until waits for a job to have a status.
func (l *lake) until(t *testing.T, job string, status api.TransactionStatus) map[string]string {
	t.Helper()
	var got *api.DescribeTransactionResponse
	eventually(t, "a job becomes "+string(status), func() bool {
		got = l.describe(t, job)
		return got.Status == status
	})
	return got.Properties
}

// cancel cancels a job.
func (l *lake) cancel(job string) error { return l.set(job, api.TransactionCanceled) }

func (l *lake) set(job string, status api.TransactionStatus) error {
	_, err := l.catalog.AlterTransaction(context.Background(), &api.AlterTransactionRequest{
		Target: api.At(job), Actions: []api.AlterTransactionAction{{SetStatusAction: &api.AlterTransactionSetStatus{Status: &status}}},
	})
	return err
}

// meddling is a worker on whose way something happens.
type meddling struct {
	engine.Worker
	perform func(ctx context.Context, operation string, request any) (map[string]any, error)
}

// Perform lets checks through.
func (m meddling) Perform(ctx context.Context, operation string, request any, extra map[string]any) (map[string]any, error) {
	if extra["check"] == true {
		return m.Worker.Perform(ctx, operation, request, extra)
	}
	return m.perform(ctx, operation, request)
}

// meddle puts something on the way of an engine's worker.
func meddle(perform func(w engine.Worker, ctx context.Context, operation string, request any) (map[string]any, error)) func(*durable.Options) {
	return func(o *durable.Options) {
		w := o.Worker
		o.Worker = meddling{Worker: w, perform: func(ctx context.Context, operation string, request any) (map[string]any, error) {
			return perform(w, ctx, operation, request)
		}}
	}
}

// text is a log that can be read while it is written.
type text struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *text) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *text) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
