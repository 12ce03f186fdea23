package local

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lancerest/lancerest/internal/objstore"
)

// The waits between two tries to take a directory's lock, which others hold for one sync.
const (
	minLockWait = time.Millisecond
	maxLockWait = 16 * time.Millisecond
)

// DeleteIf implements objstore.Store. It is one step for callers of this package on this host (C10): other removals and
// replacements are kept out by the directory's lock, and a put cannot take the name as long as it is there. It is durable when it
// returns, so that an aborted transaction's object does not come back. It waits for the lock until ctx ends.
func (s *Store) DeleteIf(ctx context.Context, key, etag string) error {
	if err := ready(ctx, key); err != nil {
		return err
	}
	if err := s.deleteIf(ctx, key, etag); err != nil {
		return fmt.Errorf("remove %q: %w", key, accessError(err))
	}
	return nil
}

func (s *Store) deleteIf(ctx context.Context, key, etag string) error {
	dir, err := openDirectory(s.root + path.Dir(key))
	if isAbsent(err) {
		return objstore.ErrChanged
	}
	if err != nil {
		return err
	}
	defer dir.close()
	if err := dir.lock(ctx); err != nil {
		return err
	}
	name := path.Base(key)
	if err := dir.match(name, etag); err != nil {
		return err
	}
	err = dir.unlink(name)
	if isAbsent(err) {
		return objstore.ErrChanged // someone who takes no lock removed it
	}
	if err != nil {
		return err
	}
	return dir.sync()
}

// match returns ErrChanged unless name is a regular file with the given ETag. A symbolic link never matches: what would be
// removed is not what the ETag describes.
func (d *directory) match(name, etag string) error {
	stat, err := d.stat(name)
	if isAbsent(err) {
		return objstore.ErrChanged
	}
	if err != nil {
		return err
	}
	if !isRegular(stat) || etagOf(stat) != etag {
		return objstore.ErrChanged
	}
	return nil
}

// lock takes the directory's lock, which close gives back. The kernel drops it when its holder dies.
func (d *directory) lock(ctx context.Context) error {
	for wait := minLockWait; ; wait = min(2*wait, maxLockWait) {
		err := again(func() error { return unix.Flock(d.fd, unix.LOCK_EX|unix.LOCK_NB) })
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("wait for the lock of its directory: %w", ctx.Err())
		case <-timer.C:
		}
	}
}

// Delete implements objstore.Store. It does not sync: a staged manifest or a purged file that a power failure brings back is
// referred to by nobody and is removed by the next cleanup. A directory is not an object, so it counts as absent.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := ready(ctx, key); err != nil {
		return err
	}
	file := s.root + key
	err := again(func() error { return unix.Unlink(file) })
	if err == nil || isAbsent(err) {
		return nil
	}
	// Systems differ in how they refuse to unlink a directory.
	var stat unix.Stat_t
	if again(func() error { return unix.Lstat(file, &stat) }) == nil && stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return nil
	}
	return fmt.Errorf("remove %q: %w", key, accessError(err))
}
