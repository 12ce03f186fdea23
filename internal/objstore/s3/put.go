package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lancerest/lancerest/internal/objstore"
)

// markName is the metadata in which every put leaves a mark of its own.
const markName = "lancerest-put"

// put is one call that puts an object, however often its request is sent.
type put struct {
	key  string
	data []byte
	mark string
	etag string // of the object to replace; "" where there must be none
	// plain says that there is no condition.
	plain bool
	// again says that the request was sent more than once, so that an earlier one may have had its effect.
	again bool
}

// condition returns the two conditions of the put, at most one of them not nil.
func (p put) condition() (ifMatch, ifNoneMatch *string) {
	switch {
	case p.plain:
		return nil, nil
	case p.etag != "":
		return &p.etag, nil
	}
	return nil, aws.String("*")
}

// refusal is the error for a condition that did not hold.
func (p put) refusal() error {
	if p.etag != "" {
		return objstore.ErrChanged
	}
	return objstore.ErrExists
}

// PutIfAbsent implements objstore.Store.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	info, err := s.put(ctx, put{key: key, data: data, mark: rand.Text()})
	if err != nil {
		return objstore.Info{}, fmt.Errorf("put %q: %w", key, err)
	}
	return info, nil
}

// Put implements objstore.Plain.
func (s *Store) Put(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	info, err := s.put(ctx, put{key: key, data: data, mark: rand.Text(), plain: true})
	if err != nil {
		return objstore.Info{}, fmt.Errorf("put %q: %w", key, err)
	}
	return info, nil
}

// PutIf implements objstore.Store.
func (s *Store) PutIf(ctx context.Context, key, etag string, data []byte) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	if anyObject(etag) {
		return objstore.Info{}, fmt.Errorf("replace %q: %w", key, objstore.ErrChanged)
	}
	info, err := s.put(ctx, put{key: key, data: data, mark: rand.Text(), etag: etag})
	if err != nil {
		return objstore.Info{}, fmt.Errorf("replace %q: %w", key, err)
	}
	return info, nil
}

// anyObject reports whether an ETag is one that no object has: none, or what stands for any.
func anyObject(etag string) bool { return etag == "" || etag == "*" }

func (s *Store) put(ctx context.Context, p put) (objstore.Info, error) {
	var etag string
	send := s.putWhole
	if int64(len(p.data)) > 4*s.part {
		send = s.putParts
	}
	var err error
	p.again, err = s.try(ctx, func(ctx context.Context) (err error) {
		etag, err = send(ctx, p)
		return err
	})
	if err == nil {
		return objstore.Info{Key: p.key, Size: int64(len(p.data)), ETag: etag}, nil
	}
	return s.settle(ctx, p, err)
}

// putWhole puts an object in one request and returns its ETag.
func (s *Store) putWhole(ctx context.Context, p put) (string, error) {
	in := &s3.PutObjectInput{
		Bucket: &s.bucket, Key: &p.key, Body: bytes.NewReader(p.data), ContentLength: aws.Int64(int64(len(p.data))), Metadata: map[string]string{markName: p.mark},
	}
	in.IfMatch, in.IfNoneMatch = p.condition()
	out, err := s.client.PutObject(ctx, in)
	if err != nil {
		return "", err
	}
	return aws.ToString(out.ETag), nil
}

// settle says what came of a put that was answered with an error. Where the request was sent again, the condition may have failed because
// of what its first try did: the mark tells.
func (s *Store) settle(ctx context.Context, p put, err error) (objstore.Info, error) {
	a := answerOf(err)
	refused := a.failed() || p.etag != "" && a.absent()
	if p.plain || !refused && !a.conflict() {
		return objstore.Info{}, kind(err)
	}
	if refused && !p.again {
		return objstore.Info{}, p.refusal()
	}
	info, mark, lookErr := s.look(ctx, p.key)
	gone := errors.Is(lookErr, objstore.ErrNotFound)
	switch {
	case lookErr != nil && !gone:
		return objstore.Info{}, lookErr
	case !gone && mark == p.mark:
		return info, nil
	case refused, !gone && p.etag == "", p.etag != "" && info.ETag != p.etag:
		return objstore.Info{}, p.refusal()
	}
	return objstore.Info{}, kind(err) // others were at the same name all the time, and nothing is known
}
