package s3

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
)

// parallelParts is how many parts of an object are sent at once.
const parallelParts = 4

// putParts puts an object in parts and returns its ETag. Its condition is judged at the end, when the parts become an object.
func (s *Store) putParts(ctx context.Context, p put) (string, error) {
	begun, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &s.bucket, Key: &p.key, Metadata: map[string]string{markName: p.mark}})
	if err != nil {
		return "", err
	}
	etag, err := s.complete(ctx, p, aws.ToString(begun.UploadId))
	if err != nil {
		s.abandon(ctx, p.key, begun.UploadId)
		return "", err
	}
	return etag, nil
}

func (s *Store) complete(ctx context.Context, p put, upload string) (string, error) {
	parts, err := s.sendParts(ctx, p, upload)
	if err != nil {
		return "", err
	}
	in := &s3.CompleteMultipartUploadInput{Bucket: &s.bucket, Key: &p.key, UploadId: &upload, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}}
	in.IfMatch, in.IfNoneMatch = p.condition()
	out, err := s.client.CompleteMultipartUpload(ctx, in)
	if err != nil {
		return "", err
	}
	return aws.ToString(out.ETag), nil
}

// sendParts sends the parts of an object, each of them again where that may help.
func (s *Store) sendParts(ctx context.Context, p put, upload string) ([]types.CompletedPart, error) {
	parts := make([]types.CompletedPart, (int64(len(p.data))+s.part-1)/s.part)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelParts)
	for i := range parts {
		number := int32(i + 1)
		data := p.data[int64(i)*s.part : min(int64(i+1)*s.part, int64(len(p.data)))]
		group.Go(func() error {
			_, err := s.try(ctx, func(ctx context.Context) error {
				out, err := s.client.UploadPart(ctx, &s3.UploadPartInput{
					Bucket: &s.bucket, Key: &p.key, UploadId: &upload, PartNumber: &number, Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))),
				})
				if err == nil {
					parts[i] = types.CompletedPart{PartNumber: &number, ETag: out.ETag}
				}
				return err
			})
			if err != nil {
				return &spentError{fmt.Errorf("part %d: %w", number, err)}
			}
			return nil
		})
	}
	return parts, group.Wait()
}

// abandonTime bounds the removal of the parts of an object that could not be put.
const abandonTime = 10 * time.Second

// abandon removes the parts. They are no object, and a bucket's own rules remove those that stay.
func (s *Store) abandon(ctx context.Context, key string, upload *string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTime)
	defer cancel()
	_, _ = s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: &key, UploadId: upload})
}
