package worker_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/engine/worker"
	"github.com/lancerest/lancerest/internal/lockfile"
	files "github.com/lancerest/lancerest/workers/lance"
)

// TestUnpack: the package is unpacked once, whole, and another version of it beside the first.
func TestUnpack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unpack := func(text string) string {
		t.Helper()
		files := fstest.MapFS{"requirements.txt": {Data: []byte("pylance==1")}, "lancerest_worker/a/b.py": {Data: []byte(text)}}
		c, err := worker.Environment{Dir: dir, Files: files}.Command("py")
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range c.Env {
			if at, ok := strings.CutPrefix(v, "PYTHONPATH="); ok {
				got, err := os.ReadFile(filepath.Join(at, "lancerest_worker", "a", "b.py"))
				if err != nil || string(got) != text {
					t.Errorf("unpacked %q, %v", got, err)
				}
				return at
			}
		}
		t.Fatalf("no PYTHONPATH in %q", c.Env)
		return ""
	}
	first, again, second := unpack("one"), unpack("one"), unpack("two")
	if first != again || first == second {
		t.Errorf("unpacked into %s, %s and %s", first, again, second)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%d directories, %v, want the two", len(entries), err)
	}
}

// TestSuits: a Python will do as it is where it has every library in its pinned version.
func TestSuits(t *testing.T) {
	t.Parallel()
	suits := func(python, pins string) bool {
		return worker.Environment{Files: fstest.MapFS{"requirements.txt": {Data: []byte(pins)}}}.Suits(t.Context(), python)
	}
	pins, err := fs.ReadFile(files.Files, "requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !suits(python(t), string(pins)) {
		t.Error("the Python of the tests, which has the pinned libraries, will not do")
	}
	for _, wrong := range []string{"pylance==0.0.1 # another\n", "# none\nno-such-library==1\n"} {
		if suits(python(t), wrong) {
			t.Errorf("it has %q", wrong)
		}
	}
	if suits(filepath.Join(t.TempDir(), "none"), "") {
		t.Error("a Python that is not there will do")
	}
}

// TestInstalled: an environment counts only once it is whole, and only for the versions it was made with.
func TestInstalled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := worker.Environment{Dir: dir, Files: fstest.MapFS{"requirements.txt": {Data: []byte("pylance==1")}}}
	installed := func(env worker.Environment) string {
		t.Helper()
		python, err := env.Installed()
		if err != nil {
			t.Fatal(err)
		}
		return python
	}
	if got := installed(env); got != "" {
		t.Errorf("installed at %s before it is", got)
	}
	var log strings.Builder
	if _, err := env.Install(t.Context(), filepath.Join(dir, "no-python"), &log); err == nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("install with a Python that is not there: %v", err)
	}
	if got := installed(env); got != "" {
		t.Errorf("installed at %s after a failure", got)
	}
}

// TestInstall makes an environment by a real Python, of no library at all, which needs no package index.
func TestInstall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := worker.Environment{Dir: dir, Files: fstest.MapFS{"requirements.txt": {Data: []byte("# nothing\n")}}}
	var log strings.Builder
	made, err := env.Install(t.Context(), python(t), &log)
	if err != nil {
		t.Fatalf("%v:\n%s", err, log.String())
	}
	again, err := env.Install(t.Context(), "not asked for", &log)
	if err != nil || again != made {
		t.Errorf("installed again: %s, %v, want %s", again, err, made)
	}
	if _, err := os.Stat(made); err != nil {
		t.Error(err)
	}
	env.Files = fstest.MapFS{"requirements.txt": {Data: []byte("# something else\n")}}
	if other, err := env.Installed(); err != nil || other != "" {
		t.Errorf("other versions are installed at %s, %v", other, err)
	}
}

// TestInstallTogether: two processes that make one environment at once make it once; one that was killed half-way, whose pip goes on, is waited for,
// and then made anew.
func TestInstallTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := worker.Environment{Dir: dir, Files: fstest.MapFS{"requirements.txt": {Data: []byte("# nothing\n")}}}
	held, err := lockfile.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	// What a killed process leaves behind: a program that has the lock still, and half of an environment.
	left := exec.Command(python(t), "-c", "input()")
	input, err := left.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	left.ExtraFiles = []*os.File{held}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan struct{})
	var logs [2]strings.Builder
	var made [2]string
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			w := io.Writer(&logs[i])
			if i == 0 {
				w = io.MultiWriter(w, &signal{on: waiting})
			}
			var err error
			if made[i], err = env.Install(t.Context(), python(t), w); err != nil {
				t.Errorf("%v:\n%s", err, logs[i].String())
			}
		})
	}
	<-waiting
	if got, err := env.Installed(); got != "" || err != nil {
		t.Errorf("installed at %s, %v, while another process has the lock", got, err)
	}
	if err := errors.Join(input.Close(), ignoreExit(left.Wait())); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if made[0] == "" || made[0] != made[1] {
		t.Errorf("made %q", made)
	}
	if !strings.Contains(logs[0].String(), "another process") {
		t.Errorf("it does not say what it waits for: %s", logs[0].String())
	}
}

// ignoreExit is an error of a program unless that merely ended by one of its own.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// signal is closed by the first write.
type signal struct {
	on   chan struct{}
	once sync.Once
}

func (s *signal) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.on) })
	return len(p), nil
}

// TestInstallFails: what pip said last is in the error, which names no path of this machine, and nothing counts as installed.
func TestInstallFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := worker.Environment{Dir: dir, Files: fstest.MapFS{"requirements.txt": {Data: []byte("nothing @ file:///nowhere/nothing-1-py3-none-any.whl\n")}}}
	var log strings.Builder
	_, err := env.Install(t.Context(), python(t), &log)
	if api.CodeOf(err) != api.CodeServiceUnavailable || !strings.Contains(err.Error(), "install the libraries: ERROR: ") || strings.Contains(err.Error(), dir) {
		t.Errorf("install: %v", err)
	}
	if got, err := env.Installed(); got != "" || err != nil {
		t.Errorf("installed at %s, %v", got, err)
	}
}
