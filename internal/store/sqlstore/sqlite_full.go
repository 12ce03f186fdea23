package sqlstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ncruces/go-sqlite3"
)

// diskFull reports whether a write to the catalog at path failed because the disk had no room for it. The driver calls that "disk I/O error", as
// anything else that goes wrong with a file, and so the disk is asked.
func diskFull(path string, err error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, sqlite3.FULL), errors.Is(err, syscall.ENOSPC):
		return true
	}
	return errors.Is(err, sqlite3.IOERR) && errors.Is(useRoom(filepath.Dir(path)), syscall.ENOSPC)
}

// roomUsed is more than what a small transaction takes.
const roomUsed = 64 << 10

// useRoom writes a file into a directory and removes it.
func useRoom(dir string) error {
	f, err := os.CreateTemp(dir, "room-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, roomUsed))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// plainly says that the disk is full where the driver's words for that are others.
func plainly(path string, err error) error {
	if diskFull(path, err) {
		return fmt.Errorf("the disk is full: %w", err)
	}
	return err
}
