package s3

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/lancerest/lancerest/internal/objstore"
)

// DeleteIf implements objstore.Store.
func (s *Store) DeleteIf(ctx context.Context, key, etag string) error {
	if err := ready(ctx, key); err != nil {
		return err
	}
	if anyObject(etag) {
		return fmt.Errorf("remove %q: %w", key, objstore.ErrChanged)
	}
	_, err := s.try(ctx, func(ctx context.Context) error {
		_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &key, IfMatch: &etag})
		return err
	})
	if err == nil {
		return nil
	}
	if a := answerOf(err); a.failed() || a.absent() {
		err = objstore.ErrChanged
	}
	return fmt.Errorf("remove %q: %w", key, kind(err))
}

// Delete implements objstore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := ready(ctx, key); err != nil {
		return err
	}
	if err := s.remove(ctx, key); err != nil {
		return fmt.Errorf("remove %q: %w", key, err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, key string) error {
	_, err := s.try(ctx, func(ctx context.Context) error {
		_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &key})
		return err
	})
	if err = missing(err); errors.Is(err, objstore.ErrNotFound) {
		return nil
	}
	return err
}

// DeleteTree implements objstore.Store. It also removes, and counts, what List passes over: markers of directories, which other programs
// make, and objects whose names are no keys.
func (s *Store) DeleteTree(ctx context.Context, prefix string) (int, error) {
	if err := objstore.CheckPrefix(prefix); err != nil {
		return 0, err
	}
	removed := 0
	for {
		page, err := s.page(ctx, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix, EncodingType: types.EncodingTypeUrl})
		if err == nil && len(page.Contents) == 0 {
			return removed, nil
		}
		if err == nil {
			err = s.removeAll(ctx, page.Contents)
		}
		if err != nil {
			return removed, fmt.Errorf("remove all under %q: %w", prefix, err)
		}
		removed += len(page.Contents)
	}
}

// removeAll removes up to a thousand objects with one request.
func (s *Store) removeAll(ctx context.Context, objects []types.Object) error {
	names := make([]types.ObjectIdentifier, len(objects))
	for i, o := range objects {
		names[i].Key = o.Key
	}
	var out *s3.DeleteObjectsOutput
	_, err := s.try(ctx, func(ctx context.Context) (err error) {
		out, err = s.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &s.bucket, Delete: &types.Delete{Objects: names, Quiet: aws.Bool(true)}})
		return err
	})
	if err != nil {
		return kind(err)
	}
	for _, e := range out.Errors {
		return refusedOf(e)
	}
	return nil
}

// refusedOf is the error for one object that could not be removed with others.
func refusedOf(e types.Error) error {
	err := fmt.Errorf("%q: %s: %s", aws.ToString(e.Key), aws.ToString(e.Code), aws.ToString(e.Message))
	if aws.ToString(e.Code) == "AccessDenied" {
		return fmt.Errorf("%w: %w", objstore.ErrDenied, err)
	}
	return err
}
