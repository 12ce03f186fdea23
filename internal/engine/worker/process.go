package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lancerest/lancerest/api"
)

// Command says how a worker is started.
type Command struct {
	Path string   // the program
	Args []string // its arguments
	Env  []string // what is set in its environment besides what the server has, NAME=VALUE
}

const (
	startMiss   = 3               // failed starts in a row from which requests do not wait any more
	startTime   = 2 * time.Minute // for a worker to say that it is ready: the first one on a machine has much to load
	statusEvery = time.Second
	statusTime  = 10 * time.Second
	statusMiss  = 3                // answers that may be missing in a row
	retireTime  = 10 * time.Minute // for the requests of a worker that is being replaced
	backoffMost = 30 * time.Second
)

// process is a worker's process.
type process struct {
	*member
	dir    string // where its socket is
	cmd    *exec.Cmd
	input  io.Closer // its standard input: a worker ends with it
	output io.ReadCloser
	ended  chan struct{} // closed when it has ended
	err    error         // why, once it has
}

// keep has one worker running at a time, until ctx ends.
func (e *Engine) keep(ctx context.Context, command Command) {
	var draining sync.WaitGroup
	defer draining.Wait()
	backoff, failed := time.Duration(0), 0
	for ctx.Err() == nil {
		p, err := e.start(ctx, command)
		if err != nil {
			backoff = min(max(2*backoff, time.Second), backoffMost)
			if failed++; failed == startMiss {
				e.pool.refuse(api.Errorf(api.CodeServiceUnavailable, "the engine's workers do not start, and the server's log says why; nothing was done; they are tried again"))
			}
			if ctx.Err() == nil {
				e.opts.Logger.Error("a worker of the engine does not start", slog.String("error", err.Error()), slog.Duration("again_in", backoff))
			}
			sleep(ctx, backoff)
			continue
		}
		backoff, failed = 0, 0
		e.pool.add(p.member)
		reason := e.watch(ctx, p)
		p.retiring.Store(true)
		e.pool.remove(p.member)
		if reason != "" {
			e.opts.Logger.Warn("a worker of the engine is replaced", slog.Int("pid", p.cmd.Process.Pid), slog.String("because", reason))
		}
		draining.Go(func() { p.drain(ctx) })
	}
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// start runs a worker and waits until it is ready.
func (e *Engine) start(ctx context.Context, command Command) (*process, error) {
	dir, err := os.MkdirTemp("", "lancerest-worker-") // short: the path of a socket has about 100 bytes at most
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir, ended: make(chan struct{})}
	if err := p.run(command); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ready := make(chan struct{})
	go p.wait(e.opts.Logger, ready)
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case <-ready:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("it ended before it was ready (%w): see what it wrote", p.err)
	case <-timer.C:
		p.kill()
		return nil, fmt.Errorf("it was not ready after %s", startTime)
	case <-ctx.Done():
		p.kill()
		return nil, ctx.Err()
	}
}

func (p *process) run(c Command) error {
	socket := filepath.Join(p.dir, "socket")
	p.member = newMember("unix", socket, "")
	p.cmd = exec.Command(c.Path, append(slices.Clone(c.Args), "--listen", socket)...)
	p.cmd.Env = append(environment(), c.Env...)
	input, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	p.input = input
	read, write, err := os.Pipe()
	if err != nil {
		return errors.Join(err, input.Close())
	}
	p.output, p.cmd.Stdout, p.cmd.Stderr = read, write, write
	err = p.cmd.Start()
	_ = write.Close() // the process has its own
	if err != nil {
		return errors.Join(err, input.Close(), read.Close())
	}
	return nil
}

// environment is the server's without its own settings, some of which are secrets.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LANCEREST_") })
}

// wait reads what the process writes, and waits for its end. Its first line says that it is ready.
func (p *process) wait(logger *slog.Logger, ready chan<- struct{}) {
	lines := bufio.NewScanner(p.output)
	for lines.Scan() {
		if ready != nil && lines.Text() == "ready" {
			close(ready)
			ready = nil
			continue
		}
		logger.Warn("a worker of the engine says", slog.Int("pid", p.cmd.Process.Pid), slog.String("line", lines.Text()))
	}
	_, _ = io.Copy(io.Discard, p.output) // after a line that is too long
	if p.err = p.cmd.Wait(); p.err == nil {
		p.err = errors.New("exit status 0")
	}
	_ = errors.Join(p.output.Close(), os.RemoveAll(p.dir))
	close(p.ended)
}

// kill ends the process at once and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// watch returns why a worker has to be replaced, "" because ctx ended.
func (e *Engine) watch(ctx context.Context, p *process) string {
	ticker := time.NewTicker(statusEvery)
	defer ticker.Stop()
	missed := 0
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-p.ended:
			return "it ended: " + p.err.Error()
		case <-ticker.C:
		}
		s, err := p.status(ctx)
		if err != nil {
			if missed++; missed == statusMiss {
				p.kill()
				return "it did not say how it is: " + err.Error()
			}
			continue
		}
		missed = 0
		if reason := s.unfit(e.opts); reason != "" {
			return reason
		}
	}
}

// status is what a worker says of itself.
type status struct {
	Memory   int64 `json:"memory"` // bytes
	Requests []struct {
		Operation string  `json:"operation"`
		Abandoned float64 `json:"abandoned"` // seconds since the caller hung up, 0 while it waits
	} `json:"requests"`
}

// unfit returns why a worker should not be given more work, "" if it may.
func (s status) unfit(opts Options) string {
	if s.Memory > opts.Memory {
		return fmt.Sprintf("it has %d bytes of memory, and may have %d", s.Memory, opts.Memory)
	}
	for _, r := range s.Requests {
		if r.Abandoned > opts.Grace.Seconds() {
			return fmt.Sprintf("%s goes on %.0f s after its caller hung up", r.Operation, r.Abandoned)
		}
	}
	return ""
}

func (p *process) status(ctx context.Context) (status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	var s status
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"status", nil)
	if err != nil {
		return s, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// drain lets the requests of a worker end, for a while, and then the worker itself. Where ctx ends it does not wait for them.
func (p *process) drain(ctx context.Context) {
	timer := time.NewTimer(retireTime)
	defer timer.Stop()
	for done := false; !done && p.running.Load() > 0; {
		select {
		case <-p.idle:
		case <-timer.C:
			done = true
		case <-p.ended:
			done = true
		case <-ctx.Done():
			done = true
		}
	}
	p.close()
	_ = p.input.Close()
	p.kill()
}
