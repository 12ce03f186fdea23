package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/lancerest/lancerest/internal/objstore"
)

var _ objstore.Linked = (*Store)(nil)

// Real implements objstore.Linked. A link that leads out of the root is an error.
func (s *Store) Real(ctx context.Context, key string) (string, error) {
	if err := ready(ctx, key); err != nil {
		return "", err
	}
	root, err := filepath.EvalSymlinks(s.root)
	if err != nil {
		return "", fmt.Errorf("follow the links of the root: %w", accessError(err))
	}
	there, missing := s.root+key, ""
	for {
		real, err := filepath.EvalSymlinks(there)
		if err == nil {
			inside, ok := strings.CutPrefix(path.Join(real, missing)+"/", strings.TrimSuffix(root, "/")+"/")
			if !ok {
				return "", fmt.Errorf("%q leads out of the root, to %s", key, real)
			}
			return strings.TrimSuffix(inside, "/"), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || there == s.root {
			return "", fmt.Errorf("follow the links of %q: %w", key, accessError(err))
		}
		if info, err := os.Lstat(there); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return "", fmt.Errorf("%q leads through the symbolic link %s, which leads nowhere", key, there)
		}
		missing, there = path.Join(path.Base(there), missing), path.Dir(there)
	}
}
