package wire_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"
)

// update rewrites the golden files and the document of differences instead of comparing with them.
var update = flag.Bool("update", false, "rewrite testdata and docs/reference-differences.md from what the servers answer now")

// suite is the server under test and what the run has seen of it. TestMain sets it before any test starts.
var suite *environment

// environment is one server and the record of the error codes it has given.
type environment struct {
	base string
	http *http.Client

	mu   sync.Mutex
	seen map[string]map[int]bool // operation → codes answered (-1 for a success)
}

// newEnvironment returns an environment for the server at base. Its client never follows a redirect: a server that redirects
// breaks real clients (client contract, trap T11), so a redirect must be seen as what it is.
func newEnvironment(base string) *environment {
	return &environment{
		base: strings.TrimRight(base, "/"),
		seen: map[string]map[int]bool{},
		http: &http.Client{
			Timeout:       60 * time.Second,
			Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 128},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// note records that the operation answered code.
func (e *environment) note(op string, code int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen[op] == nil {
		e.seen[op] = map[int]bool{}
	}
	e.seen[op][code] = true
}

// uncovered lists every outcome that the table of operations promises and the run has not seen, and every operation that gave
// an internal error, which nothing in this package provokes.
func (e *environment) uncovered() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var missing []string
	for _, op := range operations() {
		if e.seen[op.name][internalError] {
			missing = append(missing, op.name+" answered an internal error")
		}
		for _, code := range op.codes {
			if !e.seen[op.name][code] {
				missing = append(missing, fmt.Sprintf("%s never answered code %d", op.name, code))
			}
		}
		if !op.engine && !e.seen[op.name][success] {
			missing = append(missing, op.name+" never succeeded")
		}
	}
	sort.Strings(missing)
	return missing
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

// run starts the server unless LANCEREST_URL names one, runs the tests, and fails a complete run that did not see every
// outcome in the table of operations or saw an internal error.
func run(m *testing.M) int {
	base := os.Getenv("LANCEREST_URL")
	if base == "" {
		s, err := startServer()
		if err != nil {
			fmt.Fprintln(os.Stderr, "test/wire:", err)
			return 1
		}
		defer s.stop()
		base = s.base
	}
	suite = newEnvironment(base)
	code := m.Run()
	complete := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == ""
	if code == 0 && complete {
		for _, line := range suite.uncovered() {
			fmt.Fprintln(os.Stderr, "test/wire:", line)
			code = 1
		}
	}
	return code
}

// process is a server that this run started.
type process struct {
	base string
	cmd  *exec.Cmd
	dir  string
}

// stop ends the process and removes its files.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(os.Interrupt)
	_ = p.cmd.Wait()
	_ = os.RemoveAll(p.dir)
}

var announced = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// startServer builds the binary of this tree and serves a fresh data directory on a free loopback port. It leaves nothing
// behind where it fails.
func startServer() (*process, error) {
	dir, err := os.MkdirTemp("", "lancerest-wire-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the server: %w", err)
	}
	p, err := buildAndServe(dir)
	if err != nil {
		_ = os.RemoveAll(dir)
	}
	return p, err
}

func buildAndServe(dir string) (*process, error) {
	binary := filepath.Join(dir, "lancerest")
	build := exec.Command("go", "build", "-o", binary, "github.com/lancerest/lancerest/cmd/lancerest")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the server: %w\n%s", err, out)
	}
	cmd := exec.Command(binary, "serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--engine", "off")
	p, err := launch(cmd, dir)
	if err != nil {
		return nil, err
	}
	if err := p.awaitReady(); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// launch starts cmd and returns once it has printed its base URL on either of its outputs. Later output goes to a log file
// in dir that only serves someone who looks at it while the tests run.
func launch(cmd *exec.Cmd, dir string) (*process, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the server's output: %w", err)
	}
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	_ = writer.Close()
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		return nil, fmt.Errorf("make the server's log: %w", err)
	}
	found := make(chan string, 1)
	go func() {
		defer close(found)
		lines, sent := bufio.NewScanner(reader), false
		for lines.Scan() {
			_, _ = fmt.Fprintln(log, lines.Text())
			if u := announced.FindString(lines.Text()); u != "" && !sent {
				found <- u
				sent = true
			}
		}
	}()
	p := &process{cmd: cmd, dir: dir}
	select {
	case base, ok := <-found:
		if !ok {
			out, _ := os.ReadFile(log.Name())
			_ = cmd.Wait()
			return nil, fmt.Errorf("the server ended without printing its address:\n%s", out)
		}
		p.base = base
		return p, nil
	case <-time.After(60 * time.Second):
		p.stop()
		return nil, errors.New("the server did not print its address within a minute")
	}
}

// awaitReady polls /readyz until it answers 200 or a minute has passed.
func (p *process) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/readyz", nil)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.New("the server did not become ready within a minute")
		case <-tick.C:
		}
	}
}
