package local

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lancerest/lancerest/internal/objstore"
)

// List implements objstore.Store. Temporary and staged files are listed like others. Files and directories that vanish while it
// runs are passed over. Symbolic links to files under prefix are listed as those files; links that lead elsewhere or to
// directories are not.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		err := objstore.CheckPrefix(prefix)
		if err == nil {
			l := listing{store: s, prefix: prefix, after: after, yield: yield}
			_, err = l.directory(ctx, prefix)
		}
		if err != nil {
			yield(objstore.Info{}, fmt.Errorf("list %q: %w", prefix, accessError(err)))
		}
	}
}

// listing is one walk under one prefix.
type listing struct {
	store  *Store
	prefix string
	after  string
	yield  func(objstore.Info, error) bool
}

// directory yields what is in the directory dir, a key with "/" after it. It reports whether to go on.
func (l *listing) directory(ctx context.Context, dir string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	entries, err := os.ReadDir(l.store.root + dir)
	if isAbsent(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	for _, e := range inKeyOrder(entries) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if more, err := l.entry(ctx, dir+e.name, e.entry); !more || err != nil {
			return false, err
		}
	}
	return true, nil
}

// named is a directory entry with the name that counts for the order.
type named struct {
	name  string
	entry fs.DirEntry
}

// inKeyOrder sorts entries so that the keys below them come in bytewise order: a directory sorts with the "/" that follows its
// name in keys, so "a-b" comes before what is in "a".
func inKeyOrder(entries []fs.DirEntry) []named {
	sorted := make([]named, len(entries))
	for i, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		sorted[i] = named{name, e}
	}
	slices.SortFunc(sorted, func(a, b named) int { return cmp.Compare(a.name, b.name) })
	return sorted
}

// entry yields the object under key, or all in the directory if key ends in "/".
func (l *listing) entry(ctx context.Context, key string, e fs.DirEntry) (bool, error) {
	if e.IsDir() {
		// Everything in it is behind the start, unless the start lies in it.
		if key <= l.after && !strings.HasPrefix(l.after, key) {
			return true, nil
		}
		return l.directory(ctx, key)
	}
	if key <= l.after {
		return true, nil
	}
	stat, err := l.object(key, e)
	if stat == nil {
		return err == nil, err
	}
	return l.yield(infoOf(key, stat), nil), nil
}

// object looks at a file; nil if it is not an object of this listing or is gone.
func (l *listing) object(key string, e fs.DirEntry) (*unix.Stat_t, error) {
	file := l.store.root + key
	if e.Type()&fs.ModeSymlink != 0 {
		inside, err := l.resolve(file)
		if err != nil || inside == "" {
			return nil, err
		}
		file = inside
	}
	var stat unix.Stat_t
	err := again(func() error { return unix.Lstat(file, &stat) })
	if isAbsent(err) || err == nil && !isRegular(&stat) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &stat, nil
}

// resolve returns what a symbolic link leads to if that lies under the listing's prefix, else "".
func (l *listing) resolve(link string) (string, error) {
	base, err := filepath.EvalSymlinks(l.store.root + l.prefix)
	if err != nil {
		return "", absentIsNil(err)
	}
	target, err := filepath.EvalSymlinks(link)
	if err != nil {
		return "", nil // it leads nowhere, in a circle, or where this process may not look
	}
	if !strings.HasPrefix(target, base+"/") {
		return "", nil
	}
	return target, nil
}

func absentIsNil(err error) error {
	if isAbsent(err) {
		return nil
	}
	return err
}
