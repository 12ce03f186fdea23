package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lancerest/lancerest/internal/access"
	azureaccess "github.com/lancerest/lancerest/internal/access/azure"
	"github.com/lancerest/lancerest/internal/access/gcp"
	"github.com/lancerest/lancerest/internal/config"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore/azure"
	"github.com/lancerest/lancerest/internal/objstore/gcs"
)

func openGCS(ctx context.Context, bucket string, r config.Root) (*gcs.Store, error) {
	account, err := r.ServiceAccount.Read()
	if err != nil {
		return nil, err
	}
	return gcs.New(ctx, gcs.Options{Bucket: bucket, Endpoint: r.Endpoint, ServiceAccount: account})
}

func accessToGCS(opts *access.Options, at lance.Location, s gcs.Settings) error {
	if s.Credentials == nil && (opts.Mode == access.Static || opts.Mode == access.Vend) {
		return fmt.Errorf("credentials %s: the server itself has no credentials of Google's, as for an emulator: say client or none", opts.Mode)
	}
	p := gcp.New(gcp.Options{Bucket: at.Authority, Endpoint: s.Endpoint, Credentials: s.Credentials})
	opts.Settings, opts.Own, opts.Vendor = p.Settings(), p.Own, p
	return nil
}

// dataLake is what the host of a location begins with, after the account, where Azure speaks of file systems; blobs are at another one.
const dataLake = ".dfs."

func openAzure(at lance.Location, r config.Root) (*azure.Store, error) {
	key, err := r.AccountKey.Read()
	if err != nil {
		return nil, err
	}
	o := azure.Options{Container: at.Authority, Account: r.Account, Endpoint: r.Endpoint, AccountKey: key}
	if at.Scheme == "abfss" {
		container, host, _ := strings.Cut(at.Authority, "@")
		account, rest, ok := strings.Cut(host, dataLake)
		if !ok || container == "" || account == "" || rest == "" {
			return nil, errors.New("it must be abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX")
		}
		if o.Account != "" && o.Account != account {
			return nil, fmt.Errorf("it names the account %s, and its settings name %s", account, o.Account)
		}
		o.Container, o.Account = container, account
		if o.Endpoint == "" {
			o.Endpoint = "https://" + account + ".blob." + rest
		}
	}
	return azure.New(o)
}

func accessToAzure(ctx context.Context, opts *access.Options, r config.Root, at lance.Location, s azure.Settings) error {
	o := azureaccess.Options{
		Container: s.Container, Account: s.Account, Endpoint: s.Endpoint, AccountKey: s.AccountKey, SAS: s.SAS, Credential: s.Credential,
	}
	if opts.Mode == access.Vend {
		o.Vend = azureaccess.Vending{Duration: r.Vend.Life(), Hierarchical: at.Scheme == "abfss", ContainerWide: r.Vend.ContainerWide}
	}
	p, err := azureaccess.New(o)
	if err != nil {
		return err
	}
	if opts.Mode == access.Vend {
		if err := p.Check(ctx); err != nil {
			return err
		}
	}
	opts.Settings, opts.Own, opts.Vendor = p.Settings(), p.Own, p
	return nil
}
