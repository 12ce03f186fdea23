// Package azure gives clients what they need for tables on Azure Blob Storage: the account and its endpoint, the operator's own keys, and shared
// access signatures that reach one directory.
//
// Only accounts with a hierarchical namespace have directories, and so only there a signature can reach one table alone. In a flat account one
// reaches the whole container, which is given only where the operator says that this is meant.
//
// What does not live here: the storage itself (objstore/azure), and the keeping of keys (package access).
package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/lancerest/lancerest/internal/access"
)

// The names that Lance's clients read.
const (
	accountName = "azure_storage_account_name"
	accountKey  = "azure_storage_account_key"
	endpointKey = "azure_storage_endpoint"
	sasKey      = "azure_storage_sas_token"
	tokenKey    = "azure_storage_token"
)

// scope is what an access token for storage is asked for.
const scope = "https://storage.azure.com/.default"

// Options say how a container is reached, as the storage itself reaches it, and how keys for it are made.
type Options struct {
	Container string
	Account   string
	Endpoint  string // of the account's Blob service
	// At most one of these is set: the operator's own credentials.
	AccountKey string
	SAS        string
	Credential azcore.TokenCredential
	Vend       Vending // the zero value: no keys are vended
	// HTTPClient sends the requests (default: the library's).
	HTTPClient *http.Client
}

// Vending says how temporary keys are made.
type Vending struct {
	Duration time.Duration // at most 7 days
	// Hierarchical says that the account has directories. Otherwise it is asked.
	Hierarchical bool
	// ContainerWide allows keys for the whole container where the account has no directories.
	ContainerWide bool
}

// longest is the longest life of what a user delegation key signs.
const longest = 7 * 24 * time.Hour

// Provider knows one container. It is safe for concurrent use.
type Provider struct {
	opts    Options
	service *service.Client // nil where no keys are vended
	signer  *service.SharedKeyCredential
	kind    atomic.Int32 // what is known of the account's namespace
}

// New returns a provider. It speaks to no server; the error says what is wrong with the options.
func New(opts Options) (*Provider, error) {
	p := &Provider{opts: opts}
	if opts.Vend == (Vending{}) {
		return p, nil
	}
	if opts.Vend.Duration <= 0 || opts.Vend.Duration > longest {
		return nil, fmt.Errorf("container %s: keys are to live for %s, and Azure gives them %s at most", opts.Container, opts.Vend.Duration, longest)
	}
	if opts.Vend.Hierarchical {
		p.kind.Store(hierarchical)
	}
	options := &service.ClientOptions{ClientOptions: azcore.ClientOptions{PerCallPolicies: []policy.Policy{clock{}}}}
	if opts.HTTPClient != nil {
		options.Transport = opts.HTTPClient
	}
	var err error
	switch {
	case opts.AccountKey != "":
		if p.signer, err = service.NewSharedKeyCredential(opts.Account, opts.AccountKey); err == nil {
			p.service, err = service.NewClientWithSharedKeyCredential(opts.Endpoint, p.signer, options)
		}
		if err != nil {
			return nil, fmt.Errorf("container %s: the account's key is none: it is base64, as the portal shows it", opts.Container)
		}
	case opts.Credential != nil:
		if p.service, err = service.NewClient(opts.Endpoint, opts.Credential, options); err != nil {
			return nil, fmt.Errorf("container %s: %w", opts.Container, err)
		}
	default:
		return nil, fmt.Errorf("container %s: with a shared access signature no other one can be made: give the account's key, or let the server log in", opts.Container)
	}
	return p, nil
}

// Settings are what clients need beside keys, under the names that Lance's object store reads.
func (p *Provider) Settings() map[string]string {
	s := map[string]string{accountName: p.opts.Account}
	if p.opts.Endpoint != "https://"+p.opts.Account+".blob.core.windows.net" {
		s[endpointKey] = p.opts.Endpoint
	}
	if strings.HasPrefix(strings.ToLower(p.opts.Endpoint), "http://") {
		s["allow_http"] = "true"
	}
	return s
}

// Own returns the operator's own keys: the account's, a signature, or an access token. ErrRefused where there are none, ErrUnavailable where
// whoever gives tokens does not answer.
func (p *Provider) Own(ctx context.Context) (access.Keys, error) {
	switch {
	case p.opts.AccountKey != "":
		return access.Keys{Values: map[string]string{accountKey: p.opts.AccountKey}}, nil
	case p.opts.SAS != "":
		keys := access.Keys{Values: map[string]string{sasKey: p.opts.SAS}}
		if end, ok := endOf(p.opts.SAS); ok {
			keys.Expires = end
		}
		return keys, nil
	case p.opts.Credential == nil:
		return access.Keys{}, fmt.Errorf("%w: there are no credentials of Azure's", access.ErrRefused)
	}
	token, err := p.opts.Credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
	if err != nil {
		return access.Keys{}, translate(ctx, err)
	}
	return access.Keys{Values: map[string]string{tokenKey: token.Token}, Expires: token.ExpiresOn}, nil
}

// errNoVending is a mistake of the program.
var errNoVending = errors.New("keys are to be vended, and nothing says how")
