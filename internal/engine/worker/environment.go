package worker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lockfile"
)

// Environment is what workers run in: the package that they are, and a Python that has the libraries.
type Environment struct {
	// Dir is where both are kept, in directories that are named for their contents, so that servers of several versions can share it.
	Dir string
	// Files are the package and its requirements.txt.
	Files fs.FS
}

const requirements = "requirements.txt"

// Installed returns the Python of the environment, "" if it was not made yet.
func (v Environment) Installed() (string, error) {
	dir, err := v.venv()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, installedMark)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return "", err
	}
	return interpreter(dir), nil
}

// Suits reports whether a Python has all that workers need, in the pinned versions, so that no environment has to be made.
func (v Environment) Suits(ctx context.Context, python string) bool {
	pins, err := fs.ReadFile(v.Files, requirements)
	if err != nil {
		return false
	}
	cmd := exec.CommandContext(ctx, python, "-c", suits)
	cmd.Env, cmd.Stdin = environment(), bytes.NewReader(pins)
	return cmd.Run() == nil
}

// suits compares what is installed with the pins on its standard input.
const suits = `
import sys
from importlib.metadata import PackageNotFoundError, version
wrong = sys.version_info < (3, 10)
for line in sys.stdin:
    name, pinned, wanted = line.partition("#")[0].strip().partition("==")
    try:
        wrong |= bool(pinned) and version(name) != wanted
    except PackageNotFoundError:
        wrong = True
sys.exit(wrong)
`

// installedMark is a file that says that an environment is whole.
const installedMark = "installed"

// venv is the directory of the environment.
func (v Environment) venv() (string, error) {
	pins, err := fs.ReadFile(v.Files, requirements)
	if err != nil {
		return "", err
	}
	return filepath.Abs(filepath.Join(v.Dir, "venv-"+digest(pins)))
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6])
}

// Install makes the environment with a Python that is there, by its venv and pip, which download the libraries from the package index that
// pip is configured for. It writes what they say to w, line by line. An environment that is there already is left as it is, one that was
// begun and not finished is made anew, and one that another process makes now is waited for. Errors: of code Unsupported where the Python is not
// there or will not do, and others.
func (v Environment) Install(ctx context.Context, python string, w io.Writer) (string, error) {
	if there, err := v.Installed(); there != "" || err != nil {
		return there, err
	}
	dir, err := v.venv()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(v.Dir, 0o755); err != nil {
		return "", err
	}
	lock, err := v.lock(ctx, w)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if there, err := v.Installed(); there != "" || err != nil {
		return there, err
	}
	pins, err := fs.ReadFile(v.Files, requirements)
	if err != nil {
		return "", err
	}
	list := filepath.Join(v.Dir, requirements)
	if err := os.WriteFile(list, pins, 0o644); err != nil {
		return "", err
	}
	for _, s := range steps(python, dir, list) {
		if err := s.run(ctx, w, lock); err != nil {
			return "", err
		}
	}
	return interpreter(dir), os.WriteFile(filepath.Join(dir, installedMark), nil, 0o644)
}

// lockEvery is how often a lock that another process has is looked at.
const lockEvery = 200 * time.Millisecond

// lock waits until no other process makes an environment here. The lock ends with the returned file, and with the programs that it was
// handed to: a server that is killed leaves them behind.
func (v Environment) lock(ctx context.Context, w io.Writer) (*os.File, error) {
	for told := false; ; told = true {
		f, err := lockfile.Lock(filepath.Join(v.Dir, "lock"))
		if !errors.Is(err, lockfile.ErrHeld) {
			return f, err
		}
		if !told {
			fmt.Fprintln(w, "Waiting for another process that makes the same environment")
		}
		sleep(ctx, lockEvery)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// step is one program that helps to make an environment.
type step struct {
	what    string // it does
	command []string
	code    api.Code // of its failure
}

// steps are what makes an environment in dir from a list of requirements.
func steps(python, dir, list string) []step {
	const fit = "import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 10) and 'this is Python ' + sys.version.split()[0])"
	return []step{
		{"look for Python 3.10 or newer with its venv module (on Debian and Ubuntu: apt install python3-venv)", []string{python, "-c", fit}, api.CodeUnsupported},
		{"make an empty environment", []string{python, "-m", "venv", "--clear", dir}, api.CodeServiceUnavailable},
		{
			"install the libraries", []string{interpreter(dir), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:", "--requirement", list},
			api.CodeServiceUnavailable,
		},
	}
}

// stepDelay is how long what a program has started may keep its output open after its end.
const stepDelay = 5 * time.Second

// run runs the program, which keeps the lock for as long as it runs. The error ends in the last line that it wrote.
func (s step) run(ctx context.Context, w io.Writer, lock *os.File) error {
	last := &lastLine{w: w}
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = environment(), last, last, stepDelay
	inherit(cmd, lock)
	if err := cmd.Run(); err != nil {
		reason := last.text
		if inner := errors.Unwrap(err); reason == "" && inner != nil {
			reason = inner.Error() // without the path
		}
		return api.Errorf(s.code, "could not %s: %s", s.what, cmp.Or(reason, "it ended without a word")).Because(err)
	}
	return nil
}

// lastLine passes on what is written to it and keeps the last line that is not empty.
type lastLine struct {
	w       io.Writer
	text    string
	pending []byte
}

// Write implements io.Writer.
func (l *lastLine) Write(p []byte) (int, error) {
	l.pending = append(l.pending, p...)
	for {
		line, rest, whole := bytes.Cut(l.pending, []byte("\n"))
		if !whole {
			break
		}
		if text := strings.TrimSpace(string(line)); text != "" {
			l.text = text
		}
		l.pending = rest
	}
	return l.w.Write(p)
}

// Command unpacks the package and returns how a worker is started with a Python.
func (v Environment) Command(python string) (Command, error) {
	code, err := v.unpack()
	if err != nil {
		return Command{}, fmt.Errorf("unpack the worker into %s: %w", v.Dir, err)
	}
	env := []string{"PYTHONPATH=" + code, "PYTHONUNBUFFERED=1"}
	if os.Getenv("LANCE_LOG") == "" {
		env = append(env, "LANCE_LOG=error")
	}
	return Command{Path: python, Args: []string{"-m", "lancerest_worker"}, Env: env}, nil
}

// unpack writes the package where Python finds it, unless it is there.
func (v Environment) unpack() (string, error) {
	var all []byte
	files := map[string][]byte{}
	err := fs.WalkDir(v.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = fs.ReadFile(v.Files, path)
		all = slices.Concat(all, []byte(path), files[path])
		return err
	})
	if err != nil {
		return "", err
	}
	dir, err := filepath.Abs(filepath.Join(v.Dir, "code-"+digest(all)))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(v.Dir, 0o755); err != nil {
		return "", err
	}
	making, err := os.MkdirTemp(v.Dir, "unpacking-")
	if err != nil {
		return "", err
	}
	for path, data := range files {
		at := filepath.Join(making, filepath.FromSlash(path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, data, 0o644)); err != nil {
			return "", errors.Join(err, os.RemoveAll(making))
		}
	}
	if err := os.Rename(making, dir); err != nil {
		// Another server may have been faster.
		if _, there := os.Stat(dir); there != nil {
			return "", errors.Join(err, os.RemoveAll(making))
		}
		return dir, os.RemoveAll(making)
	}
	return dir, nil
}
