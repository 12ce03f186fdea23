// Package gcs keeps objects in a bucket of Google Cloud Storage, by its JSON API over HTTP.
//
// An object's ETag is its generation in quotes: the number by which this store tells objects of one name apart, and the only thing that
// its conditions compare. Times are those of the object, in whole seconds, as downloads tell them.
//
// What does not live here: which bucket is used for what, and keys for clients (package access/gcp).
package gcs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"

	"github.com/lancerest/lancerest/internal/objstore"
)

// Options say which bucket is meant and how it is reached.
type Options struct {
	// Bucket is the name of the bucket, which must exist.
	Bucket string
	// Endpoint is the URL of the service, such as "http://127.0.0.1:4443". Without it STORAGE_EMULATOR_HOST decides, and otherwise it is
	// Google's.
	Endpoint string
	// Anonymous sends no credentials. Where it is false and neither of the two below is given, the application default credentials are
	// used; but none with STORAGE_EMULATOR_HOST, nor for an endpoint without TLS, where anybody on the way could read them.
	Anonymous bool
	// ServiceAccount is the key of a service account, as JSON.
	ServiceAccount string
	// Token is an access token to use for as long as it lives.
	Token string
	// PageSize is how many objects one request lists (default 1,000, which is the most).
	PageSize int
}

// Requests that failed for a reason that may pass are sent again, after pauses whose lengths are drawn at random up to bounds that double from
// the first to the longest. The pauses of tries are some seconds together: objects of one name may change once a second, and the service throttles
// whoever is faster.
const (
	tries        = 8
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// Store is an objstore.Store in a bucket. Create it with New.
type Store struct {
	client   *storage.Client
	bucket   *storage.BucketHandle
	name     string
	pageSize int         // 0 for the service's
	pauses   gax.Backoff // a copy for each use: it counts
	settings Settings
}

var _ objstore.Store = (*Store)(nil)

// New returns the store in a bucket. It sends no request: whether the bucket is there, and the credentials are good, shows with the first use.
// The error says what is wrong with the options, or that there are no credentials.
func New(ctx context.Context, o Options) (*Store, error) {
	if o.Bucket == "" || strings.Contains(o.Bucket, "/") {
		return nil, fmt.Errorf("bucket %q of Google Cloud Storage: give the name alone, such as \"my-bucket\"", o.Bucket)
	}
	var fresh *auth.Credentials
	own, err := o.credentials(0)
	if err == nil {
		fresh, err = o.credentials(freshness)
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %q of Google Cloud Storage: %w", o.Bucket, err)
	}
	client, err := o.client(ctx, own)
	if err != nil {
		return nil, fmt.Errorf("bucket %q of Google Cloud Storage: %w", o.Bucket, err)
	}
	s := &Store{client: client, name: o.Bucket, pageSize: o.PageSize, settings: Settings{Endpoint: o.endpoint(), Credentials: fresh}}
	s.pause(firstPause, longestPause)
	return s, nil
}

// pause sets the bounds of the first and the longest pause before a request is sent again. It is called before the store is used.
func (s *Store) pause(first, longest time.Duration) {
	s.pauses = gax.Backoff{Initial: first, Max: longest, Multiplier: 2}
	s.client.SetRetry(
		storage.WithBackoff(s.pauses),
		storage.WithMaxAttempts(tries),
		storage.WithPolicy(storage.RetryAlways), // every request here may be carried out twice: see put
		storage.WithErrorFunc(mayPass),
	)
	s.bucket = s.client.Bucket(s.name) // it keeps what was set until now
}

// Close lets go of idle connections. The store may not be used afterwards.
func (s *Store) Close() error { return s.client.Close() }

// Get implements objstore.Store.
func (s *Store) Get(ctx context.Context, key string, limit int64) ([]byte, objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return nil, objstore.Info{}, err
	}
	data, info, err := s.get(ctx, key, limit)
	if err != nil {
		return nil, objstore.Info{}, fmt.Errorf("read %q: %w", key, s.absent(ctx, key, err))
	}
	return data, info, nil
}

func (s *Store) get(ctx context.Context, key string, limit int64) ([]byte, objstore.Info, error) {
	r, err := s.bucket.Object(key).NewReader(ctx)
	if err != nil {
		return nil, objstore.Info{}, err
	}
	defer r.Close()
	size := r.Attrs.Size
	switch {
	case r.Attrs.Decompressed || size < 0 || r.Attrs.Generation == 0:
		// What a content encoding is undone of has another size than the object.
		return nil, objstore.Info{}, errors.New("the answer does not have the object as it is stored: objects with a content encoding are not read")
	case limit > 0 && size > limit:
		return nil, objstore.Info{}, fmt.Errorf("%w: it has %d bytes, the limit is %d", objstore.ErrTooLarge, size, limit)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, objstore.Info{}, err
	}
	// The checksum is compared where the object ends.
	if n, err := io.Copy(io.Discard, r); err != nil {
		return nil, objstore.Info{}, err
	} else if n > 0 {
		return nil, objstore.Info{}, fmt.Errorf("%d bytes follow the %d that were announced", n, size)
	}
	return data, objstore.Info{Key: key, Size: size, ETag: etagOf(r.Attrs.Generation), Modified: modified(r.Attrs.LastModified)}, nil
}

// Head implements objstore.Store.
func (s *Store) Head(ctx context.Context, key string) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	attrs, err := s.bucket.Object(key).Attrs(ctx)
	if err != nil {
		return objstore.Info{}, fmt.Errorf("look at %q: %w", key, s.absent(ctx, key, err))
	}
	return infoOf(attrs), nil
}

func infoOf(attrs *storage.ObjectAttrs) objstore.Info {
	return objstore.Info{Key: attrs.Name, Size: attrs.Size, ETag: etagOf(attrs.Generation), Modified: modified(attrs.Updated)}
}

// modified cuts a time to what every answer can tell: downloads have whole seconds.
func modified(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func etagOf(generation int64) string { return `"` + strconv.FormatInt(generation, 10) + `"` }

// generationOf reads an ETag of ours; false for anything else, which no object has.
func generationOf(etag string) (int64, bool) {
	digits, ok := strings.CutPrefix(etag, `"`)
	if !ok {
		return 0, false
	}
	digits, ok = strings.CutSuffix(digits, `"`)
	generation, err := strconv.ParseInt(digits, 10, 64)
	return generation, ok && err == nil && generation > 0 && etagOf(generation) == etag
}

// ready is the check that opens every method on one key.
func ready(ctx context.Context, key string) error {
	if err := objstore.CheckKey(key); err != nil {
		return err
	}
	if len(key) > keyMax {
		return fmt.Errorf("%w %q…: it has %d bytes, at most %d are allowed", objstore.ErrInvalidKey, key[:80], len(key), keyMax)
	}
	return ctx.Err()
}

// keyMax is the length of the longest name of an object.
const keyMax = 1024
