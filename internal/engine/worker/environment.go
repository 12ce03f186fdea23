package worker

import (
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
// pip is configured for. It writes what they say to w. An environment that is there already is left as it is.
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
	pins, err := fs.ReadFile(v.Files, requirements)
	if err != nil {
		return "", err
	}
	list := filepath.Join(v.Dir, requirements)
	if err := os.WriteFile(list, pins, 0o644); err != nil {
		return "", err
	}
	made := interpreter(dir)
	for _, command := range [][]string{
		{python, "-c", "import sys; sys.exit(sys.version_info < (3, 10) and 'Python 3.10 or newer is needed')"},
		{python, "-m", "venv", "--clear", dir},
		{made, "-m", "pip", "install", "--disable-pip-version-check", "--only-binary", ":all:", "--requirement", list},
	} {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Env, cmd.Stdout, cmd.Stderr = environment(), w, w
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%q: %w", command, err)
		}
	}
	return made, os.WriteFile(filepath.Join(dir, installedMark), nil, 0o644)
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
