package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lancerest/lancerest/internal/objstore"
)

// Get implements objstore.Store.
func (s *Store) Get(ctx context.Context, key string, limit int64) ([]byte, objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return nil, objstore.Info{}, err
	}
	var data []byte
	var info objstore.Info
	_, err := s.try(ctx, func(ctx context.Context) (err error) {
		data, info, err = s.get(ctx, key, limit)
		return err
	})
	if err != nil {
		return nil, objstore.Info{}, fmt.Errorf("read %q: %w", key, missing(err))
	}
	return data, info, nil
}

func (s *Store) get(ctx context.Context, key string, limit int64) ([]byte, objstore.Info, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: &key})
	if err != nil {
		return nil, objstore.Info{}, err
	}
	defer out.Body.Close()
	size := aws.ToInt64(out.ContentLength)
	switch {
	case out.ContentLength == nil || out.ETag == nil:
		return nil, objstore.Info{}, errors.New("the answer says not both the object's size and its ETag")
	case limit > 0 && size > limit:
		return nil, objstore.Info{}, fmt.Errorf("%w: it has %d bytes, the limit is %d", objstore.ErrTooLarge, size, limit)
	}
	data := make([]byte, size)
	if n, err := io.ReadFull(out.Body, data); err != nil {
		if ctx.Err() != nil {
			return nil, objstore.Info{}, ctx.Err()
		}
		return nil, objstore.Info{}, fmt.Errorf("%w after %d of %d bytes: %w", errCut, n, size, err)
	}
	return data, objstore.Info{Key: key, Size: size, ETag: *out.ETag, Modified: modified(out.LastModified)}, nil
}

// Head implements objstore.Store.
func (s *Store) Head(ctx context.Context, key string) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	info, _, err := s.look(ctx, key)
	if err != nil {
		return objstore.Info{}, fmt.Errorf("look at %q: %w", key, err)
	}
	return info, nil
}

// look describes an object, and tells the mark of the put that made it.
func (s *Store) look(ctx context.Context, key string) (info objstore.Info, mark string, err error) {
	_, err = s.try(ctx, func(ctx context.Context) (err error) {
		info, mark, err = s.firstByte(ctx, key)
		return err
	})
	if err != nil {
		return objstore.Info{}, "", missing(err)
	}
	return info, mark, nil
}

func (s *Store) firstByte(ctx context.Context, key string) (objstore.Info, string, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: &key, Range: aws.String("bytes=0-0")})
	if answerOf(err).status == http.StatusRequestedRangeNotSatisfiable {
		return s.empty(ctx, key)
	}
	if err != nil {
		return objstore.Info{}, "", err
	}
	defer out.Body.Close()
	size, err := sizeOf(out)
	if err != nil {
		return objstore.Info{}, "", err
	}
	if size <= 1 {
		_, _ = io.Copy(io.Discard, out.Body) // so that the connection can be used again
	}
	return objstore.Info{Key: key, Size: size, ETag: aws.ToString(out.ETag), Modified: modified(out.LastModified)}, out.Metadata[markName], nil
}

// empty describes an object without a first byte. It is there, or was a moment ago.
func (s *Store) empty(ctx context.Context, key string) (objstore.Info, string, error) {
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: &key})
	if err != nil {
		return objstore.Info{}, "", err
	}
	return objstore.Info{Key: key, Size: aws.ToInt64(out.ContentLength), ETag: aws.ToString(out.ETag), Modified: modified(out.LastModified)}, out.Metadata[markName], nil
}

// sizeOf is the size of an object of which the first byte was asked for. A server that knows nothing of ranges sends it whole.
func sizeOf(out *s3.GetObjectOutput) (int64, error) {
	if out.ContentRange == nil {
		if out.ContentLength == nil {
			return 0, errors.New("the answer does not say the object's size")
		}
		return *out.ContentLength, nil
	}
	_, total, _ := strings.Cut(*out.ContentRange, "/")
	size, err := strconv.ParseInt(total, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the answer says %q of the object's size", *out.ContentRange)
	}
	return size, nil
}

// modified cuts a time to what every answer can tell, which is whole seconds.
func modified(t *time.Time) time.Time { return aws.ToTime(t).UTC().Truncate(time.Second) }
