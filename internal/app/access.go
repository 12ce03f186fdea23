package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/access/aws"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/config"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/azure"
	"github.com/lancerest/lancerest/internal/objstore/gcs"
	"github.com/lancerest/lancerest/internal/objstore/s3"
)

// accessTo returns what clients of a root are given, nil for nothing. It is made from how the storage is reached, after all was looked up
// that the settings leave out: clients need the same.
func accessTo(ctx context.Context, r config.Root, at lance.Location, objects objstore.Store) (*access.Access, error) {
	opts := r.Options()
	if opts.Mode == access.None {
		return nil, nil
	}
	var err error
	switch store := objects.(type) {
	case *s3.Store:
		err = accessToS3(&opts, r, at, store.Settings())
	case *gcs.Store:
		err = accessToGCS(&opts, at, store.Settings())
	case *azure.Store:
		err = accessToAzure(ctx, &opts, r, at, store.Settings())
	default:
		err = fmt.Errorf("credentials %s: there are none for this storage; say none", opts.Mode)
	}
	if err != nil {
		return nil, err
	}
	return access.New(opts)
}

// warnOfOwnKeys says that the operator's own keys are handed out, which is easily meant for a while and then forgotten.
func warnOfOwnKeys(logger *slog.Logger, roots []catalog.Root) {
	for _, r := range roots {
		if r.Access.Mode() == access.Static {
			logger.Warn("credentials static: whoever reaches this server is given the operator's own keys", slog.String("root", r.Location.String()))
		}
	}
}

func accessToS3(opts *access.Options, r config.Root, at lance.Location, s s3.Settings) error {
	o := aws.Options{Bucket: at.Authority, Endpoint: s.Endpoint, Region: s.Region, PathStyle: s.PathStyle, Credentials: s.Credentials}
	if opts.Mode == access.Vend {
		external, err := r.Vend.ExternalID.Read()
		if err != nil {
			return err
		}
		o.Vend = aws.Vending{
			RoleARN: r.Vend.RoleARN, ExternalID: external, SessionName: r.Vend.SessionName, Endpoint: r.Vend.STSEndpoint, KMSKeyARN: r.Vend.KMSKeyARN,
			Duration: r.Vend.Life(),
		}
	}
	p, err := aws.New(o)
	if err != nil {
		return err
	}
	opts.Settings, opts.Own, opts.Vendor = p.Settings(), p.Own, p
	return nil
}
