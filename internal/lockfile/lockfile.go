// Package lockfile keeps a second process from what one process at a time may have open. The lock is the system's, so that it ends with
// its process, however that ends.
//
// What does not live here: what the lock is for.
package lockfile

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrHeld says that another process holds the lock.
var ErrHeld = errors.New("in use")

// Lock takes the lock of the file at path, which is made if it is missing, until the returned file is closed. The file stays when the lock is
// gone; its text names the process that took it last. It returns ErrHeld, with a text that says by whom and what to do, if another holds it.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	locked, err := try(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !locked {
		holder, _ := os.ReadFile(path) // for the message only
		return nil, errors.Join(fmt.Errorf("%s is held by process %s: stop that server or choose another directory: %w",
			path, strings.TrimSpace(string(holder)), ErrHeld), f.Close())
	}
	if err := errors.Join(f.Truncate(0), writePID(f)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Held reports whether a process holds the lock of the file at path now.
func Held(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	free, err := try(f)
	return !free, errors.Join(err, f.Close())
}

func writePID(f *os.File) error {
	_, err := fmt.Fprintf(f, "%d\n", os.Getpid())
	return err
}
