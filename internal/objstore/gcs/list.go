package gcs

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"github.com/lancerest/lancerest/internal/objstore"
)

// List implements objstore.Store. A page of at most a thousand objects is held at a time.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		if err := objstore.CheckPrefix(prefix); err != nil {
			yield(objstore.Info{}, fmt.Errorf("list %q: %w", prefix, err))
			return
		}
		for attrs, err := range s.objects(ctx, prefix, after) {
			if err != nil {
				yield(objstore.Info{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
			// Other programs mark directories with empty objects, and may use names that are no keys.
			if objstore.CheckKey(attrs.Name) != nil || attrs.Name <= after {
				continue
			}
			if !yield(infoOf(attrs), nil) {
				return
			}
		}
	}
}

// objects yields everything whose name begins with prefix, from the name after on.
func (s *Store) objects(ctx context.Context, prefix, after string) iter.Seq2[*storage.ObjectAttrs, error] {
	return func(yield func(*storage.ObjectAttrs, error) bool) {
		query := &storage.Query{Prefix: prefix, StartOffset: after, Projection: storage.ProjectionNoACL}
		if err := query.SetAttrSelection([]string{"Name", "Size", "Generation", "Updated"}); err != nil {
			yield(nil, err)
			return
		}
		it := s.bucket.Objects(ctx, query)
		it.PageInfo().MaxSize = s.pageSize
		for {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			attrs, err := it.Next()
			if errors.Is(err, iterator.Done) {
				return
			}
			if err != nil {
				yield(nil, kind(err))
				return
			}
			if !yield(attrs, nil) {
				return
			}
		}
	}
}
