// Package client calls a Lance Namespace REST server from Go: one method for each of the 54 operations, with the structs of package
// api going in and coming out. What a request means is said at its struct.
//
// Every method takes a request that must not be nil, makes exactly one HTTP request, and never retries. When the server answers with
// an error, the method returns an *api.Error, so that api.CodeOf tells what went wrong. An answer with a failing status whose
// body is not an error of the specification, as proxies give, becomes an *api.Error with CodeInternal and the status in its
// text (client contract, fact 24). An id that the delimiter would tear apart is refused with CodeInvalidInput, unsent. Every other error means that the request was not sent, or that its answer was not read: after one of
// these the operation may have happened.
package client

import (
	"net/http"
	"strings"

	"github.com/lancerest/lancerest/api"
)

// Options say how to reach the server; the zero value is ready for a server without authentication. APIKey and AuthToken are sent as
// x-api-key and as a bearer token, and Headers as they are, with every request; the identity and the header.* context of a request win
// over them (client contract, fact 113).
type Options struct {
	APIKey     string
	AuthToken  string
	Headers    map[string]string
	HTTPClient *http.Client // http.DefaultClient when nil
	Delimiter  string       // joins the names of an id in the path; $ when empty
}

// Client is one server as seen by one caller. It is safe for concurrent use.
type Client struct {
	base       string
	options    Options
	operations map[string]api.Operation
}

// New returns a client of the server at baseURL, such as http://127.0.0.1:2333 or one with a path before /v1. Nothing is sent, and a
// URL that is wrong is reported by the first call.
func New(baseURL string, options Options) *Client {
	if options.HTTPClient == nil {
		options.HTTPClient = http.DefaultClient
	}
	if options.Delimiter == "" {
		options.Delimiter = "$"
	}
	c := &Client{base: strings.TrimRight(baseURL, "/"), options: options, operations: map[string]api.Operation{}}
	for _, op := range api.Operations() {
		c.operations[op.Name] = op
	}
	return c
}
