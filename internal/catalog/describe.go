package catalog

import (
	"context"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/schema"
)

// DescribeTable says where a table lives and whether its versions are committed through the catalog. With check_declared, or
// detailed metadata, it also says whether the table has any version, looking into storage if no row knows one; with a version,
// a tag, a branch or detailed metadata it names the version.
//
// Detailed metadata are the version's schema, its counts of deleted rows and fragments, and as metadata the table's own, together with the
// numbers that the Lance library shows with each version (total_rows and so on). They come without a look at storage where a version with
// this schema was committed or described here before. Where the manifest cannot be understood in full, what is left out is said under
// "note" in the context. It gives what the client needs to reach the table by itself (see storageOptions). Errors: 1, 4, 8 (tag), 11
// (version), 13, 17, 18, 19, 22 (branch).
func (c *Catalog) DescribeTable(ctx context.Context, req *api.DescribeTableRequest) (*api.DescribeTableResponse, error) {
	return c.describeTable(ctx, req, schema.FormNamespace)
}

// DescribeOpenTable is DescribeTable for clients that open a table by it alone, as LanceDB's remote SDK does: it always names a version and has
// its schema, in Lance's names of types. They read no files themselves, and are given keys only where they ask. Errors: those of
// DescribeTable; 4 for a table that is only declared, and 19 where the schema cannot be told.
func (c *Catalog) DescribeOpenTable(ctx context.Context, req *api.DescribeTableRequest) (*api.DescribeTableResponse, error) {
	detailed := *req
	detailed.LoadDetailedMetadata = ptr(true)
	if req.VendCredentials == nil {
		detailed.VendCredentials = ptr(false)
	}
	resp, err := c.describeTable(ctx, &detailed, schema.FormLance)
	switch {
	case err != nil:
		return nil, err
	case resp.Version == nil:
		return nil, api.Errorf(api.CodeTableNotFound, "table %q has no data yet: it is only declared", lance.ShowID(req.ID))
	case resp.Schema == nil:
		return nil, api.Errorf(api.CodeInvalidTableState, "the schema of table %q cannot be told: %s", lance.ShowID(req.ID), resp.Context[noteKey])
	}
	return resp, nil
}

func (c *Catalog) describeTable(ctx context.Context, req *api.DescribeTableRequest, form schema.Form) (*api.DescribeTableResponse, error) {
	if req.Tag != nil && (req.Version != nil || req.Branch != nil) {
		return nil, api.Errorf(api.CodeInvalidInput, "tag cannot be given together with version or branch: a tag says both")
	}
	t, err := c.table(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	resp := &api.DescribeTableResponse{
		Location: ptr(t.Location), Properties: filled(t.Properties), ManagedVersioning: ptr(chain.Managed(t)),
	}
	if said(req.WithTableURI) {
		resp.TableURI = ptr(t.Location)
	}
	detailed := said(req.LoadDetailedMetadata)
	asked := req.Version != nil || req.Tag != nil || req.Branch != nil
	if asked || detailed || said(req.CheckDeclared) {
		v, err := c.describedVersion(ctx, t, req)
		if err != nil {
			return nil, err
		}
		if detailed || said(req.CheckDeclared) {
			resp.IsOnlyDeclared = ptr(v.Number == 0)
		}
		if (asked || detailed) && v.Number != 0 {
			resp.Version = ptr(int64(v.Number))
		}
		if detailed {
			resp.Table, resp.Namespace = ptr(t.Path.Name()), append([]string{}, t.Path.Namespace()...)
			if err := c.addDetails(ctx, resp, &reading{c: c, table: t, version: v}, form); err != nil {
				return nil, err
			}
		}
	}
	resp.StorageOptions, err = c.storageOptions(ctx, t.Location, req.VendCredentials)
	return resp, err
}

// addDetails fills in what a version's manifest says.
func (c *Catalog) addDetails(ctx context.Context, resp *api.DescribeTableResponse, r *reading, form schema.Form) error {
	if r.version.Number == 0 {
		return nil
	}
	s, err := r.summary(ctx)
	if err != nil {
		return err
	}
	note := unknownFlags(s)
	if note == "" {
		d, err := r.described(ctx, s)
		if err != nil {
			return err
		}
		if resp.Schema, err = d.schema(form); err != nil {
			note = "the schema cannot be told: " + err.Error()
		}
		resp.Metadata = withSummary(d.tableMetadata, s)
		if s.Rows >= 0 {
			resp.Stats = &api.TableBasicStats{NumDeletedRows: s.DeletedRows, NumFragments: s.Fragments}
		}
	}
	if note != "" {
		resp.Context = map[string]string{noteKey: note}
	}
	return nil
}

// describedVersion finds the version that a description is about, Number 0 for a table that is only declared.
func (c *Catalog) describedVersion(ctx context.Context, t lance.Table, req *api.DescribeTableRequest) (lance.Version, error) {
	branch, err := branchNamed(req.Branch)
	if err != nil {
		return lance.Version{}, err
	}
	number := req.Version
	if req.Tag != nil {
		tag, err := c.places.ReadTag(ctx, t, *req.Tag)
		if err != nil {
			return lance.Version{}, err
		}
		branch, number = tag.Branch, ptr(int64(tag.Version))
	}
	return c.versionAsked(ctx, t, branch, number)
}

// versionAsked returns the version of a number, or the latest of the branch where none is asked for: Number 0 for a table that is only declared.
func (c *Catalog) versionAsked(ctx context.Context, t lance.Table, branch lance.Branch, number *int64) (lance.Version, error) {
	if number != nil {
		return c.chains.Version(ctx, t, lance.Slot{Chain: lance.Chain{Table: t.ID, Branch: branch}, Number: lance.VersionNumber(*number)})
	}
	return c.chains.Latest(ctx, t, branch)
}
