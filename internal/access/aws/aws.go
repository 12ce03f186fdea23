// Package aws gives clients what they need for tables on S3 and on what speaks it: the settings of the endpoint, the operator's own keys,
// and temporary keys from the token service, by AssumeRole with a session policy that reaches one directory.
//
// What does not live here: the storage itself (objstore/s3), and the keeping of keys (package access).
package aws

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/lancerest/lancerest/internal/access"
)

// Options say how a bucket is reached, as the storage itself reaches it, and how keys for it are made.
type Options struct {
	Bucket      string
	Endpoint    string // of S3; "" for Amazon's
	Region      string
	PathStyle   bool
	Credentials sdk.CredentialsProvider // the operator's own
	Vend        Vending                 // the zero value: no keys are vended
}

// Vending says how temporary keys are made.
type Vending struct {
	RoleARN     string
	ExternalID  string
	SessionName string // default lancerest
	// Endpoint of STS. The default is AWS_ENDPOINT_URL_STS, or that of S3 unless it is Amazon's, or Amazon's in the region.
	Endpoint  string
	KMSKeyARN string // key that the bucket's objects are encrypted with, if any
	Duration  time.Duration
}

// Provider knows one bucket. It is safe for concurrent use.
type Provider struct {
	opts Options
	sts  *sts.Client // nil where no keys are vended
}

// The shortest life that Amazon's token service gives keys.
const amazonLeast = 15 * time.Minute

// New returns a provider. It speaks to no server; the error says what is wrong with the options.
func New(opts Options) (*Provider, error) {
	p := &Provider{opts: opts}
	v := &p.opts.Vend
	if *v == (Vending{}) {
		return p, nil
	}
	if v.SessionName == "" {
		v.SessionName = "lancerest"
	}
	if v.Endpoint == "" {
		v.Endpoint = os.Getenv("AWS_ENDPOINT_URL_STS")
		if u, err := url.Parse(v.Endpoint); err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			// It is not repeated: it may hold a password.
			return nil, fmt.Errorf("bucket %s: AWS_ENDPOINT_URL_STS must be a URL such as https://sts.example.org, without a user, a query or a fragment", opts.Bucket)
		}
	}
	if v.Endpoint == "" && !amazon(opts.Endpoint) {
		v.Endpoint = opts.Endpoint
	}
	if v.Duration < amazonLeast && (v.Endpoint == "" || amazon(v.Endpoint)) {
		return nil, fmt.Errorf("bucket %s: keys are to live for %s, and Amazon's token service gives them %s at least", opts.Bucket, v.Duration, amazonLeast)
	}
	o := sts.Options{Region: opts.Region, Credentials: opts.Credentials}
	if v.Endpoint != "" {
		o.BaseEndpoint = &v.Endpoint
	}
	p.sts = sts.New(o)
	return p, nil
}

// amazon reports whether an endpoint is one of Amazon's own.
func amazon(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".amazonaws.com.cn") || strings.HasSuffix(host, ".api.aws")
}

// Settings are what clients need beside keys, under the names that Lance's object store reads. With the bucket in the host name that
// store takes an endpoint as the bucket's own.
func (p *Provider) Settings() map[string]string {
	s := map[string]string{"aws_region": p.opts.Region, "aws_virtual_hosted_style_request": strconv.FormatBool(!p.opts.PathStyle)}
	if p.opts.Endpoint == "" {
		return s
	}
	endpoint := strings.TrimRight(p.opts.Endpoint, "/")
	if scheme, host, ok := strings.Cut(endpoint, "://"); ok && !p.opts.PathStyle {
		endpoint = scheme + "://" + p.opts.Bucket + "." + host
	}
	s["aws_endpoint"] = endpoint
	if strings.HasPrefix(strings.ToLower(endpoint), "http://") {
		s["allow_http"] = "true"
	}
	return s
}

// Own returns the operator's own keys. ErrRefused where there are none, ErrUnavailable where whoever has them does not answer.
func (p *Provider) Own(ctx context.Context) (access.Keys, error) {
	if p.opts.Credentials == nil {
		return access.Keys{}, fmt.Errorf("%w: there are no keys of AWS", access.ErrRefused)
	}
	c, err := p.opts.Credentials.Retrieve(ctx)
	// The SDK keeps keys to their end; the machine has new ones before.
	cache, kept := p.opts.Credentials.(interface{ Invalidate() })
	if err == nil && kept && c.CanExpire && time.Until(c.Expires) < access.DefaultMinLife {
		cache.Invalidate()
		c, err = p.opts.Credentials.Retrieve(ctx)
	}
	if err != nil {
		return access.Keys{}, translate(ctx, err)
	}
	if !c.HasKeys() {
		return access.Keys{}, fmt.Errorf("%w: there are no keys of AWS", access.ErrRefused)
	}
	keys := keysOf(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)
	if c.CanExpire {
		keys.Expires = c.Expires
	}
	return keys, nil
}

// keysOf puts keys under Lance's names.
func keysOf(id, secret, token string) access.Keys {
	values := map[string]string{"aws_access_key_id": id, "aws_secret_access_key": secret}
	if token != "" {
		values["aws_session_token"] = token
	}
	return access.Keys{Values: values}
}

// errNoSTS is a mistake of the program.
var errNoSTS = errors.New("keys are to be vended, and no role was given")
