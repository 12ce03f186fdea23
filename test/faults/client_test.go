//go:build unix

package faults_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/client"
)

// clientJob in the environment makes a client of this binary: a process of its own, so that it can be killed as a server can. It holds an
// order.
const clientJob = "LANCEREST_FAULTS_CLIENT"

// order is what a client process is told to do: to read and to commit at random until its standard input ends.
type order struct {
	URL    string
	Tables []orderedTable
	Seed   uint64
}

type orderedTable struct{ Name, Key string }

// note is a line that a client process writes: before it asks for something, and once it was told something.
type note struct {
	At   int64 // nanoseconds on the clock that all processes of the machine share
	Read *int  `json:",omitempty"` // index of the table whose latest version is asked for
	// Commit is sent once this line is written.
	Commit *api.BatchCreateTableVersionsRequest `json:",omitempty"`
	Told   *told                                `json:",omitempty"`
}

// told is what a client was told.
type told struct {
	Verdict verdict
	Version int64  // of a read: the latest, 0 for none
	Mark    string // of its manifest
	Error   string `json:",omitempty"`
}

// now is the time on the clock of the machine.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// clientMain is the client process.
func clientMain(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	var stop atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop.Store(true)
	}()
	// A connection for each request, so that each may meet another replica.
	transport := &http.Transport{DisableKeepAlives: true}
	c := caller{order: o, rnd: rand.New(rand.NewPCG(o.Seed, 0)), out: json.NewEncoder(os.Stdout), heads: make([]int64, len(o.Tables))}
	c.api = client.New(o.URL, client.Options{HTTPClient: &http.Client{Transport: transport, Timeout: time.Minute}})
	for !stop.Load() {
		if err := c.step(); err != nil {
			return err
		}
	}
	return nil
}

// caller is the client process at work.
type caller struct {
	order
	api   *client.Client
	rnd   *rand.Rand
	out   *json.Encoder
	heads []int64 // as far as it knows
}

// step commits the next versions of some tables, or reads one.
func (c *caller) step() error {
	if c.rnd.IntN(3) > 0 {
		return c.commit()
	}
	i := c.rnd.IntN(len(c.Tables))
	if err := c.out.Encode(note{At: now(), Read: &i}); err != nil {
		return err
	}
	answer := told{Verdict: done}
	var err error
	answer.Version, answer.Mark, err = latest(c.api, c.table(i))
	if err != nil {
		answer = told{Verdict: judge(err), Error: err.Error()}
	} else {
		c.heads[i] = answer.Version
	}
	return c.out.Encode(note{At: now(), Told: &answer})
}

func (c *caller) table(i int) table {
	return table{name: c.Tables[i].Name, key: c.Tables[i].Key, files: disk{}}
}

func (c *caller) commit() error {
	req := &api.BatchCreateTableVersionsRequest{}
	chosen := c.rnd.Perm(len(c.Tables))[:1+c.rnd.IntN(len(c.Tables))]
	for _, i := range chosen {
		e, err := c.table(i).stage(c.heads[i] + 1)
		if err != nil {
			return err
		}
		req.Entries = append(req.Entries, e)
	}
	if err := c.out.Encode(note{At: now(), Commit: req}); err != nil {
		return err
	}
	_, err := c.api.BatchCreateTableVersions(context.Background(), req)
	answer := told{Verdict: judge(err)}
	if err != nil {
		answer.Error = err.Error()
	}
	for _, i := range chosen {
		if answer.Verdict == done {
			c.heads[i]++
		} else if v, _, err := latest(c.api, c.table(i)); err == nil { // not on record: it only helps the client to go on
			c.heads[i] = v
		}
	}
	return c.out.Encode(note{At: now(), Told: &answer})
}

// judge turns an error into a verdict.
func judge(err error) verdict {
	var answer *api.Error
	switch {
	case err == nil:
		return done
	case !errors.As(err, &answer):
		return unknown // the connection broke
	case answer.Code == api.CodeConcurrentModification:
		return refused
	case answer.Code == api.CodeServiceUnavailable, answer.Code == api.CodeThrottling:
		return nothing
	case answer.Code == api.CodeInternal:
		return unknown
	}
	return wrong
}

// clientProcess is a client process as its parent sees it.
type clientProcess struct {
	cmd   *exec.Cmd
	stdin io.Closer
	read  chan []note // gets all that it wrote, once
}

// startClient runs this binary as a client.
func startClient(t *testing.T, o order) *clientProcess {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), clientJob+"="+string(text))
	cmd.Stderr = testLog{t}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &clientProcess{cmd: cmd, stdin: stdin, read: make(chan []note, 1)}
	go func() { p.read <- readNotes(out) }()
	return p
}

// readNotes reads what a client writes until it is gone. A last line that is not whole was cut off with it, before anything was sent.
func readNotes(out io.Reader) []note {
	var notes []note
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return notes
		}
		var n note
		if err := json.Unmarshal(line, &n); err != nil {
			n = note{Told: &told{Verdict: wrong, Error: fmt.Sprintf("line %q: %v", line, err)}}
		}
		notes = append(notes, n)
	}
}

// kill ends the client with SIGKILL and returns what it wrote.
func (p *clientProcess) kill(t *testing.T) []note {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Errorf("kill a client: %v", err)
	}
	return p.wait()
}

// stop lets the client end its step, and returns what it wrote.
func (p *clientProcess) stop(t *testing.T) []note {
	t.Helper()
	if err := p.stdin.Close(); err != nil {
		t.Error(err)
	}
	notes := p.wait()
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("a client ended with %d", code)
	}
	return notes
}

func (p *clientProcess) wait() []note {
	notes := <-p.read
	_ = p.cmd.Wait() // it says how it was ended
	_ = p.stdin.Close()
	return notes
}
