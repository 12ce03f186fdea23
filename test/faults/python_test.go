//go:build unix

package faults_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// pythonWriters are pylance writers, processes of their own, that append the same rows to two tables in one transaction (writer.py). They take
// part where LANCEREST_PYTHON names a Python that has pylance, as in make check and make soak.
type pythonWriters struct {
	python, url string
	started     int
	running     []*pythonWriter
	gone        []string // what those printed that are gone
}

// pythonProcesses is how many of them write at once.
const pythonProcesses = 2

type pythonWriter struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *said
}

// said is what a process has printed so far.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Fields(s.text.String())
}

// newPython makes the tables of writers.
func newPython(t *testing.T, url string) *pythonWriters {
	t.Helper()
	p := &pythonWriters{python: os.Getenv("LANCEREST_PYTHON"), url: url}
	if p.python == "" {
		t.Log("LANCEREST_PYTHON is not set: no pylance writers take part")
		return p
	}
	if out, err := exec.Command(p.python, "writer.py", "create", url).CombinedOutput(); err != nil {
		t.Fatalf("writer.py create: %v\n%s", err, out)
	}
	return p
}

// write starts writers, none where there is no Python.
func (p *pythonWriters) write(t *testing.T, writers int) {
	t.Helper()
	for range writers {
		if p.python != "" {
			p.running = append(p.running, p.start(t))
		}
	}
}

func (p *pythonWriters) start(t *testing.T) *pythonWriter {
	t.Helper()
	p.started++
	w := &pythonWriter{cmd: exec.Command(p.python, "writer.py", "write", p.url, strconv.Itoa(p.started)), out: &said{}}
	w.cmd.Stdout, w.cmd.Stderr = w.out, testLog{t}
	var err error
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// killAny kills the writer of a number with SIGKILL and starts another one in its place.
func (p *pythonWriters) killAny(t *testing.T, n int) {
	t.Helper()
	if len(p.running) == 0 {
		return
	}
	w := p.running[n%len(p.running)]
	if err := w.cmd.Process.Kill(); err != nil {
		t.Errorf("kill a writer: %v", err)
	}
	p.end(w)
	p.running[n%len(p.running)] = p.start(t)
}

func (p *pythonWriters) end(w *pythonWriter) {
	_ = w.cmd.Wait() // it says how it was ended
	p.gone = append(p.gone, w.out.lines()...)
}

// stop lets the writers end what they are at.
func (p *pythonWriters) stop(t *testing.T) {
	t.Helper()
	for _, w := range p.running {
		if err := w.stdin.Close(); err != nil {
			t.Error(err)
		}
		p.end(w)
		if code := w.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("a writer ended with %d", code)
		}
	}
	p.running = nil
}

// check stops the writers and fails the test unless both tables have the same rows, each once, and all that were acknowledged. It returns
// how many those are.
func (p *pythonWriters) check(t *testing.T) int {
	t.Helper()
	p.stop(t)
	if p.started == 0 {
		return 0
	}
	out, err := exec.Command(p.python, "writer.py", "read", p.url).Output()
	if err != nil {
		t.Fatalf("writer.py read: %v", err)
	}
	var tables [2][]int64
	decoder := json.NewDecoder(bytes.NewReader(out))
	for i := range tables {
		if err := decoder.Decode(&tables[i]); err != nil {
			t.Fatalf("writer.py read: %v\n%s", err, out)
		}
	}
	if !slices.Equal(tables[0], tables[1]) {
		t.Errorf("half of a transaction is there: %v and %v", tables[0], tables[1])
	}
	if once := slices.Compact(slices.Clone(tables[0])); len(once) != len(tables[0]) {
		t.Errorf("a transaction was applied twice: %v", tables[0])
	}
	for _, text := range p.gone {
		n, err := strconv.ParseInt(text, 10, 64)
		if _, found := slices.BinarySearch(tables[0], n); err != nil || !found {
			t.Errorf("row %s was acknowledged and is not there (%v)", text, err)
		}
	}
	return len(p.gone)
}

// advance waits until each writer has had some more transactions acknowledged.
func (p *pythonWriters) advance(t *testing.T, by int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for _, w := range p.running {
		for want := len(w.out.lines()) + by; len(w.out.lines()) < want; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("a writer has not had %d more transactions acknowledged within %s", by, patience)
			}
		}
	}
}
