package s3

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/lancerest/lancerest/internal/objstore"
)

// List implements objstore.Store. A page of a thousand objects is held at a time.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		if err := objstore.CheckPrefix(prefix); err != nil {
			yield(objstore.Info{}, fmt.Errorf("list %q: %w", prefix, err))
			return
		}
		for object, err := range s.objects(ctx, prefix, after) {
			if err != nil {
				yield(objstore.Info{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
			// Other programs mark directories with empty objects, and may use names that are no keys.
			if objstore.CheckKey(*object.Key) != nil {
				continue
			}
			info := objstore.Info{Key: *object.Key, Size: aws.ToInt64(object.Size), ETag: aws.ToString(object.ETag), Modified: modified(object.LastModified)}
			if !yield(info, nil) {
				return
			}
		}
	}
}

// objects yields everything whose name begins with prefix, after the given name.
func (s *Store) objects(ctx context.Context, prefix, after string) iter.Seq2[types.Object, error] {
	return func(yield func(types.Object, error) bool) {
		in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix, EncodingType: types.EncodingTypeUrl}
		if after != "" {
			in.StartAfter = &after
		}
		for {
			page, err := s.page(ctx, in)
			if err != nil {
				yield(types.Object{}, err)
				return
			}
			for _, object := range page.Contents {
				if !yield(object, nil) {
					return
				}
			}
			if !aws.ToBool(page.IsTruncated) {
				return
			}
			in.ContinuationToken, in.StartAfter = page.NextContinuationToken, nil
		}
	}
}

// page reads one page of a listing. Keys come percent-encoded, because XML cannot hold every one.
func (s *Store) page(ctx context.Context, in *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var page *s3.ListObjectsV2Output
	_, err := s.try(ctx, func(ctx context.Context) (err error) {
		page, err = s.client.ListObjectsV2(ctx, in)
		return err
	})
	if err != nil {
		return nil, kind(err)
	}
	if aws.ToBool(page.IsTruncated) && aws.ToString(page.NextContinuationToken) == "" {
		return nil, errors.New("the server says that there is more, and not where it goes on")
	}
	for i, object := range page.Contents {
		key := aws.ToString(object.Key)
		if page.EncodingType == types.EncodingTypeUrl {
			if key, err = url.QueryUnescape(key); err != nil {
				return nil, fmt.Errorf("the server lists a key that cannot be decoded: %w", err)
			}
		}
		page.Contents[i].Key = &key
	}
	return page, nil
}
