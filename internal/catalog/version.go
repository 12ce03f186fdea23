package catalog

import (
	"context"
	"math"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// CreateTableVersion commits one version: a batch of one (C2). Errors: 1, 4, 13 (path or manifest), 14 (taken, or not the
// next), 19 (a detached manifest that cannot be attached), 22 (a deleted branch).
func (c *Catalog) CreateTableVersion(ctx context.Context, req *api.CreateTableVersionRequest) (*api.CreateTableVersionResponse, error) {
	s, err := createStep(req.ID, req.StagedVersion)
	if err != nil {
		return nil, err
	}
	return committed(ctx, c, commit.Request{Steps: []commit.Step{s}, Context: req.Context}, func(o *commit.Outcome) (*api.CreateTableVersionResponse, error) {
		v, err := c.wireVersion(o.Results[0].Table, o.Results[0].Version)
		return &api.CreateTableVersionResponse{TransactionID: transactionID(o.Transaction), Version: &v}, err
	})
}

// committed commits and makes the response from the outcome, the same whether it is kept for a caller who may ask again or not.
func committed[Response any](ctx context.Context, c *Catalog, req commit.Request, render func(*commit.Outcome) (*Response, error)) (*Response, error) {
	if err := checkMap("context", req.Context); err != nil {
		return nil, err
	}
	if _, keyed := ctx.Value(keyedContext{}).(*Keyed); keyed {
		req.Keep = func(tx store.Tx, o *commit.Outcome) error {
			response, err := render(o)
			if err != nil {
				return err
			}
			return keep(ctx, tx, response)
		}
	}
	o, err := c.committer.Commit(ctx, req)
	if err != nil {
		return nil, err
	}
	return render(o)
}

// createStep checks the form of one version to create.
func createStep(id lance.TableID, v api.StagedVersion) (commit.Step, error) {
	s := commit.Step{
		Kind: lance.EntryCreateVersion, ID: id, Version: lance.VersionNumber(v.Version), ManifestPath: v.ManifestPath,
		Scheme: lance.SchemeV2, Metadata: v.Metadata,
	}
	if v.ManifestSize != nil {
		s.ManifestSize = *v.ManifestSize
	}
	if err := checkTableID(id); err != nil {
		return s, err
	}
	if err := checkMap("metadata", v.Metadata); err != nil {
		return s, err
	}
	if v.Version == 0 {
		return s, api.Errorf(api.CodeInvalidInput, "version 0 does not exist: versions begin at 1, detached ones are negative")
	}
	if v.ManifestSize != nil && *v.ManifestSize < 0 {
		return s, api.Errorf(api.CodeInvalidInput, "manifest_size %d: it must be 0 or more", *v.ManifestSize)
	}
	if v.NamingScheme != nil {
		switch *v.NamingScheme {
		case api.NamingV2:
		case api.NamingV1:
			s.Scheme = lance.SchemeV1
		default:
			return s, api.Errorf(api.CodeInvalidInput, "naming_scheme %q is unknown: it must be V1 or V2", *v.NamingScheme)
		}
	}
	var err error
	s.Branch, err = branchNamed(v.Branch)
	return s, err
}

// branchNamed reads an optional branch; absent, "" and "main" are the main branch.
func branchNamed(given *string) (lance.Branch, error) {
	if given == nil {
		return lance.Main, nil
	}
	b, err := lance.ParseBranchName(*given)
	if err != nil {
		return b, api.Errorf(api.CodeInvalidInput, "%v", err)
	}
	return b, nil
}

// DescribeTableVersion describes one version, or the latest of the branch where none is given. A version that no row knows is
// looked for in storage (C9); one whose manifest a client's cleanup removed is described no longer. Errors: 1, 4, 11, 13, 22.
func (c *Catalog) DescribeTableVersion(ctx context.Context, req *api.DescribeTableVersionRequest) (*api.DescribeTableVersionResponse, error) {
	branch, err := branchNamed(req.Branch)
	if err != nil {
		return nil, err
	}
	t, err := c.table(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	var v lance.Version
	if req.Version != nil {
		v, err = c.chains.Version(ctx, t, lance.Slot{Chain: lance.Chain{Table: t.ID, Branch: branch}, Number: lance.VersionNumber(*req.Version)})
	} else if v, err = c.chains.Latest(ctx, t, branch); err == nil && v.Number == 0 {
		err = api.Errorf(api.CodeTableVersionNotFound, "table %q has no version yet: it is only declared", lance.ShowID(t.Path))
	}
	if err != nil {
		return nil, err
	}
	wire, err := c.wireVersion(t, v)
	if err != nil {
		return nil, err
	}
	return &api.DescribeTableVersionResponse{Version: wire}, nil
}

// ListTableVersions lists the versions of a branch, oldest first, or newest first with descending. A table that is only declared
// has none; an unknown branch is the error of code 22, which clients take for "no versions yet". Errors: 1, 4, 13, 22.
func (c *Catalog) ListTableVersions(ctx context.Context, req *api.ListTableVersionsRequest) (*api.ListTableVersionsResponse, error) {
	branch, err := branchNamed(req.Branch)
	if err != nil {
		return nil, err
	}
	scope := "versions/" + lance.PathKey(req.ID) + "/" + string(branch)
	if said(req.Descending) {
		scope += "/newest"
	}
	limit, cur, err := c.openPage(req.Page, scope)
	if err != nil {
		return nil, err
	}
	want := store.VersionPage{After: lance.VersionNumber(cur.After), Limit: min(limit, chain.VersionChunk), Descending: said(req.Descending)}
	t, seen, err := c.tableAndPage(ctx, req.ID, branch, want)
	if err != nil {
		return nil, err
	}
	resp := &api.ListTableVersionsResponse{Versions: []api.TableVersion{}}
	more := true
	for size := 0; more && len(resp.Versions) < limit && size < pageBytes; {
		var page []lance.Version
		want.After, want.Limit = lance.VersionNumber(cur.After), min(limit-len(resp.Versions), chain.VersionChunk)
		page, more, err = c.chains.Page(ctx, t, branch, want, seen)
		seen = nil
		if err != nil {
			return nil, err
		}
		for _, v := range page {
			wire, err := c.wireVersion(t, v)
			if err != nil {
				return nil, err
			}
			resp.Versions = append(resp.Versions, wire)
			cur.After = int64(v.Number)
			for key, value := range wire.Metadata {
				size += len(key) + len(value)
			}
		}
	}
	resp.PageToken, err = c.closeCursor(cur, more)
	return resp, err
}

// pageBytes is how much metadata ends a page before its limit.
const pageBytes = 4 << 20

// tableAndPage finds a table and reads a page of one of its chains on the same snapshot: opening a table asks for just that.
func (c *Catalog) tableAndPage(ctx context.Context, id lance.TableID, branch lance.Branch, want store.VersionPage) (lance.Table, *chain.Rows, error) {
	if err := checkTableID(id); err != nil {
		return lance.Table{}, nil, err
	}
	var t lance.Table
	var p *chain.Rows
	err := c.state.View(ctx, func(r store.Reader) (err error) {
		if t, err = state.TableAt(r, id); err != nil {
			return err
		}
		p, err = chain.ReadRows(r, lance.Chain{Table: t.ID, Branch: branch}, want)
		return err
	})
	if err == nil {
		c.chains.Use(t.ID)
	}
	return t, p, err
}

// wireVersion is a version as it travels: its manifest under the final name, relative to the store's root (client contract,
// facts 42 and 45), and its numbers among the metadata that the writer gave.
func (c *Catalog) wireVersion(t lance.Table, v lance.Version) (api.TableVersion, error) {
	p, err := c.places.At(t.Location)
	if err != nil {
		return api.TableVersion{}, err
	}
	return api.TableVersion{
		Version:         int64(v.Number),
		ManifestPath:    p.Final(v.Chain.Branch, v.Number, v.Scheme),
		ManifestSize:    ptr(v.Size),
		ETag:            ptr(v.ETag),
		TimestampMillis: ptr(v.Timestamp.UnixMilli()),
		Metadata:        withSummary(v.Metadata, v.Summary),
	}, nil
}

// BatchDeleteTableVersions deletes the versions of a branch that the ranges name (start included, end not, -1 for no end) and
// queues the removal of their manifests. Versions that do not exist are passed over. The latest version of a chain, and versions
// that tags or branches refer to, are refused (19). Errors: 1, 4, 13, 19.
func (c *Catalog) BatchDeleteTableVersions(ctx context.Context, req *api.BatchDeleteTableVersionsRequest) (*api.BatchDeleteTableVersionsResponse, error) {
	s, err := deleteStep(req)
	if err != nil {
		return nil, err
	}
	return committed(ctx, c, commit.Request{Steps: []commit.Step{s}, Context: req.Context}, func(o *commit.Outcome) (*api.BatchDeleteTableVersionsResponse, error) {
		return &api.BatchDeleteTableVersionsResponse{DeletedCount: ptr(o.Results[0].Count), TransactionID: transactionID(o.Transaction)}, nil
	})
}

// deleteStep checks the request to delete versions.
func deleteStep(req *api.BatchDeleteTableVersionsRequest) (commit.Step, error) {
	s := commit.Step{Kind: lance.EntryDeleteVersions, ID: req.ID}
	if err := checkTableID(s.ID); err != nil {
		return s, err
	}
	for i, r := range req.Ranges {
		last := r.EndVersion - 1
		if r.EndVersion == -1 {
			last = math.MaxInt64
		}
		if r.StartVersion < 0 || r.EndVersion < -1 || last < r.StartVersion-1 {
			return s, api.Errorf(api.CodeInvalidInput, "ranges[%d] from %d to %d: the start must be 0 or more, and the end, which is not included, -1 or not below the start", i, r.StartVersion, r.EndVersion)
		}
		s.Ranges = append(s.Ranges, [2]lance.VersionNumber{lance.VersionNumber(max(r.StartVersion, 1)), lance.VersionNumber(last)})
	}
	var err error
	s.Branch, err = branchNamed(req.Branch)
	return s, err
}

// transactionID is a transaction's id as it travels, absent where a version was made by none.
func transactionID(id lance.TransactionID) *string {
	if id == "" {
		return nil
	}
	return ptr(string(id))
}
