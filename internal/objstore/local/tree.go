package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lancerest/lancerest/internal/objstore"
)

const (
	// treeBatch is how many names of one directory are held in memory at a time.
	treeBatch = 1024
	// maxTreePasses bounds how often a directory that should be empty is read again because it is not: someone still writes there.
	maxTreePasses = 32
	// minTreeDepth is how deep below "/" a directory must lie to be removed: a location such as "/home" is a mistake.
	minTreeDepth = 2
)

// DeleteTree implements objstore.Store. It removes the directory itself too. Symbolic links are removed, never followed, also when
// prefix itself is one. Broken off, it is simply called again. ErrInvalidKey also for a directory directly below "/", which no
// table has for itself.
func (s *Store) DeleteTree(ctx context.Context, prefix string) (int, error) {
	if err := objstore.CheckPrefix(prefix); err != nil {
		return 0, err
	}
	target := strings.TrimSuffix(s.root+prefix, "/")
	if strings.Count(target, "/") < minTreeDepth {
		return 0, fmt.Errorf("%w: refuse to remove all of %q, a directory of a table lies deeper", objstore.ErrInvalidKey, target)
	}
	t := tree{}
	if err := t.run(ctx, target); err != nil {
		return t.removed, fmt.Errorf("remove all under %q: %w", prefix, accessError(err))
	}
	return t.removed, nil
}

// tree is one removal and its count.
type tree struct{ removed int }

func (t *tree) run(ctx context.Context, target string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	parent, err := openDirectory(path.Dir(target))
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.close()
	name := path.Base(target)
	stat, err := parent.stat(name)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		err = t.directory(ctx, parent.fd, name)
	case unix.S_IFLNK:
		err = t.entry(ctx, parent.fd, name)
	default:
		return nil // a file: nothing lies under it
	}
	if err != nil {
		return err
	}
	// One sync at the end, so that a purge that was recorded as done does not have to be done again.
	return parent.sync()
}

// entry removes one name of a directory, with all below it.
func (t *tree) entry(ctx context.Context, parent int, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := again(func() error { return unix.Unlinkat(parent, name, 0) })
	switch {
	case err == nil:
		t.removed++
		return nil
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EISDIR), errors.Is(err, unix.EPERM): // systems differ in how they refuse to unlink a directory
		if dirErr := t.directory(ctx, parent, name); !errors.Is(dirErr, unix.ENOTDIR) {
			return dirErr
		}
	}
	return fmt.Errorf("%q: %w", name, err)
}

// directory removes a directory from the bottom up. It works on descriptors and never follows a link, so nobody can lead it
// elsewhere by swapping a directory for a link.
func (t *tree) directory(ctx context.Context, parent int, name string) error {
	for passes := 0; passes < maxTreePasses; {
		full, err := t.pass(ctx, parent, name)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return err
		}
		if full {
			continue
		}
		err = again(func() error { return unix.Unlinkat(parent, name, unix.AT_REMOVEDIR) })
		switch {
		case err == nil, errors.Is(err, unix.ENOENT):
			return nil
		case !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST):
			return fmt.Errorf("%q: %w", name, err)
		}
		passes++
	}
	return fmt.Errorf("%q: new files keep appearing in it", name)
}

// pass removes one batch of what is in a directory and reports whether there may be more. The directory is opened anew for each
// batch: a position in a directory means little once names before it are gone.
func (t *tree) pass(ctx context.Context, parent int, name string) (bool, error) {
	fd, err := openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false, err
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	names, err := dir.Readdirnames(treeBatch)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	for _, n := range names {
		if err := t.entry(ctx, fd, n); err != nil {
			return false, err
		}
	}
	return len(names) == treeBatch, nil
}
