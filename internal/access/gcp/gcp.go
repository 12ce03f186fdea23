// Package gcp gives clients what they need for tables on Google Cloud Storage: the settings of an endpoint, the operator's own keys, and
// temporary tokens that a credential access boundary narrows to one directory.
//
// What does not live here: the storage itself (objstore/gcs), and the keeping of keys (package access).
package gcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"cloud.google.com/go/auth"

	"github.com/lancerest/lancerest/internal/access"
)

// The names that Lance's clients read.
const (
	tokenKey    = "google_storage_token"
	accountKey  = "google_service_account_key"
	endpointKey = "google_base_url"
)

// emulated is a service account without a key, by which Lance's clients know that no credentials are wanted. Their setting for that
// (google_skip_signature) is heeded by reads alone.
const emulated = `{"disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}`

// Options say how a bucket is reached, as the storage itself reaches it.
type Options struct {
	Bucket      string
	Endpoint    string            // of the service; "" for Google's
	Credentials *auth.Credentials // the operator's own; nil where none are sent, as to an emulator
	// Transport sends requests to the token service (default: http.DefaultTransport).
	Transport http.RoundTripper
}

// Provider knows one bucket. It is safe for concurrent use.
type Provider struct {
	opts Options
}

// New returns a provider. It speaks to no server.
func New(opts Options) *Provider {
	if opts.Transport == nil {
		opts.Transport = http.DefaultTransport
	}
	return &Provider{opts: opts}
}

// Settings are what clients need beside keys, under the names that Lance's object store reads. Google's own service needs none.
func (p *Provider) Settings() map[string]string {
	s := map[string]string{}
	if p.opts.Endpoint != "" {
		s[endpointKey] = p.opts.Endpoint
	}
	if strings.HasPrefix(strings.ToLower(p.opts.Endpoint), "http://") {
		s["allow_http"] = "true"
	}
	if p.opts.Credentials == nil {
		s[accountKey] = emulated
	}
	return s
}

// Own returns the operator's own keys: that of a service account where it is one, else an access token. ErrRefused where there are none,
// ErrUnavailable where whoever gives tokens does not answer.
func (p *Provider) Own(ctx context.Context) (access.Keys, error) {
	own := p.opts.Credentials
	if own == nil {
		return access.Keys{}, fmt.Errorf("%w: there are no credentials of Google's", access.ErrRefused)
	}
	var account struct{ Type string }
	if key := own.JSON(); json.Unmarshal(key, &account) == nil && account.Type == "service_account" {
		return access.Keys{Values: map[string]string{accountKey: string(key)}}, nil
	}
	token, err := own.Token(ctx)
	if err != nil {
		return access.Keys{}, translate(ctx, err, 0)
	}
	return access.Keys{Values: map[string]string{tokenKey: token.Value}, Expires: token.Expiry}, nil
}
