package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/app"
)

// remove deletes rows by the engine, of a table that is declared first.
func remove(t *testing.T, s running) error {
	t.Helper()
	if _, err := s.DeclareTable(context.Background(), &api.DeclareTableRequest{Target: api.At("t")}); err != nil && api.CodeOf(err) != api.CodeTableAlreadyExists {
		t.Error(err)
	}
	_, err := s.DeleteFromTable(context.Background(), &api.DeleteFromTableRequest{Target: api.At("t"), Predicate: "true"})
	return err
}

// TestEngineWithoutPython: a server that finds no Python serves everything but data, and says why: to callers, and once in its log.
func TestEngineWithoutPython(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	log := &lines{}
	s := serve(t, app.Config{Data: t.TempDir(), Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	for range 2 {
		if err := remove(t, s); api.CodeOf(err) != api.CodeUnsupported || !strings.Contains(err.Error(), "it found no Python") {
			t.Errorf("delete: %v, want code 0 and that there is no Python", err)
		}
	}
	if status, body := get(t, s.url+"/readyz"); status != http.StatusOK {
		t.Errorf("readyz: %d %s", status, body)
	}
	if got := log.String(); strings.Count(got, "Python 3.10 or newer") != 1 {
		t.Errorf("the log does not say once that Python is missing: %s", got)
	}
}

// TestEngineOff: a server that is to have no engine does not look for a Python.
func TestEngineOff(t *testing.T) {
	t.Parallel()
	s := serve(t, app.Config{Data: t.TempDir(), Engine: app.Engine{Kind: app.EngineOff}})
	if err := remove(t, s); api.CodeOf(err) != api.CodeUnsupported || strings.Contains(err.Error(), "found no Python") {
		t.Errorf("delete: %v, want code 0 and no word of Python", err)
	}
}

// TestEngineCannotInstall: without a package index a server makes nothing before data is asked for; then it answers 503, at once, first that it
// installs the engine and then what failed, which its log and a file have too.
func TestEngineCannotInstall(t *testing.T) {
	python := os.Getenv("LANCEREST_PYTHON")
	if python == "" {
		t.Skip("LANCEREST_PYTHON names no Python, as make check does")
	}
	t.Setenv("PATH", withoutLibraries(t, python))
	t.Setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
	t.Setenv("PIP_RETRIES", "0")
	t.Setenv("LANCEREST_DATA", "not for workers")
	data, log := t.TempDir(), &lines{}
	s := serve(t, app.Config{Data: data, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if _, err := s.ListTables(context.Background(), &api.ListTablesRequest{Target: api.At()}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(data, "engine")); !os.IsNotExist(err) {
		t.Errorf("the engine's directory: %v, want that there is none before data is asked for", err)
	}
	var said string
	for began := time.Now(); !strings.Contains(said, "could not install the libraries: ERROR: "); {
		err := remove(t, s)
		if code := api.CodeOf(err); code != api.CodeServiceUnavailable && code != api.CodeInvalidTableState {
			t.Fatalf("delete: %v, want code 17", err)
		}
		said = err.Error()
		if !strings.Contains(said, "the engine is being installed since") && !strings.Contains(said, "the engine cannot be used yet") {
			t.Fatalf("delete: %v", err)
		}
		if strings.Contains(said, data) {
			t.Fatalf("delete: %v, which tells where the server keeps its data", err)
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("delete: %v, want what failed\n%s", err, log)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if !strings.Contains(log.String(), "the engine cannot be used yet") {
		t.Errorf("the log does not tell what failed: %s", log)
	}
	if text, err := os.ReadFile(filepath.Join(data, "engine", "install.log")); err != nil || !strings.Contains(string(text), "ERROR: ") {
		t.Errorf("install.log: %q, %v", text, err)
	}
}

// withoutLibraries returns a directory with the python3 that a Python's environment was made with.
func withoutLibraries(t *testing.T, python string) string {
	t.Helper()
	base, err := exec.Command(python, "-c", "import sys; print(sys._base_executable)").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(strings.TrimSpace(string(base)), filepath.Join(dir, "python3")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestEngineFindsPython: where python3 has the libraries already, nothing is installed.
func TestEngineFindsPython(t *testing.T) {
	python := os.Getenv("LANCEREST_PYTHON")
	if python == "" {
		t.Skip("LANCEREST_PYTHON names no Python, as make check does")
	}
	t.Setenv("PATH", filepath.Dir(python))
	data := t.TempDir()
	s := serve(t, app.Config{Data: data})
	if err := remove(t, s); api.CodeOf(err) != api.CodeInvalidTableState {
		t.Errorf("delete: %v, want the worker's word that the table has no data", err)
	}
	found, err := filepath.Glob(filepath.Join(data, "engine", "venv-*"))
	if err != nil || len(found) > 0 {
		t.Errorf("made %q, %v", found, err)
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
