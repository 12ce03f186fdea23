package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/client"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
)

// asProgram makes this test's binary the program itself.
const asProgram = "LANCEREST_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program returns a command that runs the program in an environment of its own.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = []string{asProgram + "=1"}
	return cmd
}

// run runs the program to its end and returns its exit code and what it printed.
func run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	out, err := program(t, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		return exit.ExitCode(), string(out)
	}
	return 0, string(out)
}

// serving is the program as a server.
type serving struct {
	*client.Client
	cmd *exec.Cmd
	log *bytes.Buffer
}

// startServer starts the program as a server on a data directory and waits until it says where it listens.
func startServer(t *testing.T, args ...string) serving {
	t.Helper()
	cmd := program(t, append([]string{"serve", "--listen=127.0.0.1:0"}, args...)...)
	log := &bytes.Buffer{}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "listening on "); ok {
			url, _, _ := strings.Cut(rest, ";")
			return serving{Client: client.New(url, client.Options{}), cmd: cmd, log: log}
		}
	}
	t.Fatalf("the server did not start: %s", log)
	return serving{}
}

// stop asks the server to stop as an operator does, and fails the test unless it ends well.
func (s serving) stop(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v: %s", err, s.log)
	}
}

// fill declares a table with two versions and returns the path of the first one's manifest.
func (s serving) fill(t *testing.T) string {
	t.Helper()
	ctx := context.Background()
	declared, err := s.DeclareTable(ctx, &api.DeclareTableRequest{Target: api.At("t")})
	if err != nil {
		t.Fatal(err)
	}
	loc, err := lance.ParseLocation(*declared.Location)
	if err != nil {
		t.Fatal(err)
	}
	for v := lance.VersionNumber(1); v <= 2; v++ {
		key := lance.ManifestKey(loc.Key(), lance.Main, v, lance.SchemeV2) + "-staged"
		if err := os.MkdirAll(filepath.Dir("/"+key), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("/"+key, lancetest.Manifest(lancetest.Spec{Version: v}), 0o644); err != nil {
			t.Fatal(err)
		}
		req := &api.CreateTableVersionRequest{Target: api.At("t"), StagedVersion: api.StagedVersion{Version: int64(v), ManifestPath: key}}
		if _, err := s.CreateTableVersion(ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	return "/" + lance.ManifestKey(loc.Key(), lance.Main, 1, lance.SchemeV2)
}

// TestServeAndCheck runs the program as an operator does: a server, a check beside it and after it, a repair; with the exit codes that
// scripts look at.
func TestServeAndCheck(t *testing.T) {
	t.Parallel()
	data := "--data=" + t.TempDir()
	s := startServer(t, data, "--log-level=info")
	manifest := s.fill(t)
	if code, out := run(t, "serve", data, "--listen=127.0.0.1:0"); code == 0 || !strings.Contains(out, "stop that server") {
		t.Errorf("a second server exits with %d and says %s", code, out)
	}
	if code, out := run(t, "check", data); code != 0 || !strings.Contains(out, "checked 1 tables with 2 versions: 0 wrong, 0 mended") {
		t.Errorf("a check beside the server exits with %d and says %s", code, out)
	}
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		code, out := run(t, "check", data)
		if code != 1 || !strings.Contains(out, `missing: table "t"`) || !strings.Contains(out, "version 1") || !strings.Contains(out, "--repair would: mark it pruned") {
			t.Errorf("a check with something wrong exits with %d and says %s", code, out)
		}
	}
	s.stop(t)
	if !strings.Contains(s.log.String(), "operation=CreateTableVersion") || !strings.Contains(s.log.String(), "stopping") {
		t.Errorf("the log lacks its requests or its end: %s", s.log)
	}
	if code, out := run(t, "check", data, "--repair"); code != 0 || !strings.Contains(out, "mended: mark it pruned") || !strings.Contains(out, "0 wrong, 1 mended") {
		t.Errorf("a repair exits with %d and says %s", code, out)
	}
	if code, out := run(t, "check", data); code != 0 || !strings.Contains(out, "0 wrong, 0 mended") {
		t.Errorf("a check after the repair exits with %d and says %s", code, out)
	}
}

// TestEnvironment: what flags can say the environment can say too, and flags win.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	cmd := program(t, "serve", "--listen=127.0.0.1:0")
	cmd.Env = append(cmd.Env, "LANCEREST_DATA="+t.TempDir(), "LANCEREST_LIMITS_BATCH=nonsense")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "LANCEREST_LIMITS_BATCH") {
		t.Errorf("%v, %s; want an error that names the variable", err, out)
	}
	cmd = program(t, "serve", "--listen=127.0.0.1:0", "--limits-idle-time=1s")
	cmd.Env = append(cmd.Env, "LANCEREST_DATA="+t.TempDir(), "LANCEREST_LIMITS_IDLE_TIME=1h")
	if out, err = cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "idle time 1s") {
		t.Errorf("%v, %s; want that the flag wins", err, out)
	}
}

// TestVersion: the version is one line.
func TestVersion(t *testing.T) {
	t.Parallel()
	if code, out := run(t, "version"); code != 0 || !strings.HasPrefix(out, "lancerest ") || strings.Count(out, "\n") != 1 {
		t.Errorf("exits with %d and says %q", code, out)
	}
	if code, out := run(t, "nonsense"); code == 0 || !strings.Contains(out, "nonsense") {
		t.Errorf("an unknown command exits with %d and says %q", code, out)
	}
}
