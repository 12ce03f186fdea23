// Package gcstest starts throw-away servers that speak Google Cloud Storage's JSON API for tests: fake-gcs-server, in memory, on loopback, on
// a free port. It fails the test, and says what to install, where there is none.
//
// The emulator keeps the conditions of uploads by the JSON API and ignores those of removals; uploads by the XML API, which Lance's clients speak,
// it does not take. A front in this process, which every request passes, adds what Google documents for both; Bare leads past it. Uploads in parts by
// the XML API are refused still: files of clients must be below 5 MiB.
//
// What does not live here: the tests, and anything that a server of ours needs.
package gcstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lancerest/lancerest/internal/proctest"
)

// version is that of fake-gcs-server, as the Makefile installs it.
const version = "v1.56.1"

// binaryVariable names the emulator's program.
const binaryVariable = "LANCEREST_FAKE_GCS"

// startTime is how long the emulator may take until it makes a bucket.
const startTime = 30 * time.Second

// Server is an emulator of Google Cloud Storage, without authentication.
type Server struct {
	Endpoint string // "http://127.0.0.1:PORT", with conditions on removals
	Bare     string // the emulator itself
	buckets  atomic.Int64
	changes  sync.RWMutex // held to write by removals with a condition, to read by uploads
	front    *httptest.Server
	output   bytes.Buffer
	process  *proctest.Process
}

// Start starts a server that ends with t, and with this process. It ends t if it cannot.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Open is Start for what is no test: whoever calls it calls Close.
func Open(ctx context.Context) (*Server, error) {
	program, err := binary()
	if err != nil {
		return nil, err
	}
	s := &Server{}
	s.front = httptest.NewServer(http.HandlerFunc(s.serve))
	s.Endpoint = s.front.URL
	for range 5 { // another process may take the port first
		if err = s.launch(ctx, program); err == nil {
			return s, nil
		}
	}
	s.Close()
	return nil, fmt.Errorf("start fake-gcs-server: %w\n%s", err, s.output.String())
}

// Close ends the server.
func (s *Server) Close() {
	s.front.Close()
	if s.process != nil {
		s.process.Kill()
	}
}

// Bucket makes a bucket that is nobody else's and returns its name.
func (s *Server) Bucket(t testing.TB) string {
	t.Helper()
	name, err := s.NewBucket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// NewBucket is Bucket for what is no test.
func (s *Server) NewBucket(ctx context.Context) (string, error) {
	name := fmt.Sprintf("bucket-%d", s.buckets.Add(1))
	body := strings.NewReader(`{"name": "` + name + `"}`)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Bare+"/storage/v1/b?project=test", body)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		return "", fmt.Errorf("make bucket %s: %s: %s", name, answer.Status, text)
	}
	return name, nil
}

// Environ returns an environment, such as os.Environ, in which clients of Google's find this server and no credentials.
func (s *Server) Environ(base []string) []string {
	var env []string
	for _, v := range base {
		if !strings.HasPrefix(v, "GOOGLE_") && !strings.HasPrefix(v, "STORAGE_EMULATOR_HOST=") {
			env = append(env, v)
		}
	}
	return append(env, "STORAGE_EMULATOR_HOST="+s.Endpoint, "NO_GCE_CHECK=true")
}

// binary finds the emulator's program.
func binary() (string, error) {
	if given := os.Getenv(binaryVariable); given != "" {
		return given, nil
	}
	if path, err := exec.LookPath("fake-gcs-server"); err == nil {
		return path, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(dir, ".tools", "fake-gcs-server")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("these tests need fake-gcs-server, an emulator of Google Cloud Storage: make tools installs it into .tools; elsewhere: " +
				"go install github.com/fsouza/fake-gcs-server@" + version + ", with the program in the PATH or named by " + binaryVariable)
		}
		dir = up
	}
}

// launch starts the emulator and waits until it makes a bucket.
func (s *Server) launch(ctx context.Context, program string) error {
	ports, err := proctest.FreePorts(1)
	if err != nil {
		return err
	}
	front, err := url.Parse(s.Endpoint)
	if err != nil {
		return err
	}
	s.Bare = "http://127.0.0.1:" + strconv.Itoa(ports[0])
	// Uploads in parts are told where to go on by external-url. Requests keep the host that clients named, which must be public-host.
	cmd := exec.Command(program, "-scheme", "http", "-host", "127.0.0.1", "-port", strconv.Itoa(ports[0]), "-backend", "memory",
		"-public-host", front.Host, "-external-url", s.Endpoint, "-log-level", "warn")
	s.output.Reset()
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	if s.process, err = proctest.Start(cmd, syscall.SIGKILL); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		if _, err = s.NewBucket(ctx); err == nil {
			return nil
		}
		select {
		case <-s.process.Exited():
			return fmt.Errorf("it ended: %w", s.process.Err())
		case <-ctx.Done():
			s.process.Kill()
			return fmt.Errorf("it makes no bucket after %s: %w", startTime, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
