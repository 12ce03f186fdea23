package sqlstore

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrLocked says that another process has the catalog open.
var ErrLocked = errors.New("catalog in use")

// lockFile makes sure that one process alone has the catalog open. The file stays when the lock is gone; its text names the
// process that took it last. The error of a lock that another holds says what to do.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	locked, err := tryLock(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !locked {
		holder, _ := os.ReadFile(path) // for the message only
		return nil, errors.Join(fmt.Errorf("%s is held by process %s: stop that server or choose another directory: %w",
			path, strings.TrimSpace(string(holder)), ErrLocked), f.Close())
	}
	if err := errors.Join(f.Truncate(0), writePID(f)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// InUse reports whether a server has the catalog at path open now.
func InUse(path string) (bool, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether catalog %s is in use: %w", path, err)
	}
	free, err := tryLock(f)
	return !free, errors.Join(err, f.Close())
}

func writePID(f *os.File) error {
	_, err := fmt.Fprintf(f, "%d\n", os.Getpid())
	return err
}
