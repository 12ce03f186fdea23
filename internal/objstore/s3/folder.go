package s3

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/lancerest/lancerest/internal/objstore"
)

var _ objstore.Folders = (*Store)(nil)

// Folders implements objstore.Folders. One request tells of a thousand directories.
func (s *Store) Folders(ctx context.Context, prefix string) ([]string, error) {
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix, Delimiter: aws.String("/"), EncodingType: types.EncodingTypeUrl}
	var names []string
	for {
		page, err := s.page(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("list the directories in %q: %w", prefix, err)
		}
		for _, common := range page.CommonPrefixes {
			dir, err := decoded(page, aws.ToString(common.Prefix))
			if err != nil {
				return nil, fmt.Errorf("list the directories in %q: the server lists one that cannot be decoded: %w", prefix, err)
			}
			if name := strings.TrimSuffix(strings.TrimPrefix(dir, prefix), "/"); name != "" {
				names = append(names, name)
			}
		}
		if !aws.ToBool(page.IsTruncated) {
			return names, nil
		}
		in.ContinuationToken = page.NextContinuationToken
	}
}

// decoded is a name of a page as it is.
func decoded(page *s3.ListObjectsV2Output, name string) (string, error) {
	if page.EncodingType != types.EncodingTypeUrl {
		return name, nil
	}
	return url.QueryUnescape(name)
}
