package local

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/lancerest/lancerest/internal/objstore"
)

var _ objstore.Folders = (*Store)(nil)

// Folders implements objstore.Folders. Symbolic links to directories count as directories, wherever they lead.
func (s *Store) Folders(ctx context.Context, prefix string) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.root + prefix)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look into %q: %w", prefix, accessError(err))
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 && isDirectory(s.root+prefix+e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// isDirectory reports whether a path leads to a directory.
func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
