package worker_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/engine/worker"
	"github.com/lancerest/lancerest/internal/httpapi"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore/local"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
	files "github.com/lancerest/lancerest/workers/lance"
)

// python is a Python that has the libraries; without one the test is skipped.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("LANCEREST_PYTHON")
	if path == "" {
		t.Skip("LANCEREST_PYTHON names no Python with pylance, as make check does")
	}
	return path
}

// lake is a catalog with a server for its workers, and an engine on it.
type lake struct {
	*worker.Engine
	catalog *catalog.Catalog
	log     *text
	dir     string // where the workers' package is unpacked
}

// newLake starts an engine of one worker on an empty catalog; change says how it differs from the usual one.
func newLake(t *testing.T, change ...func(*worker.Options)) *lake {
	t.Helper()
	env := worker.Environment{Dir: filepath.Join(t.TempDir(), "engine"), Files: files.Files}
	command, err := env.Command(python(t))
	if err != nil {
		t.Fatal(err)
	}
	l := &lake{log: &text{}, dir: env.Dir}
	state, err := sqlstore.OpenSQLite(context.Background(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "catalog.db")})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	root, err := lance.ParseLocation("file://" + filepath.ToSlash(dir))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := local.New(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.catalog, err = catalog.New(context.Background(), catalog.Options{Store: state, Roots: []catalog.Root{{Location: root, Objects: objects}}})
	if err != nil {
		t.Fatal(err)
	}
	const token = "the engine's own"
	handler, err := httpapi.New(httpapi.Options{Catalog: l.catalog, EngineToken: token})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	opts := worker.Options{
		Catalog: l.catalog, URL: server.URL, Token: token, Prepare: run(command), Workers: 1, Logger: slog.New(slog.NewTextHandler(l.log, nil)),
	}
	for _, f := range change {
		f(&opts)
	}
	l.Engine = worker.New(opts)
	l.Start()
	t.Cleanup(func() {
		l.Close()
		l.Close()
		server.Close()
		if err := l.catalog.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := state.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(l.log)
		}
	})
	return l
}

// run returns what prepares a worker that is started so.
func run(c worker.Command) func(context.Context, func(string)) (worker.Command, error) {
	return func(context.Context, func(string)) (worker.Command, error) { return c, nil }
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
