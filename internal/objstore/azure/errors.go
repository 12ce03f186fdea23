package azure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/lancerest/lancerest/internal/objstore"
)

// token is an access token that nobody renews.
type token string

// GetToken implements azcore.TokenCredential.
func (t token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(t), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// answer is what the service said of a request that it did not carry out. The library's own text for it shows the whole answer, which may hold
// what was signed.
type answer struct {
	status  int
	code    bloberror.Code // "" where it came from something else than the service
	request string         // its id, for the service's support
	what    string         // method and address, without the query
}

func (a *answer) Error() string {
	code := string(a.code)
	if code == "" {
		code = http.StatusText(a.status)
	}
	if a.request != "" {
		code += ", request " + a.request
	}
	return fmt.Sprintf("%s: the answer was %d (%s)", a.what, a.status, code)
}

// shorten replaces the library's errors by those that may be logged.
func shorten(err error) error {
	var response *azcore.ResponseError
	if !errors.As(err, &response) {
		return objstore.WithoutQuery(err)
	}
	a := &answer{status: response.StatusCode, code: bloberror.Code(response.ErrorCode), what: "request"}
	if r := response.RawResponse; r != nil {
		a.request = r.Header.Get("x-ms-request-id")
		if r.Request != nil {
			u := *r.Request.URL
			u.RawQuery, u.User = "", nil
			a.what = r.Request.Method + " " + u.String()
		}
	}
	return a
}

// answerOf takes the answer out of an error; the zero answer where there was none.
func answerOf(err error) answer {
	var a *answer
	if errors.As(err, &a) {
		return *a
	}
	return answer{}
}

// absent reports whether the answer proves that there is no such blob. A 404 alone does not: it may be the container that is missing, or
// come from a proxy.
func (a answer) absent() bool {
	return a.status == http.StatusNotFound && a.code == bloberror.BlobNotFound
}

// failed reports whether the condition of a request did not hold. Other reasons have the same statuses, such as a lease.
func (a answer) failed() bool {
	switch a.code {
	case bloberror.ConditionNotMet, bloberror.TargetConditionNotMet:
		return true
	case bloberror.BlobAlreadyExists:
		return a.status == http.StatusConflict || a.status == http.StatusPreconditionFailed
	}
	return a.status == http.StatusNotModified
}

// mayPass reports whether the same request may succeed a moment later.
func mayPass(err error) bool {
	a := answerOf(err)
	var enough *spentError
	switch {
	case errors.As(err, &enough):
		return false
	case a.status >= 500 && a.status != http.StatusNotImplemented, a.status == http.StatusTooManyRequests, a.status == http.StatusRequestTimeout:
		return true
	case a.status != 0:
		return false
	}
	var sending *url.Error
	return errors.As(err, &sending) || errors.Is(err, io.ErrUnexpectedEOF)
}

// kind gives an error the meaning that its status has for every request.
func kind(err error) error {
	var login *azidentity.AuthenticationFailedError
	if errors.As(err, &login) {
		return refusedLogin(login)
	}
	switch a := answerOf(err); {
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		return fmt.Errorf("%w: %w", objstore.ErrDenied, err)
	}
	return err
}

// refusedLogin is the error of a request that was not sent for want of an access token. The library's text for it holds whole answers.
func refusedLogin(login *azidentity.AuthenticationFailedError) error {
	status := 0
	if login.RawResponse != nil {
		status = login.RawResponse.StatusCode
	}
	if status == http.StatusTooManyRequests || status >= 500 {
		return fmt.Errorf("the identity provider answered %d", status)
	}
	return fmt.Errorf("%w: the identity provider gave no access token (its answer was %d)", objstore.ErrDenied, status)
}

// missing is kind for requests that read or remove a blob.
func missing(err error) error {
	if answerOf(err).absent() {
		return objstore.ErrNotFound
	}
	return kind(err)
}

// Requests are sent again after pauses whose lengths are drawn at random up to bounds that double from the first to the longest. A service that
// throttles, or is away for a moment, is through it within tries.
const (
	tries        = 6
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// try sends a request until it succeeds, fails for a reason that will not pass, or has been sent often enough. again reports whether it
// was sent more than once: an earlier one may have had its effect.
func (s *Store) try(ctx context.Context, send func() error) (again bool, err error) {
	bound := s.pause
	for n := 1; ; n++ {
		err := send()
		if err == nil {
			return n > 1, nil
		}
		if ctx.Err() != nil {
			return n > 1, fmt.Errorf("%w, after: %w", ctx.Err(), shorten(err))
		}
		if err = shorten(err); !mayPass(err) || n == tries {
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

// spentError is the error of a request that was sent often enough already, as a part of a larger one.
type spentError struct{ cause error }

func (e *spentError) Error() string { return e.cause.Error() }
func (e *spentError) Unwrap() error { return e.cause }

func spent(err error) error {
	if err == nil {
		return nil
	}
	return &spentError{err}
}
