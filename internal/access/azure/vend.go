package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/lance"
)

// What is known of an account's namespace.
const (
	unknown int32 = iota
	hierarchical
	flat
)

// clockSkew is by how much the service's clock may be behind this machine's.
const clockSkew = 15 * time.Minute

// Vend signs for a directory, with a key that the service makes for the server's identity, or with the account's key where the server has that. It
// implements access.Vendor.
func (p *Provider) Vend(ctx context.Context, dir lance.Location, grant access.Grant) (access.Keys, error) {
	if err := ctx.Err(); err != nil {
		return access.Keys{}, err
	}
	if p.service == nil {
		return access.Keys{}, errNoVending
	}
	values, err := p.reach(ctx, dir, grant)
	if err != nil {
		return access.Keys{}, err
	}
	// Ends are signed in whole seconds.
	asked := time.Now().UTC().Truncate(time.Second)
	values.ExpiryTime = asked.Add(p.opts.Vend.Duration)
	if strings.HasPrefix(p.opts.Endpoint, "https://") {
		values.Protocol = sas.ProtocolHTTPS
	}
	query, served, err := p.sign(ctx, values)
	if err != nil {
		return access.Keys{}, translate(ctx, err)
	}
	life := p.opts.Vend.Duration
	if !served.IsZero() {
		life = min(life, values.ExpiryTime.Sub(served))
	}
	return access.Keys{Values: map[string]string{sasKey: query.Encode()}, Expires: values.ExpiryTime, Life: life}, nil
}

// reach says what a signature for a directory is to reach.
func (p *Provider) reach(ctx context.Context, dir lance.Location, grant access.Grant) (sas.BlobSignatureValues, error) {
	name := dir.Key()
	switch {
	case name == "":
		return sas.BlobSignatureValues{}, fmt.Errorf("%w: it is the whole container %s", access.ErrUnfit, p.opts.Container)
	case strings.Contains(name, `\`):
		return sas.BlobSignatureValues{}, fmt.Errorf("%w: Azure takes the backslash in %s for a slash", access.ErrUnfit, dir)
	}
	kind, err := p.namespace(ctx)
	if err != nil {
		return sas.BlobSignatureValues{}, err
	}
	write := grant == access.ReadWrite
	if kind == hierarchical {
		may := sas.BlobPermissions{Read: true, List: true, Add: write, Create: write, Write: write, Delete: write}
		return sas.BlobSignatureValues{ContainerName: p.opts.Container, Directory: name, Permissions: may.String()}, nil
	}
	if !p.opts.Vend.ContainerWide {
		return sas.BlobSignatureValues{}, p.unfit()
	}
	may := sas.ContainerPermissions{Read: true, List: true, Add: write, Create: write, Write: write, Delete: write}
	return sas.BlobSignatureValues{ContainerName: p.opts.Container, Permissions: may.String()}, nil
}

func (p *Provider) unfit() error {
	return fmt.Errorf("%w: the storage account %s has no directories (its namespace is flat), so that a signature reaches the whole container %s: use an account with a hierarchical namespace, or set vend.container_wide if that is meant",
		access.ErrUnfit, p.opts.Account, p.opts.Container)
}

// Check returns ErrUnfit where no directory of the container can have keys of its own and keys for all of it are not meant. It asks the account
// what its namespace is.
func (p *Provider) Check(ctx context.Context) error {
	kind, err := p.namespace(ctx)
	if err == nil && kind == flat && !p.opts.Vend.ContainerWide {
		return p.unfit()
	}
	return err
}

// namespace asks the account, once, whether it has directories.
func (p *Provider) namespace(ctx context.Context) (int32, error) {
	if kind := p.kind.Load(); kind != unknown {
		return kind, nil
	}
	info, err := p.service.GetAccountInfo(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("ask the account %s whether it has directories (an abfss:// location says that it has): %w", p.opts.Account, translate(ctx, err))
	}
	kind := flat
	if info.IsHierarchicalNamespaceEnabled != nil && *info.IsHierarchicalNamespaceEnabled {
		kind = hierarchical
	}
	p.kind.Store(kind)
	return kind, nil
}

// sign returns a signature, and the time on the service's clock where that was asked.
func (p *Provider) sign(ctx context.Context, values sas.BlobSignatureValues) (sas.QueryParameters, time.Time, error) {
	if p.signer != nil {
		query, err := values.SignWithSharedKey(p.signer)
		return query, time.Time{}, err
	}
	var served time.Time
	key, err := p.service.GetUserDelegationCredential(context.WithValue(ctx, clock{}, &served), service.KeyInfo{
		Start: to.Ptr(time.Now().UTC().Add(-clockSkew).Format(sas.TimeFormat)), Expiry: to.Ptr(values.ExpiryTime.Format(sas.TimeFormat)),
	}, nil)
	if err != nil {
		return sas.QueryParameters{}, time.Time{}, err
	}
	query, err := values.SignWithUserDelegation(key)
	return query, served, err
}

// clock notes the time of an answer where the context has a place for it.
type clock struct{}

// Do implements policy.Policy.
func (clock) Do(r *policy.Request) (*http.Response, error) {
	answer, err := r.Next()
	if place, ok := r.Raw().Context().Value(clock{}).(*time.Time); ok && err == nil {
		*place, _ = http.ParseTime(answer.Header.Get("Date")) // without one the machine's clock must do
	}
	return answer, err
}

// endOf is the end that a signature says.
func endOf(query string) (time.Time, bool) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return time.Time{}, false
	}
	end, err := time.Parse(time.RFC3339, values.Get("se"))
	return end, err == nil
}

// translate says which of the contract's errors a failure is. The library's texts hold whole answers; these hold statuses, codes and ids of requests.
func translate(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		request := ""
		if response.RawResponse != nil {
			request = response.RawResponse.Header.Get("x-ms-request-id")
		}
		return fmt.Errorf("%w: its answer was %d (%s, request %s)", byStatus(response.StatusCode), response.StatusCode, response.ErrorCode, request)
	}
	var login *azidentity.AuthenticationFailedError
	if errors.As(err, &login) {
		status := 0
		if login.RawResponse != nil {
			status = login.RawResponse.StatusCode
		}
		return fmt.Errorf("%w: the server's own login was answered with %d", byStatus(status), status)
	}
	var unsent *url.Error
	if errors.As(err, &unsent) {
		return fmt.Errorf("%w: %w", access.ErrUnavailable, unsent.Err)
	}
	return fmt.Errorf("%w: %w", access.ErrRefused, err)
}

func byStatus(status int) error {
	if status == http.StatusTooManyRequests || status >= 500 {
		return access.ErrUnavailable
	}
	return access.ErrRefused
}
