package gcs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"

	"github.com/lancerest/lancerest/internal/objstore"
)

// status is the HTTP status of an answer; 0 where there was none.
func status(err error) int {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return answer.Code
	}
	return 0
}

// throttled reports whether the answer is that there were too many requests, which some quotas say with 403.
func throttled(err error) bool {
	var answer *googleapi.Error
	if !errors.As(err, &answer) {
		return false
	}
	return answer.Code == http.StatusTooManyRequests || slices.ContainsFunc(reasons(answer), func(item googleapi.ErrorItem) bool {
		return slices.Contains([]string{"rateLimitExceeded", "userRateLimitExceeded"}, item.Reason)
	})
}

// reasons are those of an answer. The library does not read them for downloads.
func reasons(answer *googleapi.Error) []googleapi.ErrorItem {
	var body struct {
		Error struct{ Errors []googleapi.ErrorItem }
	}
	if len(answer.Errors) > 0 || json.Unmarshal([]byte(answer.Body), &body) != nil {
		return answer.Errors
	}
	return body.Error.Errors
}

// mayPass reports whether the same request may succeed a moment later: 408, 429 and 5xx, a connection that failed or ended.
func mayPass(err error) bool {
	var broken *net.OpError // such as a write to a connection that the other side has closed, which the client takes for final
	return throttled(err) || storage.ShouldRetry(err) || errors.Is(err, io.EOF) || errors.As(err, &broken)
}

// kind gives an error the meaning that its status has for every request. Whether a 404 proves that an object is absent is asked in absent;
// everywhere else it does not.
func kind(err error) error {
	err = objstore.WithoutQuery(err)
	if code := status(err); (code == http.StatusUnauthorized || code == http.StatusForbidden) && !throttled(err) {
		return fmt.Errorf("%w: %w", objstore.ErrDenied, err)
	}
	return err
}

// absent is kind for requests that read or remove an object. A 404 says that the object or its bucket is missing, and only the
// text of the answer tells which. Where that text is the known one for objects it is believed; otherwise a listing decides, which an existing bucket
// alone answers.
func (s *Store) absent(ctx context.Context, key string, err error) error {
	var answer *googleapi.Error
	if !errors.As(err, &answer) || answer.Code != http.StatusNotFound {
		return kind(err)
	}
	const ofObject = "No such object: "
	if strings.HasPrefix(answer.Message, ofObject) || strings.HasPrefix(answer.Body, ofObject) {
		return objstore.ErrNotFound
	}
	_, listErr := s.bucket.Objects(ctx, &storage.Query{Prefix: key, Projection: storage.ProjectionNoACL}).Next()
	switch {
	case listErr == nil, errors.Is(listErr, iterator.Done):
		return objstore.ErrNotFound
	case status(listErr) == http.StatusNotFound:
		return fmt.Errorf("bucket %q does not exist, or was removed", s.name)
	}
	return fmt.Errorf("whether the object or its bucket is missing is not known: %w", kind(listErr))
}
