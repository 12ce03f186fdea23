package s3

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/lancerest/lancerest/internal/objstore"
)

// answer is what a server said of a request that it did not carry out. The zero answer is none at all.
type answer struct {
	status int
	code   string
}

// answerOf takes the answer out of an error of the SDK.
func answerOf(err error) answer {
	var a answer
	var status interface {
		error
		HTTPStatusCode() int
	}
	if errors.As(err, &status) {
		a.status = status.HTTPStatusCode()
	}
	var code interface {
		error
		ErrorCode() string
	}
	if errors.As(err, &code) {
		a.code = code.ErrorCode()
	}
	return a
}

// absent reports whether the answer proves that there is no such object. A 404 alone does not: it may be the bucket that is missing, or
// come from a proxy.
func (a answer) absent() bool { return a.status == http.StatusNotFound && a.code == "NoSuchKey" }

// failed reports whether the condition of a request did not hold. A completed upload in parts says so inside of an answer with status 200.
func (a answer) failed() bool {
	return a.status == http.StatusPreconditionFailed || a.status == http.StatusNotModified || a.code == "PreconditionFailed"
}

// conflict reports that another request on the same name was under way, so that the condition was not judged.
func (a answer) conflict() bool { return a.status == http.StatusConflict }

// unsupported reports that the server does not know what was asked of it, such as a condition.
func (a answer) unsupported() bool {
	return a.status == http.StatusNotImplemented || a.code == "NotImplemented"
}

// mayPass reports whether the same request may succeed a moment later.
func mayPass(err error) bool {
	a := answerOf(err)
	passing := []string{"SlowDown", "RequestTimeout", "RequestTimeoutException", "InternalError", "ServiceUnavailable", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests", "XMinioServerNotInitialized"}
	var spent *spentError
	switch {
	case a.unsupported(), errors.As(err, &spent):
		return false
	case a.status >= 500, a.status == http.StatusTooManyRequests, a.status == http.StatusRequestTimeout, a.conflict(), slices.Contains(passing, a.code):
		return true
	case a.status >= 300:
		return false
	}
	var sending interface {
		error
		ConnectionError() bool
	}
	return errors.As(err, &sending) || errors.Is(err, errCut)
}

// spentError is the error of a request that was sent often enough already, as a part of a larger one.
type spentError struct{ cause error }

func (e *spentError) Error() string { return e.cause.Error() }
func (e *spentError) Unwrap() error { return e.cause }

// errCut is an answer whose body ended before its end.
var errCut = errors.New("the answer was cut short")

// kind gives an error the meaning that its status has for every request.
func kind(err error) error {
	a := answerOf(err)
	err = objstore.WithoutQuery(err)
	switch {
	case a.unsupported():
		return fmt.Errorf("%w: %w", objstore.ErrUnsupported, err)
	case a.code == "InvalidObjectState": // archived, which is told with 403
		return err
	case a.status == http.StatusForbidden, a.status == http.StatusUnauthorized:
		return fmt.Errorf("%w: %w", objstore.ErrDenied, err)
	}
	return err
}

// missing is kind for requests that read an object.
func missing(err error) error {
	if answerOf(err).absent() {
		return objstore.ErrNotFound
	}
	return kind(err)
}

// Requests are sent again after pauses whose lengths are drawn at random up to bounds that double from the first to the longest. A store that
// throttles, or is away for a moment, is through it within tries.
const (
	tries        = 6
	firstPause   = 100 * time.Millisecond
	longestPause = 3 * time.Second
)

// try sends a request until it succeeds, fails for a reason that will not pass, or has been sent often enough. again reports whether it
// was sent more than once: an earlier one may have had its effect.
func (s *Store) try(ctx context.Context, send func(context.Context) error) (again bool, err error) {
	bound := s.pause
	for n := 1; ; n++ {
		err := send(ctx)
		if err == nil || !mayPass(err) || n == tries {
			return n > 1, err
		}
		timer := time.NewTimer(rand.N(bound))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return n > 1, fmt.Errorf("%w, after: %w", ctx.Err(), err)
		}
		bound = min(2*bound, longestPause)
	}
}
