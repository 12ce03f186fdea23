package app

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/client"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/config"
	"github.com/lancerest/lancerest/internal/importer"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// ExportDirOptions say what to write as a directory listing. Target is required.
type ExportDirOptions struct {
	// Target is the directory, or the URI, that is to be the listing.
	Target string
	// From and DryRun are as in importer.ExportOptions.
	From   lance.NamespaceID
	DryRun bool
	// URI is the address of a running server to read from; "" reads the state of the configuration, also beside servers.
	URI string
	// Report is told of every table.
	Report func(importer.Item)
}

// ExportDir writes the catalog of a configuration, or of a running server, as a directory listing.
func ExportDir(ctx context.Context, c Config, o ExportDirOptions) (importer.Summary, error) {
	setDefaults(&c)
	target, err := targetLocation(o.Target)
	if err != nil {
		return importer.Summary{}, err
	}
	options := importer.ExportOptions{Target: target, From: o.From, DryRun: o.DryRun, Report: o.Report}
	if o.URI != "" {
		remote, err := openRemote(o.URI)
		if err != nil {
			return importer.Summary{}, err
		}
		options.Tables, options.Exists = remoteTables(ctx, remote), knownRemote{remote}.namespace
		return importer.Export(ctx, options)
	}
	if err := checkState(c); err != nil {
		return importer.Summary{}, err
	}
	state, _, err := openStateBeside(ctx, c)
	if err != nil {
		return importer.Summary{}, err
	}
	options.Tables, options.Exists = stateTables(ctx, state), knownState{state}.namespace
	sum, err := importer.Export(ctx, options)
	return sum, errors.Join(err, state.Close())
}

// targetLocation reads a directory, which need not exist yet, or a URI. Symbolic links on the way to it are resolved, so that it compares with
// the locations of tables.
func targetLocation(given string) (lance.Location, error) {
	if err := config.CheckPlace(given); err != nil {
		return lance.Location{}, err
	}
	if strings.Contains(given, "://") {
		loc, err := lance.ParseLocation(given)
		return reallyAt(loc), err
	}
	abs, err := filepath.Abs(given)
	if err != nil {
		return lance.Location{}, err
	}
	loc, err := lance.ParseLocation(filepath.ToSlash(abs))
	return reallyAt(loc), err
}

// tablesChunk is how many tables are read at a time.
const tablesChunk = 500

// stateTables yields the tables that a state has.
func stateTables(ctx context.Context, state store.Store) iter.Seq2[importer.Exported, error] {
	return func(yield func(importer.Exported, error) bool) {
		page := store.TablePage{Limit: tablesChunk}
		for {
			var tables []lance.Table
			var heads []lance.Version
			err := state.View(ctx, func(r store.Reader) (err error) {
				if tables, err = r.ListAllTables(page); err != nil {
					return err
				}
				chains := make([]lance.Chain, len(tables))
				for i, t := range tables {
					chains[i].Table = t.ID
				}
				heads, err = r.Heads(chains)
				return err
			})
			if err != nil {
				yield(importer.Exported{}, err)
				return
			}
			for i, t := range tables {
				// Of a table whose versions are not managed the state need not know any.
				declared := heads[i].Number == 0 && !strings.EqualFold(t.Properties[catalog.ManagedProperty], "false")
				if !yield(importer.Exported{Path: t.Path, Location: t.Location, Declared: declared}, nil) {
					return
				}
				page.AfterNamespace, page.AfterName = t.Namespace, t.Path.Name()
			}
			if len(tables) < tablesChunk {
				return
			}
		}
	}
}

// remoteTables yields the tables that a server has; it cannot name those whose names hold the delimiter of ids.
func remoteTables(ctx context.Context, c *client.Client) iter.Seq2[importer.Exported, error] {
	return func(yield func(importer.Exported, error) bool) {
		req := &api.ListTablesRequest{}
		for {
			page, err := c.ListAllTables(ctx, req)
			if err != nil {
				yield(importer.Exported{}, err)
				return
			}
			for _, id := range page.Tables {
				t, err := remoteTable(ctx, c, id)
				if api.CodeOf(err) == api.CodeTableNotFound {
					continue // dropped since it was listed
				}
				if !yield(t, err) || err != nil {
					return
				}
			}
			if page.PageToken == nil || *page.PageToken == "" {
				return
			}
			req.PageToken = page.PageToken
		}
	}
}

func remoteTable(ctx context.Context, c *client.Client, id string) (importer.Exported, error) {
	yes, no := true, false
	path, err := lance.ParseID(id, lance.DefaultDelimiter)
	if err != nil {
		return importer.Exported{}, err
	}
	resp, err := c.DescribeTable(ctx, &api.DescribeTableRequest{Target: api.At(path...), CheckDeclared: &yes, VendCredentials: &no})
	if err != nil {
		return importer.Exported{}, err
	}
	t := importer.Exported{Path: path, Declared: resp.IsOnlyDeclared != nil && *resp.IsOnlyDeclared}
	if resp.Location != nil {
		t.Location = *resp.Location
	}
	return t, nil
}
