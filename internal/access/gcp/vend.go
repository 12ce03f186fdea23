package gcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials/downscope"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/lance"
)

// Vend exchanges an access token of the operator's for one with a boundary around the directory. It lives as long as the first one still
// does; how long that is, Google decides. It implements access.Vendor.
func (p *Provider) Vend(ctx context.Context, dir lance.Location, grant access.Grant) (access.Keys, error) {
	if err := ctx.Err(); err != nil {
		return access.Keys{}, err
	}
	if p.opts.Credentials == nil {
		return access.Keys{}, fmt.Errorf("%w: there are no credentials of Google's to narrow", access.ErrRefused)
	}
	rules, err := boundary(dir, grant)
	if err != nil {
		return access.Keys{}, err
	}
	universe, err := p.opts.Credentials.UniverseDomain(ctx)
	if err != nil {
		return access.Keys{}, translate(ctx, err, 0)
	}
	answer := &witness{next: p.opts.Transport}
	narrowed, err := downscope.NewCredentials(&downscope.Options{
		Credentials: p.opts.Credentials, Rules: rules, Client: &http.Client{Transport: answer}, UniverseDomain: universe,
	})
	if err != nil {
		return access.Keys{}, fmt.Errorf("%w: %w", access.ErrRefused, err)
	}
	token, err := narrowed.Token(ctx)
	if err != nil {
		return access.Keys{}, translate(ctx, err, answer.status)
	}
	if token.Value == "" || token.Expiry.IsZero() {
		return access.Keys{}, fmt.Errorf("%w: its answer lacks the token or its end", access.ErrRefused)
	}
	keys := access.Keys{Values: map[string]string{tokenKey: token.Value}, Expires: token.Expiry, Life: time.Until(token.Expiry)}
	if !answer.date.IsZero() {
		keys.Expires = answer.date.Add(keys.Life) // by the provider's clock
	}
	return keys, nil
}

// witness notes the status and the time of the last answer, which the library does not tell.
type witness struct {
	next   http.RoundTripper
	status int
	date   time.Time
}

// RoundTrip implements http.RoundTripper.
func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := w.next.RoundTrip(r)
	if err == nil {
		w.status = answer.StatusCode
		w.date, _ = http.ParseTime(answer.Header.Get("Date")) // without one the machine's clock must do
	}
	return answer, err
}

// translate says which of the contract's errors a failure is. status is that of the token service's answer, 0 where there was none.
func translate(ctx context.Context, err error, status int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var own *auth.Error // of the operator's own token
	if errors.As(err, &own) && own.Response != nil {
		status = own.Response.StatusCode
	}
	var unsent *url.Error
	var network net.Error
	if status == http.StatusTooManyRequests || status >= 500 || status == 0 && (errors.As(err, &unsent) || errors.As(err, &network)) {
		return fmt.Errorf("%w: %w", access.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", access.ErrRefused, err)
}
