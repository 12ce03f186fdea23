package objstore

import (
	"errors"
	"net/url"
)

// WithoutQuery returns an error that may be logged: where it is about a request it loses the URL's query, which can hold a signature or the
// id of an upload, together with what was wrapped around it. The cause below is kept for errors.Is. Other errors stay as they are.
func WithoutQuery(err error) error {
	var request *url.Error
	if !errors.As(err, &request) {
		return err
	}
	shown := "storage"
	if u, parseErr := url.Parse(request.URL); parseErr == nil {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		shown = u.String()
	}
	return &url.Error{Op: request.Op, URL: shown, Err: request.Err}
}
