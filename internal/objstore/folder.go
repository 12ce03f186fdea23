package objstore

import (
	"context"
	"strings"
)

// Folders is a Store that can tell which directories lie right below a prefix without looking into them.
type Folders interface {
	Store
	// Folders returns the names, without slashes, of the directories right below prefix (itself a directory, ending in "/", or "" for the root
	// of the store) in any order: those in which an object lies at any depth, and on a file system also empty ones and symbolic links to
	// directories. A prefix with nothing below it has none.
	Folders(ctx context.Context, prefix string) ([]string, error)
}

// FoldersOf returns what Folders.Folders does for any store, sorted or not. A store that is no Folders is listed, once for each directory.
func FoldersOf(ctx context.Context, s Store, prefix string) ([]string, error) {
	if f, ok := s.(Folders); ok {
		return f.Folders(ctx, prefix)
	}
	var names []string
	for after := ""; ; {
		name, err := nextFolder(ctx, s, prefix, after)
		if err != nil || name == "" {
			return names, err
		}
		names = append(names, name)
		after = prefix + name + "0" // the character after the slash: what is in the directory comes before
	}
}

// nextFolder returns the first directory below a prefix whose keys come after the given one, "" if there is none.
func nextFolder(ctx context.Context, s Store, prefix, after string) (string, error) {
	for info, err := range s.List(ctx, prefix, after) {
		if err != nil {
			return "", err
		}
		if name, _, below := strings.Cut(strings.TrimPrefix(info.Key, prefix), "/"); below {
			return name, nil
		}
	}
	return "", nil
}
