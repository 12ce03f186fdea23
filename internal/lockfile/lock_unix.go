//go:build unix

package lockfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// try takes an exclusive lock that ends with the file's closing, also by a crash. It reports false if another holds it.
func try(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}
