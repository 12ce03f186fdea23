package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
)

// refMax bounds the bytes of a reference file: clients write a few hundred.
const refMax = 1 << 20

// ListTableBranches lists the branches that a table's _refs/branches files say, which clients write themselves, sorted by name;
// main has none. Errors: 1, 4, 13, 19 (a damaged file).
func (c *Catalog) ListTableBranches(ctx context.Context, req *api.ListTableBranchesRequest) (*api.ListTableBranchesResponse, error) {
	limit, cur, err := c.openPage(req.Page, "branches/"+pathKey(req.ID))
	if err != nil {
		return nil, err
	}
	t, err := c.table(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	p, err := c.place(t.Location)
	if err != nil {
		return nil, err
	}
	refs, err := p.branches(ctx)
	if err != nil {
		return nil, err
	}
	refs = slices.DeleteFunc(refs, func(b lance.BranchRef) bool { return string(b.Name) <= cur.Name })
	refs, more := cut(refs, limit)
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

// branches reads all references of branches, sorted by name.
func (p place) branches(ctx context.Context) ([]lance.BranchRef, error) {
	prefix := lance.BranchesPrefix(p.dir)
	var refs []lance.BranchRef
	for info, err := range p.objects.List(ctx, prefix, "") {
		if err != nil {
			return nil, storageError("list "+prefix, err)
		}
		name, ok := lance.BranchFromFile(strings.TrimPrefix(info.Key, prefix))
		if !ok {
			continue
		}
		ref, err := p.readBranch(ctx, name)
		if errors.Is(err, objstore.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, refError("read "+info.Key, err)
		}
		refs = append(refs, ref)
	}
	if len(refs) == 0 {
		return nil, p.root.prove(ctx)
	}
	slices.SortFunc(refs, func(a, b lance.BranchRef) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return refs, nil
}

// readBranch reads the reference of a branch; the error is objstore's, or says that the file is damaged.
func (p place) readBranch(ctx context.Context, b lance.Branch) (lance.BranchRef, error) {
	data, _, err := p.objects.Get(ctx, lance.BranchKey(p.dir, b), refMax)
	if err != nil {
		return lance.BranchRef{}, err
	}
	return lance.ParseBranch(b, data)
}

// refError translates what reading a reference file came to.
func refError(what string, err error) error {
	var damaged *lance.CorruptError
	if errors.As(err, &damaged) {
		return api.Errorf(api.CodeInvalidTableState, "%s: %v", what, damaged)
	}
	return storageError(what, err)
}
