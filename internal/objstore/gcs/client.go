package gcs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/httptransport"
	"cloud.google.com/go/storage"
	"google.golang.org/api/option"
)

// emulatorVariable is what all of Google's libraries read to find an emulator, which takes no credentials.
const emulatorVariable = "STORAGE_EMULATOR_HOST"

// scope is what credentials are asked for; what they may do in it is up to the roles of their owner.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// The bounds of one request. What follows the head of an answer has none but the context's.
const (
	dialTimeout   = 5 * time.Second
	answerTimeout = 60 * time.Second
	connections   = 256 // that are kept for the next request
)

// Settings are how the bucket is reached, after everything was looked up. Clients of the same tables need the same.
type Settings struct {
	Endpoint string // URL of the service; "" for Google's own
	// Credentials are the operator's own, for tokens that are handed on: one with less than half an hour to live is renewed first, where its provider
	// makes another. nil where none are sent.
	Credentials *auth.Credentials
}

// freshness is how long a token that is handed on lives at least, where that can be had.
const freshness = 30 * time.Minute

// Settings returns how the store reaches its bucket.
func (s *Store) Settings() Settings { return s.settings }

// endpoint is the URL of the service, "" for Google's own.
func (o Options) endpoint() string {
	endpoint := o.Endpoint
	if host := os.Getenv(emulatorVariable); endpoint == "" && host != "" {
		endpoint = host
		if !strings.Contains(host, "://") {
			endpoint = "http://" + host
		}
	}
	return strings.TrimSuffix(endpoint, "/")
}

// credentials are those to send; nil for none. Their tokens live for least when they are given; 0 leaves that to the library, which renews
// a token in the background shortly before its end.
func (o Options) credentials(least time.Duration) (*auth.Credentials, error) {
	detect := &credentials.DetectOptions{Scopes: []string{scope}, EarlyTokenRefresh: least, DisableAsyncRefresh: least > 0}
	switch {
	case o.Token != "":
		return auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: token(o.Token)}), nil
	case o.ServiceAccount != "":
		found, err := credentials.NewCredentialsFromJSON(credentials.ServiceAccount, []byte(o.ServiceAccount), detect)
		if err != nil {
			return nil, errors.New("the service account's key is none: give the JSON text that Google made, with \"type\": \"service_account\"")
		}
		return found, nil
	case o.Anonymous, o.Endpoint == "" && os.Getenv(emulatorVariable) != "", strings.HasPrefix(strings.ToLower(o.Endpoint), "http://"):
		return nil, nil
	}
	found, err := credentials.DetectDefault(detect)
	if err != nil {
		return nil, fmt.Errorf("%w: name a key file in GOOGLE_APPLICATION_CREDENTIALS, log in with \"gcloud auth application-default login\", or set %s for an emulator", err, emulatorVariable)
	}
	return found, nil
}

// token is a token that nobody renews.
type token string

// Token implements auth.TokenProvider.
func (t token) Token(context.Context) (*auth.Token, error) { return &auth.Token{Value: string(t)}, nil }

// client makes the library's client. It gets an HTTP client that has credentials already: only so can an answer's time be bounded.
func (o Options) client(ctx context.Context, credentials *auth.Credentials) (*storage.Client, error) {
	transport := &httptransport.Options{
		Credentials: credentials, DisableAuthentication: credentials == nil, BaseRoundTripper: roundTripper(), DisableTelemetry: true,
	}
	client, err := httptransport.NewClient(transport)
	if err != nil {
		return nil, err
	}
	options := []option.ClientOption{storage.WithJSONReads(), option.WithHTTPClient(client), option.WithoutAuthentication()}
	if endpoint := o.endpoint(); endpoint != "" {
		options = append(options, option.WithEndpoint(endpoint+"/storage/v1/"))
	}
	return storage.NewClient(ctx, options...)
}

func roundTripper() http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          connections,
		MaxIdleConnsPerHost:   connections,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		ResponseHeaderTimeout: answerTimeout,
	}
}
