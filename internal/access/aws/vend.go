package aws

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/lance"
)

// Vend assumes the role with a session policy for the directory: what the role may do and the policy allows. It implements
// access.Vendor.
func (p *Provider) Vend(ctx context.Context, dir lance.Location, grant access.Grant) (access.Keys, error) {
	if err := ctx.Err(); err != nil {
		return access.Keys{}, err
	}
	v := p.opts.Vend
	if p.sts == nil {
		return access.Keys{}, errNoSTS
	}
	policy, err := sessionPolicy(policyOptions{partition: partition(v.RoleARN), dir: dir, grant: grant, kmsKey: v.KMSKeyARN})
	if err != nil {
		return access.Keys{}, err
	}
	in := &sts.AssumeRoleInput{
		RoleArn: &v.RoleARN, RoleSessionName: sdk.String(sessionName(v.SessionName, dir)), Policy: &policy,
		DurationSeconds: sdk.Int32(int32(min(v.Duration/time.Second, math.MaxInt32))),
	}
	if v.ExternalID != "" {
		in.ExternalId = &v.ExternalID
	}
	asked := time.Now()
	out, err := p.sts.AssumeRole(ctx, in)
	if err != nil {
		return access.Keys{}, translate(ctx, err)
	}
	c := out.Credentials
	if c == nil || sdk.ToString(c.AccessKeyId) == "" || sdk.ToString(c.SecretAccessKey) == "" || sdk.ToString(c.SessionToken) == "" || c.Expiration == nil {
		return access.Keys{}, fmt.Errorf("%w: its answer lacks a key, the session's token or their end", access.ErrRefused)
	}
	keys := keysOf(*c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken)
	keys.Expires = *c.Expiration
	served, ok := middleware.GetServerTime(out.ResultMetadata)
	if !ok {
		served = asked
	}
	keys.Life = min(keys.Expires.Sub(served), v.Duration)
	return keys, nil
}

// sessionNameMax is the most characters of a session's name.
const sessionNameMax = 64

// sessionName names the session for the provider's logs, with the table's directory, as far as its characters are allowed.
func sessionName(prefix string, dir lance.Location) string {
	last := dir.Key()[strings.LastIndexByte(dir.Key(), '/')+1:]
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' || strings.ContainsRune("_=.@-", r)) {
			return r
		}
		return '_'
	}, prefix+"-"+last)
	return name[:min(len(name), sessionNameMax)]
}

// translate says which of the contract's errors the token service's answer is. The text holds names of roles and ids of requests.
func translate(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var response *http.ResponseError
	var unsent *smithyhttp.RequestSendError
	var coded smithy.APIError
	var tooLong *types.PackedPolicyTooLargeException
	switch {
	case errors.As(err, &tooLong):
		return fmt.Errorf("%w: its policy, packed by the token service, is too long: %w", access.ErrUnfit, err)
	case errors.As(err, &unsent):
		return fmt.Errorf("%w: %w", access.ErrUnavailable, err)
	case errors.As(err, &response) && (response.HTTPStatusCode() >= 500 || response.HTTPStatusCode() == 429):
		return fmt.Errorf("%w: %w", access.ErrUnavailable, err)
	}
	if errors.As(err, &coded) {
		if _, throttled := retry.DefaultThrottleErrorCodes[coded.ErrorCode()]; throttled {
			return fmt.Errorf("%w: %w", access.ErrUnavailable, err)
		}
	}
	return fmt.Errorf("%w: %w", access.ErrRefused, err)
}
