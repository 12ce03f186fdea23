package gcs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"github.com/lancerest/lancerest/internal/objstore"
)

var _ objstore.Folders = (*Store)(nil)

// Folders implements objstore.Folders. One request tells of a thousand directories.
func (s *Store) Folders(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	for it := s.bucket.Objects(ctx, &storage.Query{Prefix: prefix, Delimiter: "/", Projection: storage.ProjectionNoACL}); ; {
		attrs, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list the directories in %q: %w", prefix, kind(err))
		}
		if name := strings.TrimSuffix(strings.TrimPrefix(attrs.Prefix, prefix), "/"); name != "" {
			names = append(names, name)
		}
	}
}
