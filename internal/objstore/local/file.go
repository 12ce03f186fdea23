package local

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lancerest/lancerest/internal/objstore"
)

// infoOf describes a file. Its ETag has the form that Lance's own storage library gives to local files, in quotes: inode,
// modification time in microseconds and size, in hexadecimal (specification, appendix A).
func infoOf(key string, stat *unix.Stat_t) objstore.Info {
	return objstore.Info{Key: key, Size: stat.Size, ETag: etagOf(stat), Modified: modified(stat)}
}

func etagOf(stat *unix.Stat_t) string {
	// Times before 1970 count as 1970, as they do for clients.
	micros := max(modified(stat).UnixMicro(), 0)
	return fmt.Sprintf("\"%x-%x-%x\"", stat.Ino, micros, stat.Size)
}

func modified(stat *unix.Stat_t) time.Time { return time.Unix(stat.Mtim.Unix()) }

func isRegular(stat *unix.Stat_t) bool { return stat.Mode&unix.S_IFMT == unix.S_IFREG }

// stamp returns the modification time for a new file: now, but later than every stamp before it. The kernel's own times
// advance in steps of milliseconds and inodes are used again, so a file put right after another of its size was removed could
// get the same ETag, and a late DeleteIf meant for the first would remove the second (C10).
func (s *Store) stamp() time.Time {
	for {
		last, now := s.lastStamp.Load(), time.Now().UnixMicro()
		if now <= last {
			now = last + 1
		}
		if s.lastStamp.CompareAndSwap(last, now) {
			return time.UnixMicro(now)
		}
	}
}

// lookupError translates an error of a look at a name. Only ENOENT and ENOTDIR prove absence; whatever else the system
// answers stays as it is, so that an outage never passes for it.
func lookupError(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return objstore.ErrNotFound
	}
	return accessError(err)
}

// accessError translates what every call can meet: a refusal, and a name that no file system here can hold.
func accessError(err error) error {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: %w", objstore.ErrDenied, err)
	case errors.Is(err, unix.ENAMETOOLONG):
		return fmt.Errorf("%w: %w", objstore.ErrInvalidKey, err)
	}
	return err
}

// isAbsent reports whether err proves that a name, or a directory on the way to it, is not there.
func isAbsent(err error) bool { return errors.Is(lookupError(err), objstore.ErrNotFound) }

// again repeats a system call that a signal broke off.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// openat opens name relative to the directory dir. The descriptor is not passed on to child processes.
func openat(dir int, name string, flags int, mode uint32) (int, error) {
	fd := -1
	err := again(func() (err error) {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode)
		return err
	})
	return fd, err
}

// directory is an open directory: names are looked up in it, whatever happens to its own path.
type directory struct {
	fd   int
	file *os.File
}

// openDirectory opens the directory at path, which is followed if it is a symbolic link.
func openDirectory(path string) (*directory, error) {
	fd, err := openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return &directory{fd: fd, file: os.NewFile(uintptr(fd), path)}, nil
}

// close also gives back the lock, if it was taken.
func (d *directory) close() { _ = d.file.Close() }

// sync makes the names in d durable.
func (d *directory) sync() error { return d.file.Sync() }

// stat looks at a name itself, not at what it may link to.
func (d *directory) stat(name string) (*unix.Stat_t, error) {
	var stat unix.Stat_t
	err := again(func() error { return unix.Fstatat(d.fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return nil, err
	}
	return &stat, nil
}

func (d *directory) unlink(name string) error {
	return again(func() error { return unix.Unlinkat(d.fd, name, 0) })
}
