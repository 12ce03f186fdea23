package gcs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"cloud.google.com/go/storage"
	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/internal/objstore"
)

// parallelDeletes is how many objects of a tree are removed at once: the JSON API removes one with each request.
const parallelDeletes = 32

// DeleteIf implements objstore.Store.
func (s *Store) DeleteIf(ctx context.Context, key, etag string) error {
	if err := ready(ctx, key); err != nil {
		return err
	}
	generation, ok := generationOf(etag)
	if !ok {
		return fmt.Errorf("remove %q: %w", key, objstore.ErrChanged)
	}
	err := s.bucket.Object(key).If(storage.Conditions{GenerationMatch: generation}).Delete(ctx)
	if err == nil {
		return nil
	}
	if status(err) == http.StatusPreconditionFailed {
		err = objstore.ErrChanged
	} else if err = s.absent(ctx, key, err); errors.Is(err, objstore.ErrNotFound) {
		err = objstore.ErrChanged
	}
	return fmt.Errorf("remove %q: %w", key, err)
}

// Delete implements objstore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := ready(ctx, key); err != nil {
		return err
	}
	_, err := s.remove(ctx, key)
	return err
}

// remove reports whether there was something to remove.
func (s *Store) remove(ctx context.Context, key string) (bool, error) {
	err := s.bucket.Object(key).Delete(ctx)
	if err == nil {
		return true, nil
	}
	if err = s.absent(ctx, key, err); errors.Is(err, objstore.ErrNotFound) {
		return false, nil
	}
	return false, fmt.Errorf("remove %q: %w", key, err)
}

// DeleteTree implements objstore.Store. It also removes, and counts, what List passes over: markers of directories, which other
// programs make, and objects whose names are no keys.
func (s *Store) DeleteTree(ctx context.Context, prefix string) (int, error) {
	if err := objstore.CheckPrefix(prefix); err != nil {
		return 0, err
	}
	var removed atomic.Int64
	var failed atomic.Bool
	var group errgroup.Group
	group.SetLimit(parallelDeletes)
	var listErr error
	for attrs, err := range s.objects(ctx, prefix, "") {
		// What is under way when one fails is waited for: it counts.
		if err != nil || failed.Load() {
			listErr = err
			break
		}
		group.Go(func() error {
			gone, err := s.remove(ctx, attrs.Name)
			if gone {
				removed.Add(1)
			}
			if err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	if err := errors.Join(group.Wait(), listErr); err != nil {
		return int(removed.Load()), fmt.Errorf("remove all under %q: %w", prefix, err)
	}
	return int(removed.Load()), nil
}
