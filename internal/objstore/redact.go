package objstore

import (
	"net/url"
	"strings"
)

// WithoutQuery returns an error that may be logged: where it is about requests, its text loses the queries of their URLs, which can hold a
// signature or the id of an upload. What is wrapped stays, for errors.Is and errors.As. Other errors stay as they are.
func WithoutQuery(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, request := range requests(err) {
		text = strings.ReplaceAll(text, request.URL, shown(request.URL))
		if u, parseErr := url.Parse(request.URL); parseErr != nil || u.RawQuery != "" && strings.Contains(text, u.RawQuery) {
			text = "a request to the storage failed" // and how it is written there is not known
		}
	}
	if text == err.Error() {
		return err
	}
	return &quiet{text: text, err: err}
}

// requests finds the errors about requests in everything that an error wraps.
func requests(err error) []*url.Error {
	if request, ok := err.(*url.Error); ok {
		return append(requests(request.Err), request)
	}
	switch wrapping := err.(type) {
	case interface{ Unwrap() error }:
		return requests(wrapping.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*url.Error
		for _, one := range wrapping.Unwrap() {
			all = append(all, requests(one)...)
		}
		return all
	}
	return nil
}

// shown is a URL as a message may have it.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the storage"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// quiet is an error with another text.
type quiet struct {
	text string
	err  error
}

func (e *quiet) Error() string { return e.text }

// Unwrap makes errors.Is and errors.As see what is wrapped.
func (e *quiet) Unwrap() error { return e.err }
