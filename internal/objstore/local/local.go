// Package local keeps objects as files of this machine: a key is a path below the store's root, an object is a regular file.
//
// It lives on the file system's own promises. link(2) gives a file its final name once and never over another; flock(2) on the
// directory makes "look, then remove" one step for everyone who goes through this package, in any process of the host; fsync(2)
// of the file and of its directory comes before a put is answered. That holds on a local file system (ext4, XFS, btrfs, tmpfs,
// APFS); on NFS flock does not work on directories and DeleteIf and PutIf fail. docs/decisions/0005-local-put.md has the
// measurements behind the way a file is put.
//
// Keys follow symbolic links as open(2) does: the root is a starting point, not a jail. Which locations are allowed is decided
// by the caller.
package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/lancerest/lancerest/internal/objstore"
)

// Options says where a store is.
type Options struct {
	// Root is the directory that keys are relative to; "" means "/". It must exist.
	Root string
}

// Store is an objstore.Store over files.
type Store struct {
	root      string // absolute, ends in "/"
	anonymous bool   // files without a name can be given one (linux, with /proc)
	lastStamp atomic.Int64
	unsynced  devices
}

var _ objstore.Store = (*Store)(nil)

// New returns the store whose root is o.Root. It fails if that is not a directory: a root that is not mounted must not pass for
// a store without objects.
func New(o Options) (*Store, error) {
	if o.Root == "" {
		o.Root = "/"
	}
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return nil, fmt.Errorf("open local store at %q: %w", o.Root, err)
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, fmt.Errorf("open local store: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open local store at %q: it is not a directory", root)
	}
	return &Store{root: strings.TrimSuffix(root, "/") + "/", anonymous: canLinkAnonymous()}, nil
}

// Get implements objstore.Store. A directory, or anything else that is not a regular file, is ErrNotFound. A file that is cut
// short while it is read is an error of no kind: the next try reads it whole.
func (s *Store) Get(ctx context.Context, key string, limit int64) ([]byte, objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return nil, objstore.Info{}, err
	}
	data, stat, err := read(s.root+key, limit)
	if err != nil {
		return nil, objstore.Info{}, fmt.Errorf("read %q: %w", key, lookupError(err))
	}
	return data, infoOf(key, stat), nil
}

// read returns a file whole with what fstat told of it, so that bytes and ETag belong together.
func read(path string, limit int64) ([]byte, *unix.Stat_t, error) {
	// O_NONBLOCK: opening a named pipe must not wait for its writer.
	fd, err := openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := again(func() error { return unix.Fstat(fd, &stat) }); err != nil {
		return nil, nil, err
	}
	if !isRegular(&stat) {
		return nil, nil, objstore.ErrNotFound
	}
	if limit > 0 && stat.Size > limit {
		return nil, nil, fmt.Errorf("%w: it has %d bytes, the limit is %d", objstore.ErrTooLarge, stat.Size, limit)
	}
	buffer := make([]byte, stat.Size)
	n := 0
	for n < len(buffer) {
		var got int
		if err := again(func() (err error) { got, err = unix.Read(fd, buffer[n:]); return err }); err != nil {
			return nil, nil, err
		}
		if got == 0 {
			break
		}
		n += got
	}
	if n < len(buffer) {
		return nil, nil, errors.New("it was cut short while it was read")
	}
	return buffer, &stat, nil
}

// Head implements objstore.Store.
func (s *Store) Head(ctx context.Context, key string) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	var stat unix.Stat_t
	err := again(func() error { return unix.Stat(s.root+key, &stat) })
	if err == nil && !isRegular(&stat) {
		err = objstore.ErrNotFound
	}
	if err != nil {
		return objstore.Info{}, fmt.Errorf("look at %q: %w", key, lookupError(err))
	}
	return infoOf(key, &stat), nil
}

// ready is the check that opens every method on one key.
func ready(ctx context.Context, key string) error {
	if err := objstore.CheckKey(key); err != nil {
		return err
	}
	return ctx.Err()
}
