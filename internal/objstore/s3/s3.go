// Package s3 keeps objects in a bucket of Amazon S3, or of a server that speaks its protocol.
//
// What it builds upon: a PUT with If-None-Match: * that creates an object or refuses, a PUT and a DELETE with If-Match that do the same for
// one content, and answers that are true the moment they are given. Whether a server keeps that must be tried (package catalog probes
// every root); servers exist that ignore a condition, and answer 200. A conditional COPY is never used: most ignore its condition.
//
// Requests that failed for a reason that may pass are sent again. A put carries a mark of its own, by which one that was sent again
// recognises the work of its first try. Describing an object is a GET of its first byte, because the answer to a HEAD has no body, and
// only that tells an absent object from an absent bucket.
//
// What does not live here: which bucket is used for what, and keys for clients (package access/aws).
package s3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lancerest/lancerest/internal/objstore"
)

// Options say which bucket is meant and how it is reached. What is empty is taken from where every program that uses AWS's SDK takes it:
// the environment (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and so on), the shared configuration files, the
// web identity of a pod, the role of the container or the machine.
type Options struct {
	// Bucket is the name of the bucket, which must exist.
	Bucket string
	// Endpoint is the URL of the server, "" for what the environment says or else Amazon's own.
	Endpoint string
	// Region of the bucket. Where nobody says one it is us-east-1 with an endpoint, and an error without.
	Region string
	// PathStyle says whether the bucket stands in the path of URLs or in their host name. nil: AWS_VIRTUAL_HOSTED_STYLE_REQUEST decides, and
	// otherwise it is the path with an endpoint and for a bucket whose name no certificate covers.
	PathStyle *bool
	// Profile of the shared configuration files.
	Profile string
	// Keys to use instead of those that would be found; the session's token only where they are temporary.
	AccessKeyID, SecretAccessKey, SessionToken string
	// PartSize is the size of the parts in which an object is put that has more bytes than four of them (default 16 MiB, at least 5 MiB).
	PartSize int64
	// Pause is the bound of the first pause before a request is sent again (default 100 ms).
	Pause time.Duration

	dial string // where every connection goes instead, in tests of host names
}

// partLeast is the smallest part that S3 takes.
const partLeast = 5 << 20

// Store is an objstore.Store in a bucket. Create it with New.
type Store struct {
	client *s3.Client
	bucket string
	part   int64
	pause  time.Duration
}

var _ objstore.Plain = (*Store)(nil)

// New returns the store in a bucket. It sends no request: whether the bucket is there, and the keys are good, shows with the first use. The
// error says what is wrong with the options or with the files that they refer to.
func New(ctx context.Context, o Options) (*Store, error) {
	if o.Bucket == "" || strings.Contains(o.Bucket, "/") {
		return nil, fmt.Errorf("S3 bucket %q: give the name alone, such as \"my-bucket\"", o.Bucket)
	}
	if (o.AccessKeyID == "") != (o.SecretAccessKey == "") {
		return nil, fmt.Errorf("S3 bucket %q: an access key and its secret go together, and one is missing", o.Bucket)
	}
	cfg, err := config.LoadDefaultConfig(ctx, o.load()...)
	if err != nil {
		return nil, fmt.Errorf("S3 bucket %q: %w", o.Bucket, err)
	}
	cfg.Logger = nil // it would write to the standard error by itself
	client := s3.NewFromConfig(cfg, o.set)
	if client.Options().Region == "" {
		return nil, fmt.Errorf("S3 bucket %q: its region is not known: set AWS_REGION, or AWS_ENDPOINT_URL for a server that is not Amazon's", o.Bucket)
	}
	if err := checkEndpoint(aws.ToString(client.Options().BaseEndpoint)); err != nil {
		return nil, fmt.Errorf("S3 bucket %q: %w", o.Bucket, err)
	}
	s := &Store{client: client, bucket: o.Bucket, part: o.PartSize, pause: o.Pause}
	if s.part == 0 {
		s.part = 16 << 20
	}
	if s.part < partLeast {
		return nil, fmt.Errorf("S3 bucket %q: parts of %d bytes, and at least %d are allowed", o.Bucket, s.part, partLeast)
	}
	if s.pause == 0 {
		s.pause = firstPause
	}
	return s, nil
}

// checkEndpoint wants the URL of a server. It is not repeated: somebody may have put a password there.
func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("its endpoint (of the options, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_ENDPOINT or the profile) must be a URL such as https://s3.example.org, without a user, a query or a fragment")
	}
	return nil
}

// load says what the SDK is to look for, and where.
func (o Options) load() []func(*config.LoadOptions) error {
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(httpClient(o.dial)),
		// This package sends again by itself, because what the answer means depends on it.
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		// Checksums in trailers are refused by many servers that are not Amazon's. The signature covers what is put.
		config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
		config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired),
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	if o.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(o.Profile))
	}
	if o.AccessKeyID != "" {
		keys := aws.Credentials{AccessKeyID: o.AccessKeyID, SecretAccessKey: o.SecretAccessKey, SessionToken: o.SessionToken, Source: "configuration"}
		load = append(load, config.WithCredentialsProvider(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil })))
	}
	return load
}

// set settles what depends on where the server is, once the SDK has found that out.
func (o Options) set(client *s3.Options) {
	if o.Endpoint != "" {
		client.BaseEndpoint = &o.Endpoint
	} else if other := os.Getenv("AWS_ENDPOINT"); client.BaseEndpoint == nil && other != "" {
		client.BaseEndpoint = &other // the name that Lance's clients read
	}
	if client.Region == "" && client.BaseEndpoint != nil {
		client.Region = "us-east-1"
	}
	switch virtual := strings.ToLower(os.Getenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST")); {
	case o.PathStyle != nil:
		client.UsePathStyle = *o.PathStyle
	case virtual != "":
		client.UsePathStyle = virtual != "true" && virtual != "1"
	default:
		client.UsePathStyle = client.BaseEndpoint != nil || strings.Contains(o.Bucket, ".")
	}
}

// Settings are how the bucket is reached, after everything was looked up. Clients of the same tables need the same.
type Settings struct {
	Endpoint  string // "" for Amazon's own
	Region    string
	PathStyle bool
	// Credentials finds the operator's own keys.
	Credentials aws.CredentialsProvider
}

// Settings returns how the store reaches its bucket.
func (s *Store) Settings() Settings {
	o := s.client.Options()
	return Settings{Endpoint: aws.ToString(o.BaseEndpoint), Region: o.Region, PathStyle: o.UsePathStyle, Credentials: o.Credentials}
}

// The bounds of one request. What follows the head of an answer has none but the context's.
const (
	dialTimeout   = 5 * time.Second
	answerTimeout = 60 * time.Second
	idleTimeout   = 60 * time.Second
	connections   = 256 // that are kept for the next request
)

func httpClient(dial string) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithDialerOptions(func(d *net.Dialer) {
		d.Timeout = dialTimeout
	}).WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = connections, connections
		t.IdleConnTimeout, t.ResponseHeaderTimeout = idleTimeout, answerTimeout
		if direct := t.DialContext; dial != "" {
			t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) { return direct(ctx, network, dial) }
		}
	})
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

// keyMax is the length of the longest key that S3 takes.
const keyMax = 1024
