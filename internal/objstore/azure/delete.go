package azure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/internal/objstore"
)

// batchMax is how many blobs one request may remove.
const batchMax = 256

// parallelDeletes is how many blobs are removed at once where they are removed by themselves.
const parallelDeletes = 16

// DeleteIf implements objstore.Store.
func (s *Store) DeleteIf(ctx context.Context, key, etag string) error {
	if err := ready(ctx, key); err != nil {
		return err
	}
	condition, ok := unchanged(etag)
	if !ok {
		return fmt.Errorf("remove %q: %w", key, objstore.ErrChanged)
	}
	err := s.remove(ctx, key, condition)
	switch {
	case err == nil:
		return nil
	case answerOf(err).failed(), answerOf(err).absent():
		err = objstore.ErrChanged
	}
	return fmt.Errorf("remove %q: %w", key, kind(err))
}

// Delete implements objstore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := ready(ctx, key); err != nil {
		return err
	}
	_, err := s.removeAny(ctx, key)
	return err
}

// removeAny removes whatever is there, and reports whether anything was.
func (s *Store) removeAny(ctx context.Context, name string) (bool, error) {
	err := s.remove(ctx, name, nil)
	if err == nil {
		return true, nil
	}
	if err = missing(err); errors.Is(err, objstore.ErrNotFound) {
		return false, nil
	}
	return false, fmt.Errorf("remove %q: %w", name, err)
}

// remove removes a blob with its snapshots.
func (s *Store) remove(ctx context.Context, name string, condition *blob.ModifiedAccessConditions) error {
	_, err := s.try(ctx, func() error {
		_, err := s.container.NewBlobClient(name).Delete(ctx, &blob.DeleteOptions{
			DeleteSnapshots:  to.Ptr(blob.DeleteSnapshotsOptionTypeInclude),
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: condition},
		})
		return err
	})
	return err
}

// DeleteTree implements objstore.Store. It also removes, and counts, what List passes over: objects whose names are no keys, and
// directories, each after what is in it.
func (s *Store) DeleteTree(ctx context.Context, prefix string) (int, error) {
	if err := checkPrefix(prefix); err != nil {
		return 0, err
	}
	removed, err := s.deleteTree(ctx, prefix)
	if err != nil {
		return removed, fmt.Errorf("remove all under %q: %w", prefix, err)
	}
	return removed, nil
}

func (s *Store) deleteTree(ctx context.Context, prefix string) (int, error) {
	var directories, names []string
	removed := 0
	flush := func() error {
		n, err := s.removeMany(ctx, names)
		removed, names = removed+n, names[:0]
		return err
	}
	for found, err := range s.items(ctx, prefix) {
		if err != nil {
			return removed, err
		}
		if found.directory {
			directories = append(directories, found.info.Key)
			continue
		}
		if names = append(names, found.info.Key); len(names) == batchMax {
			if err := flush(); err != nil {
				return removed, err
			}
		}
	}
	if err := flush(); err != nil {
		return removed, err
	}
	// What is in a directory comes after it in every order of names.
	slices.Sort(directories)
	for _, name := range slices.Backward(directories) {
		gone, err := s.removeAny(ctx, name)
		if err != nil {
			return removed, err
		}
		if gone {
			removed++
		}
	}
	return removed, nil
}

// removeMany removes at most batchMax blobs with one request, and by themselves those of which that failed. It returns how many there were.
func (s *Store) removeMany(ctx context.Context, names []string) (int, error) {
	if len(names) == 0 {
		return 0, nil
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	left, err := s.removeBatch(ctx, names)
	if err != nil {
		return 0, err
	}
	var single atomic.Int64
	var group errgroup.Group
	group.SetLimit(parallelDeletes)
	for _, name := range left {
		group.Go(func() error {
			gone, err := s.removeAny(ctx, name)
			if gone {
				single.Add(1)
			}
			return err
		})
	}
	err = group.Wait()
	return len(names) - len(left) + int(single.Load()), err
}

// removeBatch returns the names that one request for all did not remove. Whatever keeps the batch as a whole from being carried out is left to
// the requests for each: keys for one directory are no keys for the container, of which a batch is asked.
func (s *Store) removeBatch(ctx context.Context, names []string) ([]string, error) {
	var answers []*container.BatchResponseItem
	_, err := s.try(ctx, func() error {
		batch, err := s.container.NewBatchBuilder()
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := batch.Delete(name, &container.BatchDeleteOptions{DeleteOptions: blob.DeleteOptions{DeleteSnapshots: to.Ptr(blob.DeleteSnapshotsOptionTypeInclude)}}); err != nil {
				return err
			}
		}
		response, err := s.container.SubmitBatch(ctx, batch, nil)
		answers = response.Responses
		return err
	})
	if a := answerOf(err); err != nil && a.status == 0 {
		return nil, kind(err)
	}
	done := make([]bool, len(names))
	for _, a := range answers {
		if a.ContentID != nil && *a.ContentID >= 0 && *a.ContentID < len(names) {
			done[*a.ContentID] = a.Error == nil
		}
	}
	var left []string
	for i, name := range names {
		if !done[i] {
			left = append(left, name)
		}
	}
	return left, nil
}
