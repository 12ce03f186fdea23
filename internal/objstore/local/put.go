package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/lancerest/lancerest/internal/objstore"
)

// Files and directories are made with the rights that Lance clients give theirs, less the umask, so that clients of the same
// group can work in directories that the server made and the other way round.
const (
	fileMode      = 0o666
	directoryMode = 0o777
)

// maxPutTries bounds how often a put makes its directory again when someone else keeps removing it.
const maxPutTries = 8

// PutIfAbsent implements objstore.Store. The bytes are on the disk before the name appears, and the name before the answer, so
// a crash leaves the object whole or not at all (C6). Missing directories are made. A directory that is in the way of the key
// counts as ErrExists; a file in the way of one of its directories is an error of no kind.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	return s.putAbsent(ctx, key, data, s.putIfAbsent)
}

// putAbsent makes the directory of a key that is put where it is missing; put is one try.
func (s *Store) putAbsent(ctx context.Context, key string, data []byte, put func(string, []byte) (*unix.Stat_t, error)) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	var stat *unix.Stat_t
	var err error
	for range maxPutTries {
		stat, err = put(key, data)
		if !errors.Is(err, unix.ENOENT) {
			break
		}
		// The directory is missing, or was removed while the file was written.
		if err = s.makeDirectory(path.Dir(key)); err != nil {
			break
		}
		err = errors.New("its directory was removed again and again")
	}
	if err != nil {
		return objstore.Info{}, fmt.Errorf("put %q: %w", key, accessError(err))
	}
	return infoOf(key, stat), nil
}

// putIfAbsent is one try; ENOENT means that the directory is not there.
func (s *Store) putIfAbsent(key string, data []byte) (*unix.Stat_t, error) {
	dir, err := openDirectory(s.root + path.Dir(key))
	if err != nil {
		return nil, err
	}
	defer dir.close()
	name := path.Base(key)
	// One look spares the loser of most races two writes to the disk. link decides.
	if _, err := dir.stat(name); err == nil {
		return nil, settle(dir, name)
	}
	file, err := s.stage(dir, name, data, s.anonymous)
	if err != nil {
		return nil, err
	}
	defer file.discard()
	switch err := file.link(name); {
	case errors.Is(err, unix.EEXIST):
		return nil, settle(dir, name)
	case err != nil:
		return nil, err
	}
	file.discard() // before the sync, which then covers the end of the temporary name too
	return &file.stat, dir.sync()
}

// settle answers ErrExists, but first makes what stands under the name durable: its writer may have linked it a moment ago and
// not yet synced, and Lance's own writers never sync, while our caller may go on to commit because it is there (C6, C9).
func settle(dir *directory, name string) error {
	fd, err := openat(dir.fd, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err == nil {
		file := os.NewFile(uintptr(fd), name)
		defer file.Close()
		if err := file.Sync(); err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: a pipe or the like
			return fmt.Errorf("sync the object that is there: %w", err)
		}
	}
	if err := dir.sync(); err != nil {
		return fmt.Errorf("sync the object that is there: %w", err)
	}
	return objstore.ErrExists
}

// PutIf implements objstore.Store. Readers see the old object or the new one, never a mixture. Only callers of this package are
// held off between the look and the replacement: a client that writes the same tag file itself at that moment can lose its write,
// as it can to another such client.
func (s *Store) PutIf(ctx context.Context, key, etag string, data []byte) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	stat, err := s.putIf(ctx, key, etag, data)
	if err != nil {
		return objstore.Info{}, fmt.Errorf("replace %q: %w", key, accessError(err))
	}
	return infoOf(key, stat), nil
}

func (s *Store) putIf(ctx context.Context, key, etag string, data []byte) (*unix.Stat_t, error) {
	dir, err := openDirectory(s.root + path.Dir(key))
	if isAbsent(err) {
		return nil, objstore.ErrChanged
	}
	if err != nil {
		return nil, err
	}
	defer dir.close()
	name := path.Base(key)
	if err := dir.match(name, etag); err != nil {
		return nil, err
	}
	// Written before the lock is taken, so that the lock is held for a rename only. It needs a name: link cannot replace.
	file, err := s.stage(dir, name, data, false)
	if err != nil {
		return nil, err
	}
	defer file.discard()
	if err := dir.lock(ctx); err != nil {
		return nil, err
	}
	if err := dir.match(name, etag); err != nil {
		return nil, err
	}
	if err := file.rename(name); err != nil {
		return nil, err
	}
	return &file.stat, dir.sync()
}

// makeDirectory makes the directory rel below the root, and those above it, and makes each new name durable. Directories that
// someone else made are not synced up to the root: on journaling file systems the sync of a file in them takes them along.
func (s *Store) makeDirectory(rel string) error {
	mkdir := func() error {
		return again(func() error { return unix.Mkdir(s.root+rel, directoryMode) })
	}
	err := mkdir()
	if errors.Is(err, unix.ENOENT) && rel != "." {
		if err := s.makeDirectory(path.Dir(rel)); err != nil {
			return err
		}
		err = mkdir()
	}
	// EEXIST: another caller was faster and may not have synced yet.
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make its directory: %w", err)
	}
	parent, err := openDirectory(s.root + path.Dir(rel))
	if err != nil {
		return fmt.Errorf("make its directory: %w", err)
	}
	defer parent.close()
	return parent.sync()
}
