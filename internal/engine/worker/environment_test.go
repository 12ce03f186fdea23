package worker_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lancerest/lancerest/internal/engine/worker"
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
