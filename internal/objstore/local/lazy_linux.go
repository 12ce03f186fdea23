package local

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/lancerest/lancerest/internal/objstore"
)

var _ objstore.Lazy = (*Store)(nil)

// devices are the file systems that were written to without a sync, each by a directory on it that stays open.
type devices struct {
	mu   sync.Mutex
	seen map[uint64]*device
}

type device struct {
	dir   *directory
	dirty bool
}

// PutSoon implements objstore.Lazy: PutIfAbsent without its two syncs.
func (s *Store) PutSoon(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	return s.putAbsent(ctx, key, data, s.putSoon)
}

func (s *Store) putSoon(key string, data []byte) (*unix.Stat_t, error) {
	dir, err := openDirectory(s.root + path.Dir(key))
	if err != nil {
		return nil, err
	}
	defer dir.close()
	name := path.Base(key)
	if _, err := dir.stat(name); err == nil {
		return nil, errors.Join(objstore.ErrExists, s.unsynced.note(dir))
	}
	file, err := create(dir, name, s.anonymous)
	if err != nil {
		return nil, err
	}
	defer file.discard()
	if err := file.fill(data, s.stamp()); err != nil {
		return nil, err
	}
	err = file.link(name)
	if errors.Is(err, unix.EEXIST) {
		err = objstore.ErrExists
	}
	if err != nil && !errors.Is(err, objstore.ErrExists) {
		return nil, err
	}
	return &file.stat, errors.Join(err, s.unsynced.note(dir))
}

// note remembers that the file system of dir has to be synced.
func (d *devices) note(dir *directory) error {
	var stat unix.Stat_t
	if err := again(func() error { return unix.Fstat(dir.fd, &stat) }); err != nil {
		return fmt.Errorf("look at its directory: %v", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.seen[stat.Dev]; known != nil {
		known.dirty = true
		return nil
	}
	kept, err := openDirectory(fmt.Sprint(descriptors, dir.fd))
	if err != nil {
		return fmt.Errorf("keep its directory open: %v", err)
	}
	if d.seen == nil {
		d.seen = map[uint64]*device{}
	}
	d.seen[stat.Dev] = &device{dir: kept, dirty: true}
	return nil
}

// Sync implements objstore.Lazy, with one syncfs(2) a file system. It waits for whatever else is to be written there, so it is for the
// background. Kernels before 5.8 do not report errors of writing here.
func (s *Store) Sync(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var errs []error
	for _, d := range s.unsynced.take() {
		if err := again(func() error { return unix.Syncfs(d.fd) }); err != nil {
			errs = append(errs, fmt.Errorf("sync the file system of %s: %w", d.file.Name(), err))
		}
	}
	return errors.Join(errs...)
}

// take returns a directory of each file system that has to be synced, and takes them as synced from then on.
func (d *devices) take() []*directory {
	d.mu.Lock()
	defer d.mu.Unlock()
	var dirs []*directory
	for _, known := range d.seen {
		if known.dirty {
			dirs, known.dirty = append(dirs, known.dir), false
		}
	}
	return dirs
}

// Restore implements objstore.Lazy.
func (s *Store) Restore(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	return s.putAbsent(ctx, key, data, s.restore)
}

func (s *Store) restore(key string, data []byte) (*unix.Stat_t, error) {
	dir, err := openDirectory(s.root + path.Dir(key))
	if err != nil {
		return nil, err
	}
	defer dir.close()
	file, err := s.stage(dir, path.Base(key), data, false)
	if err != nil {
		return nil, err
	}
	defer file.discard()
	if err := file.rename(path.Base(key)); err != nil {
		return nil, err
	}
	return &file.stat, dir.sync()
}
