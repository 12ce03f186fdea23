package azure

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lancerest/lancerest/internal/objstore"
)

// List implements objstore.Store. A page of at most five thousand objects is held at a time. The service cannot begin a listing at a key, so
// that everything before it is read too.
//
// In a hierarchical namespace the order is that of a walk through directories, in which "a/x" comes before "a-b". So once a directory
// shows, what follows is held whole and sorted. What came before has no part in that: a directory comes before all that its name begins.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(objstore.Info{}, fmt.Errorf("list %q: %w", prefix, err))
			return
		}
		walk := false
		var held []objstore.Info
		for item, err := range s.items(ctx, prefix) {
			if err != nil {
				yield(objstore.Info{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
			walk = walk || item.directory
			// Other programs may use names that are no keys.
			if item.directory || objstore.CheckKey(item.info.Key) != nil || item.info.Key <= after {
				continue
			}
			if walk {
				held = append(held, item.info)
			} else if !yield(item.info, nil) {
				return
			}
		}
		slices.SortFunc(held, func(a, b objstore.Info) int { return cmp.Compare(a.Key, b.Key) })
		for _, info := range held {
			if err := ctx.Err(); err != nil {
				yield(objstore.Info{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

// item is one blob of a listing.
type item struct {
	info      objstore.Info
	directory bool
}

// items yields everything whose name begins with prefix, in the service's order.
func (s *Store) items(ctx context.Context, prefix string) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		var marker *string
		for {
			if err := ctx.Err(); err != nil {
				yield(item{}, err)
				return
			}
			page, err := s.page(ctx, prefix, marker)
			if err != nil {
				yield(item{}, kind(err))
				return
			}
			for _, b := range page.Segment.BlobItems {
				found, err := itemOf(b)
				if !yield(found, err) || err != nil {
					return
				}
			}
			if marker = page.NextMarker; marker == nil || *marker == "" {
				return
			}
		}
	}
}

// page gets the part of a listing that begins at a marker.
func (s *Store) page(ctx context.Context, prefix string, marker *string) (container.ListBlobsFlatResponse, error) {
	var page container.ListBlobsFlatResponse
	_, err := s.try(ctx, func() error {
		pager := s.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix, Marker: marker, MaxResults: s.pageSize, Include: container.ListBlobsInclude{Metadata: true}})
		var err error
		page, err = pager.NextPage(ctx)
		return err
	})
	if err == nil && page.Segment == nil {
		return page, fmt.Errorf("the answer is no listing")
	}
	return page, err
}

func itemOf(b *container.BlobItem) (item, error) {
	if b.Name == nil || b.Properties == nil {
		return item{}, fmt.Errorf("the listing has a blob without a name or properties")
	}
	info, err := described(*b.Name, b.Properties.ContentLength, b.Properties.ETag, b.Properties.LastModified)
	return item{info: info, directory: isDirectory(b.Metadata)}, err
}
