package lockfile

import (
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// try takes an exclusive lock that ends with the file's closing, also by a crash. It reports false if another holds it.
func try(f *os.File) (bool, error) {
	// The locked byte lies far beyond the text, so that others can read whose lock it is.
	at := &windows.Overlapped{OffsetHigh: math.MaxInt32}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if err == windows.ERROR_LOCK_VIOLATION {
		return false, nil
	}
	return err == nil, err
}
