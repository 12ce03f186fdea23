package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// target is one server under load.
type target struct {
	label   string
	address string // host and port
	tables  int    // how many the catalog was loaded with
	clients int
	// fastest is how many versions a second a cell is ready for; a server that is faster ends the cell early.
	fastest float64

	cells  int                 // that declared tables, so that no name comes twice
	queues map[string][]*queue // by purpose

	process *process
}

// process is a server that this run started. It serves until its standard input closes or it is interrupted.
type process struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	log   *os.File
}

var announced = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)

// startMax bounds how long a server may take to say where it listens.
const startMax = 60 * time.Second

// start runs a server and returns once it has printed its address. What it prints later goes to a file in dir.
func start(cmd *exec.Cmd, dir string) (*process, string, error) {
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	log, err := os.CreateTemp(dir, "server-*.log")
	if err != nil {
		return nil, "", fmt.Errorf("make the server's log: %w", err)
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, "", errors.Join(fmt.Errorf("start %s: %w", cmd.Path, err), log.Close())
	}
	p := &process{cmd: cmd, input: input, log: log}
	found := make(chan string, 1)
	go func() {
		lines, sent := bufio.NewScanner(output), false
		for lines.Scan() {
			_, _ = fmt.Fprintln(log, lines.Text())
			if m := announced.FindStringSubmatch(lines.Text()); m != nil && !sent {
				found <- m[1]
				sent = true
			}
		}
		if !sent {
			close(found)
		}
	}()
	select {
	case address, ok := <-found:
		if ok {
			return p, address, nil
		}
		p.stop()
		text, _ := os.ReadFile(log.Name())
		return nil, "", fmt.Errorf("%s ended without printing its address:\n%s", cmd, text)
	case <-time.After(startMax):
		p.stop()
		return nil, "", fmt.Errorf("%s did not print its address within %s", cmd, startMax)
	}
}

// stop ends a server and waits for it.
func (p *process) stop() {
	_ = p.input.Close()
	_ = p.cmd.Process.Signal(os.Interrupt)
	_ = p.cmd.Wait()
	_ = p.log.Close()
}

// said is the end of what the server has written, to go with an error.
func (p *process) said() string {
	text, _ := os.ReadFile(p.log.Name())
	return string(text[max(0, len(text)-2000):])
}

// memory is what the process holds in memory now and the most that it ever held, in bytes; zeros where the system does not say.
func (p *process) memory() (now, peak int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		switch name {
		case "VmRSS":
			now = kib << 10
		case "VmHWM":
			peak = kib << 10
		}
	}
	return now, peak
}

// cpu is how much processor time the process has used; 0 where the system does not say.
func (p *process) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	// The program's name, in parentheses, may hold spaces. User and system time are the 12th and 13th fields after it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / clockTicks
}

// clockTicks is the unit of times in /proc, the same on every Linux that Go runs on.
const clockTicks = 100

// build makes the server's binary.
func build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "lancerest")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/lancerest/lancerest/cmd/lancerest")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return binary, nil
}

// startLancerest serves the catalog in dir/data as anybody would.
func startLancerest(binary, dir string) (*process, string, error) {
	return start(exec.Command(binary, "serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--engine", "off"), dir)
}

// startReference serves a directory catalog that tracks versions, as Lancerest does.
func startReference(o options, dir string) (*process, string, error) {
	module, err := moduleDir()
	if err != nil {
		return nil, "", err
	}
	script := filepath.Join(module, "test", "wire", "reference.py")
	p, address, err := start(exec.Command(o.python, script, filepath.Join(dir, "root")), dir)
	if err != nil {
		return nil, "", fmt.Errorf("the reference server (it needs pylance 14.0.2 in -python; -skip-reference leaves it out): %w", err)
	}
	return p, address, nil
}

// grow adds tables to the catalog of a reference server, up to the number that the second one is to have.
func grow(ctx context.Context, o options, dir string) error {
	module, err := moduleDir()
	if err != nil {
		return err
	}
	begin := time.Now()
	script := filepath.Join(module, "bench", "grow.py")
	out, err := exec.CommandContext(ctx, o.python, script, filepath.Join(dir, "root"), namespace, strconv.Itoa(o.tables), strconv.Itoa(o.many)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("give the reference server %d tables: %w\n%s", o.many, err, out)
	}
	progress("gave the reference server %d tables in %.1f s", o.many, time.Since(begin).Seconds())
	return nil
}

func (t *target) isReference() bool { return t.label == referenceLabel || t.label == manyLabel }

// moduleDir is the directory of this module's sources.
func moduleDir() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/lancerest/lancerest").Output()
	if err != nil {
		return "", fmt.Errorf("find the module's directory: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// call sends one request that must succeed, on a connection of its own.
func (t *target) call(r []byte) ([]byte, error) {
	c, err := dial(t.address, 0)
	if err != nil {
		return nil, err
	}
	defer c.close()
	status, body, err := c.do(r)
	if err == nil && (status < 200 || status > 299) {
		err = fmt.Errorf("%s answered %d to %.100q: %s", t.label, status, r, body)
	}
	return body, err
}

// fillThroughTheWire makes the tables of a catalog with ordinary requests: the only way into the reference server.
func (t *target) fillThroughTheWire(ctx context.Context) error {
	create := request(http.MethodPost, "/v1/namespace/"+namespace+"/create"+query, t.address, []byte(`{"id":["`+namespace+`"]}`))
	if _, err := t.call(create); err != nil {
		return err
	}
	for i := range t.tables {
		if err := ctx.Err(); err != nil {
			return err
		}
		table, err := t.declare(loaded(i))
		if err != nil {
			return err
		}
		v, err := table.stage(1, manifest)
		if err != nil {
			return err
		}
		if _, err := t.call(request(http.MethodPost, path(table.name, "version/create"), t.address, encode(v))); err != nil {
			return err
		}
	}
	return nil
}

// refuses reports whether the server answers a batch with an error, and its text.
func (t *target) refuses() (string, error) {
	c, err := dial(t.address, 0)
	if err != nil {
		return "", err
	}
	defer c.close()
	body := []byte(`{"entries":[{"id":["` + namespace + `","` + loaded(0) + `"],"version":2,"manifest_path":"x","manifest_size":1,"naming_scheme":"V2"}]}`)
	status, answer, err := c.do(request(http.MethodPost, "/v1/table/version/batch-create"+query, t.address, body))
	if err != nil || status < 300 {
		return "", err
	}
	var e struct{ Error string }
	_ = json.Unmarshal(answer, &e)
	return fmt.Sprintf("answers %d", status), nil
}
