package catalog

import (
	"context"
	"slices"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/lance"
)

// ListTableBranches lists the branches that a table's _refs/branches files say, which clients write themselves, sorted by name;
// main has none. Errors: 1, 4, 13, 19 (a damaged file).
func (c *Catalog) ListTableBranches(ctx context.Context, req *api.ListTableBranchesRequest) (*api.ListTableBranchesResponse, error) {
	limit, cur, err := c.openPage(req.Page, "branches/"+lance.PathKey(req.ID))
	if err != nil {
		return nil, err
	}
	t, err := c.table(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	p, err := c.places.At(t.Location)
	if err != nil {
		return nil, err
	}
	refs, err := p.Branches(ctx)
	if err != nil {
		return nil, err
	}
	refs = slices.DeleteFunc(refs, func(b lance.BranchRef) bool { return string(b.Name) <= cur.Name })
	refs, more := chain.Cut(refs, limit)
	resp := &api.ListTableBranchesResponse{Branches: map[string]api.BranchContents{}}
	for _, b := range refs {
		contents := api.BranchContents{
			ParentVersion: int64(b.ParentVersion), CreateAt: b.CreatedAt, ManifestSize: b.ManifestSize, Metadata: b.Metadata,
		}
		if b.ParentBranch != lance.Main {
			contents.ParentBranch = ptr(string(b.ParentBranch))
		}
		resp.Branches[string(b.Name)] = contents
		cur.Name = string(b.Name)
	}
	resp.PageToken, err = c.closeCursor(cur, more)
	return resp, err
}
