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
	"strconv"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/lancerest/lancerest/internal/access"
)

// Options say whose keys are used, and how. What is left out comes from the provider's usual places: the environment, profiles, the
// machine's role.
type Options struct {
	Bucket    string
	Endpoint  string // of S3; "" for Amazon's, or the environment's
	Region    string
	PathStyle *bool // default: true with an endpoint, else false
	Profile   string

	AccessKeyID, SecretAccessKey, SessionToken string

	Vend Vending // the zero value: no keys are vended
}

// Vending says how temporary keys are made.
type Vending struct {
	RoleARN     string
	ExternalID  string
	SessionName string // default lancerest
	Endpoint    string // of STS; default: that of S3 unless it is Amazon's, then Amazon's or the environment's
	KMSKeyARN   string // key that the bucket's objects are encrypted with, if any
	Duration    time.Duration
}

// Provider knows one bucket. It is safe for concurrent use.
type Provider struct {
	opts      Options
	config    sdk.Config
	endpoint  string // "" for Amazon's
	pathStyle bool
	sts       *sts.Client
}

// The shortest life that Amazon's token service gives keys.
const amazonLeast = 15 * time.Minute

// ownWindow is how long before their end the operator's own temporary keys are asked for anew, so that clients are not given keys that are
// about to end.
const ownWindow = 2 * access.DefaultMinLife

// New looks up what the options leave out. It speaks to no server; the error says what is missing.
func New(ctx context.Context, opts Options) (*Provider, error) {
	load := []func(*config.LoadOptions) error{
		config.WithCredentialsCacheOptions(func(o *sdk.CredentialsCacheOptions) { o.ExpiryWindow = ownWindow }),
	}
	if opts.Region != "" {
		load = append(load, config.WithRegion(opts.Region))
	}
	if opts.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(opts.Profile))
	}
	if opts.AccessKeyID != "" {
		load = append(load, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(opts.AccessKeyID, opts.SecretAccessKey, opts.SessionToken)))
	}
	loaded, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of AWS: %w", err)
	}
	p := &Provider{opts: opts, config: loaded, endpoint: opts.Endpoint}
	if p.endpoint == "" {
		p.endpoint = sdk.ToString(s3.NewFromConfig(loaded).Options().BaseEndpoint)
	}
	if p.config.Region == "" {
		if p.endpoint == "" || amazon(p.endpoint) {
			return nil, fmt.Errorf("bucket %s: its region is not known: give region, or AWS_REGION", opts.Bucket)
		}
		p.config.Region = "us-east-1"
	}
	p.pathStyle = p.endpoint != ""
	if opts.PathStyle != nil {
		p.pathStyle = *opts.PathStyle
	}
	return p, p.openSTS()
}

// openSTS makes the client of the token service, if keys are to be vended.
func (p *Provider) openSTS() error {
	v := &p.opts.Vend
	if v.RoleARN == "" {
		return nil
	}
	if v.SessionName == "" {
		v.SessionName = "lancerest"
	}
	if v.Endpoint == "" && p.opts.Endpoint != "" && !amazon(p.opts.Endpoint) {
		v.Endpoint = p.opts.Endpoint
	}
	p.sts = sts.NewFromConfig(p.config, func(o *sts.Options) {
		if v.Endpoint != "" {
			o.BaseEndpoint = &v.Endpoint
		}
	})
	if at := sdk.ToString(p.sts.Options().BaseEndpoint); v.Duration < amazonLeast && (at == "" || amazon(at)) {
		return fmt.Errorf("keys are to live for %s: Amazon's token service gives them %s at least", v.Duration, amazonLeast)
	}
	return nil
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
	s := map[string]string{"aws_region": p.config.Region}
	dotted := strings.Contains(p.opts.Bucket, ".") // no certificate is for such a host name
	virtual := !p.pathStyle && (p.endpoint != "" || !dotted)
	s["aws_virtual_hosted_style_request"] = strconv.FormatBool(virtual)
	if p.endpoint == "" {
		return s
	}
	endpoint := strings.TrimRight(p.endpoint, "/")
	if virtual {
		scheme, host, _ := strings.Cut(endpoint, "://")
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
	if p.config.Credentials == nil {
		return access.Keys{}, fmt.Errorf("%w: there are no keys of AWS", access.ErrRefused)
	}
	c, err := p.config.Credentials.Retrieve(ctx)
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
