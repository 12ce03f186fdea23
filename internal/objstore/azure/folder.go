package azure

import (
	"context"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lancerest/lancerest/internal/objstore"
)

var _ objstore.Folders = (*Store)(nil)

// Folders implements objstore.Folders. One request tells of at most five thousand directories.
func (s *Store) Folders(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	var marker *string
	for {
		var page container.ListBlobsHierarchyResponse
		_, err := s.try(ctx, func() (err error) {
			pager := s.container.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: &prefix, Marker: marker, MaxResults: s.pageSize})
			page, err = pager.NextPage(ctx)
			return err
		})
		if err == nil && page.Segment == nil {
			err = fmt.Errorf("the answer is no listing")
		}
		if err != nil {
			return nil, fmt.Errorf("list the directories in %q: %w", prefix, kind(err))
		}
		for _, p := range page.Segment.BlobPrefixes {
			if p.Name == nil {
				continue
			}
			if name := strings.TrimSuffix(strings.TrimPrefix(*p.Name, prefix), "/"); name != "" {
				names = append(names, name)
			}
		}
		if marker = page.NextMarker; marker == nil || *marker == "" {
			return names, nil
		}
	}
}
