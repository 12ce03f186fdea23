//go:build unix

package faults_test

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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lancerest/lancerest/client"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/s3"
	"github.com/lancerest/lancerest/internal/objstore/s3/s3test"
)

// binary is the server that TestMain built.
var binary string

func TestMain(m *testing.M) {
	if text := os.Getenv(clientJob); text != "" {
		if err := clientMain(text); err != nil {
			fmt.Fprintln(os.Stderr, "client:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lancerest-faults-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/faults:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "lancerest")
	build := exec.Command("go", "build", "-o", binary, "github.com/lancerest/lancerest/cmd/lancerest")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "test/faults: build the server: %v\n%s", err, out)
		return 1
	}
	defer func() {
		if s3server != nil {
			_ = s3server.Close() // what it leaves behind lies in the system's own temporary directory
		}
	}()
	return m.Run()
}

// s3server is the S3 server of the tests that have their tables there, nil until the first of them begins.
var (
	s3server *s3test.Server
	startS3  sync.Once
)

// onS3 returns the S3 server, which runs until the tests of this process end.
func onS3(t *testing.T) *s3test.Server {
	t.Helper()
	startS3.Do(func() {
		s, err := s3test.Open(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		s3server = s
	})
	if s3server == nil {
		t.Fatal("the S3 server did not start")
	}
	return s3server
}

// openBucket opens the bucket of the S3 server.
func openBucket(t *testing.T) objstore.Store {
	t.Helper()
	server := onS3(t)
	objects, err := s3.New(context.Background(), s3.Options{
		Bucket: server.Bucket, Endpoint: server.Endpoint, Region: server.Region, AccessKeyID: server.AccessKey, SecretAccessKey: server.SecretKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// process is one run of the server on a data directory.
type process struct {
	*client.Client
	base string
	cmd  *exec.Cmd
	http *http.Transport
	exit chan error // holds the end of the process once
}

var announced = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// start serves a data directory on a free port of this machine, with further flags.
func start(t *testing.T, data string, flags ...string) *process {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, flags...)...)
	cmd.Stderr = testLog{t}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, exit: make(chan error, 1), http: &http.Transport{MaxIdleConnsPerHost: 32}}
	found := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if u := announced.FindString(lines.Text()); u != "" && p.base == "" {
				p.base = u
				found <- u
			}
		}
		p.exit <- cmd.Wait()
	}()
	t.Cleanup(func() { p.kill(t) })
	select {
	case <-found:
	case err := <-p.exit:
		p.exit <- err
		t.Fatalf("the server ended at once: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("the server did not print its address within a minute")
	}
	p.Client = client.New(p.base, client.Options{HTTPClient: &http.Client{Transport: p.http, Timeout: time.Minute}})
	return p
}

// kill ends the process as a power switch does, if it runs.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	p.wait(t)
}

// stop asks the process to end, and fails the test unless it does so gracefully.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(t); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

func (p *process) wait(t *testing.T) error {
	t.Helper()
	p.http.CloseIdleConnections()
	select {
	case err := <-p.exit:
		p.exit <- err
		return err
	case <-time.After(time.Minute):
		t.Fatal("the server did not end within a minute")
		return nil
	}
}

// clean fails the test unless `lancerest check` finds nothing wrong on a data directory that no server has open, or one has.
func clean(t *testing.T, data string, flags ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, append([]string{"check", "--data", data}, flags...)...).CombinedOutput()
	if err != nil {
		t.Errorf("lancerest check: %v\n%s", err, out)
	}
}

// testLog passes on what the server says of itself, where it is more than what a fault must lead to.
type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	if text := string(b); strings.Contains(text, "panic") || strings.Contains(text, "DATA RACE") {
		l.t.Error(text)
	}
	return len(b), nil
}
