package s3_test

import (
	"context"
	"iter"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/objstore/s3"
	"github.com/lancerest/lancerest/internal/objstore/s3/s3test"
)

// server is the S3 server of all tests in this package.
var server *s3test.Server

func TestMain(m *testing.M) {
	os.Exit(s3test.Main(m, func(s *s3test.Server) { server = s }))
}

// open returns a store in the server's bucket.
func open(t *testing.T, change ...func(*s3.Options)) *s3.Store {
	t.Helper()
	o := s3.Options{
		Bucket: server.Bucket, Endpoint: server.Endpoint, Region: server.Region, AccessKeyID: server.AccessKey, SecretAccessKey: server.SecretKey,
		Pause: 10 * time.Millisecond,
	}
	for _, f := range change {
		f(&o)
	}
	s, err := s3.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	objtest.RunWith(t, func(t *testing.T) objstore.Store { return &under{inner: open(t), prefix: server.Prefix()} }, seaweed())
}

// seaweed says what SeaweedFS does otherwise.
func seaweed() objtest.Options {
	// What is in "a/" comes before "a-b", although "-" comes before "/".
	const byDirectory = "SeaweedFS lists directory by directory"
	return objtest.Options{
		Rounds: 1, // those who lose a race wait for whole seconds there
		Except: map[string]string{
			"List/in bytewise order of keys":      byDirectory,
			"List/after the given key":            byDirectory,
			"List/any tree from any start":        byDirectory,
			"Store/keys with a backslash are raw": "SeaweedFS takes a backslash for a slash",
		},
	}
}

// under is a store whose keys lie under a prefix of another one: the tests share one bucket.
type under struct {
	inner  objstore.Store
	prefix string
}

var _ objstore.Store = (*under)(nil)

// full is the key in the inner store; one that is not valid stays so.
func (u *under) full(key string) string {
	if objstore.CheckKey(strings.TrimSuffix(key, "/")) != nil {
		return key
	}
	return u.prefix + key
}

func (u *under) own(info objstore.Info) objstore.Info {
	info.Key = strings.TrimPrefix(info.Key, u.prefix)
	return info
}

func (u *under) Get(ctx context.Context, key string, limit int64) ([]byte, objstore.Info, error) {
	data, info, err := u.inner.Get(ctx, u.full(key), limit)
	return data, u.own(info), err
}

func (u *under) Head(ctx context.Context, key string) (objstore.Info, error) {
	info, err := u.inner.Head(ctx, u.full(key))
	return u.own(info), err
}

func (u *under) PutIfAbsent(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	info, err := u.inner.PutIfAbsent(ctx, u.full(key), data)
	return u.own(info), err
}

func (u *under) PutIf(ctx context.Context, key, etag string, data []byte) (objstore.Info, error) {
	info, err := u.inner.PutIf(ctx, u.full(key), etag, data)
	return u.own(info), err
}

func (u *under) DeleteIf(ctx context.Context, key, etag string) error {
	return u.inner.DeleteIf(ctx, u.full(key), etag)
}

func (u *under) Delete(ctx context.Context, key string) error {
	return u.inner.Delete(ctx, u.full(key))
}

func (u *under) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		if after != "" {
			after = u.prefix + after
		}
		for info, err := range u.inner.List(ctx, u.full(prefix), after) {
			if !yield(u.own(info), err) {
				return
			}
		}
	}
}

func (u *under) DeleteTree(ctx context.Context, prefix string) (int, error) {
	return u.inner.DeleteTree(ctx, u.full(prefix))
}

func (u *under) Folders(ctx context.Context, prefix string) ([]string, error) {
	return objstore.FoldersOf(ctx, u.inner, u.full(prefix))
}
