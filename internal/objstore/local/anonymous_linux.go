package local

import (
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const descriptors = "/proc/self/fd/"

// canLinkAnonymous reports whether /proc is there, through which a file without a name gets one. (The way without it needs a
// capability.)
func canLinkAnonymous() bool {
	_, err := os.Stat(descriptors)
	return err == nil
}

// openAnonymous opens a new file on the file system of dir that has no name and vanishes with its descriptor, so that a crash
// leaves nothing behind.
func openAnonymous(dir *directory) (int, error) {
	return openat(dir.fd, ".", unix.O_WRONLY|unix.O_TMPFILE, fileMode)
}

// lacksAnonymous reports whether err of openAnonymous means that this file system has no such files.
func lacksAnonymous(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL)
}

func linkAnonymous(file *os.File, dir *directory, name string) error {
	from := descriptors + strconv.FormatUint(uint64(file.Fd()), 10)
	return again(func() error { return unix.Linkat(unix.AT_FDCWD, from, dir.fd, name, unix.AT_SYMLINK_FOLLOW) })
}

// setTime sets the file's times, through its name if it has one: without /proc there is no other way.
func (f *staged) setTime(at time.Time) error {
	if f.name == "" {
		tv := unix.NsecToTimeval(at.UnixNano())
		return unix.Futimes(int(f.file.Fd()), []unix.Timeval{tv, tv})
	}
	ts := unix.NsecToTimespec(at.UnixNano())
	return unix.UtimesNanoAt(f.dir.fd, f.name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}
