//go:build !linux

package local

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// canLinkAnonymous reports false: only Linux has files without a name that can be given one.
func canLinkAnonymous() bool { return false }

func openAnonymous(*directory) (int, error) { return -1, unix.ENOTSUP }

func lacksAnonymous(error) bool { return true }

func linkAnonymous(*os.File, *directory, string) error { return unix.ENOTSUP }

// setTime sets the file's times.
func (f *staged) setTime(at time.Time) error {
	tv := unix.NsecToTimeval(at.UnixNano())
	return unix.Futimes(int(f.file.Fd()), []unix.Timeval{tv, tv})
}
