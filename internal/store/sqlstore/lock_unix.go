//go:build unix

package sqlstore

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes an exclusive lock that ends with the file's closing, also by a crash. It reports false if another holds it.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}
