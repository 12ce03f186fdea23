package catalog

import (
	"context"
	"errors"
	"math"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/store"
)

// readRounds bounds how often a read looks again after it finished somebody's transaction, adopted versions, or found
// manifests gone.
const readRounds = 20

// CreateTableVersion commits one version: a batch of one (C2). Errors: 1, 4, 13 (path or manifest), 14 (taken, or not the
// next), 19 (a detached manifest that cannot be attached), 22 (a deleted branch).
func (c *Catalog) CreateTableVersion(ctx context.Context, req *api.CreateTableVersionRequest) (*api.CreateTableVersionResponse, error) {
	s, err := createStep(req.ID, req.StagedVersion)
	if err != nil {
		return nil, err
	}
	return committed(ctx, c, commitRequest{steps: []step{s}, context: req.Context}, func(o *outcome) (*api.CreateTableVersionResponse, error) {
		v, err := c.wireVersion(o.results[0].table, o.results[0].version)
		return &api.CreateTableVersionResponse{TransactionID: transactionID(o.transaction), Version: &v}, err
	})
}

// committed commits and makes the response from the outcome, the same whether it is kept for a caller who may ask again or not.
func committed[Response any](ctx context.Context, c *Catalog, req commitRequest, render func(*outcome) (*Response, error)) (*Response, error) {
	if err := checkMap("context", req.context); err != nil {
		return nil, err
	}
	if _, keyed := ctx.Value(keyedContext{}).(*Keyed); keyed {
		req.keep = func(tx store.Tx, o *outcome) error {
			response, err := render(o)
			if err != nil {
				return err
			}
			return keep(ctx, tx, response)
		}
	}
	o, err := c.commit(ctx, req)
	if err != nil {
		return nil, err
	}
	return render(o)
}

// createStep checks the form of one version to create.
func createStep(id lance.TableID, v api.StagedVersion) (step, error) {
	s := step{
		kind: lance.EntryCreateVersion, id: id, version: lance.VersionNumber(v.Version), manifestPath: v.ManifestPath,
		scheme: lance.SchemeV2, metadata: v.Metadata,
	}
	if v.ManifestSize != nil {
		s.manifestSize = *v.ManifestSize
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
			s.scheme = lance.SchemeV1
		default:
			return s, api.Errorf(api.CodeInvalidInput, "naming_scheme %q is unknown: it must be V1 or V2", *v.NamingScheme)
		}
	}
	var err error
	s.branch, err = branchNamed(v.Branch)
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
		v, err = c.version(ctx, t, lance.Slot{Chain: lance.Chain{Table: t.ID, Branch: branch}, Number: lance.VersionNumber(*req.Version)})
	} else if v, err = c.latest(ctx, t, branch); err == nil && v.Number == 0 {
		err = api.Errorf(api.CodeTableVersionNotFound, "table %q has no version yet: it is only declared", show(t.Path))
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

// version returns the committed version in a slot, or the error of code 11. It finishes a transaction that is at it (C7).
func (c *Catalog) version(ctx context.Context, t lance.Table, slot lance.Slot) (lance.Version, error) {
	cp, err := c.chainOf(t, slot.Chain.Branch)
	if err != nil {
		return lance.Version{}, err
	}
	if !managed(t) {
		return c.storedVersion(ctx, t, slot)
	}
	sought := false
	for range readRounds {
		row, head, err := c.rowAndHead(ctx, slot)
		switch {
		case err != nil:
			return row, err
		case row.Number == 0 && sought:
			return row, cp.place.proven(ctx, missingVersion(t, slot))
		case row.Number == 0:
			sought = true
			err = c.seek(ctx, cp, slot, head)
		case row.State == lance.VersionPending:
			err = c.help(ctx, row.Transaction)
		case row.State != lance.VersionCommitted:
			return row, missingVersion(t, slot)
		case row.Number == head.Number && slot.Chain.Branch == lance.Main:
			return row, nil
		default:
			gone, err := c.pruneGone(ctx, cp, []lance.Version{row}, head)
			if err != nil || len(gone) == 0 {
				return row, err
			}
		}
		if err != nil {
			return row, err
		}
	}
	return lance.Version{}, tooBusy(t)
}

// seek looks in storage for a version that no row knows.
func (c *Catalog) seek(ctx context.Context, cp chainPlace, slot lance.Slot, head lance.Version) error {
	var err error
	if slot.Number > head.Number {
		_, err = c.adopt(ctx, cp)
	} else {
		_, err = c.adoptSlot(ctx, cp, slot.Number)
	}
	return err
}

// rowAndHead reads the row in a slot and the head of its chain on one snapshot.
func (c *Catalog) rowAndHead(ctx context.Context, slot lance.Slot) (row, head lance.Version, err error) {
	err = c.view(ctx, func(r store.Reader) error {
		rows, err := r.Versions([]lance.Slot{slot})
		if err != nil {
			return err
		}
		heads, err := r.Heads([]lance.Chain{slot.Chain})
		if err != nil {
			return err
		}
		row, head = rows[0], heads[0]
		return nil
	})
	return row, head, err
}

func missingVersion(t lance.Table, slot lance.Slot) error {
	return api.Errorf(api.CodeTableVersionNotFound, "table %q has no version %d on %s", show(t.Path), slot.Number, slot.Chain.Branch)
}

func tooBusy(t lance.Table) error {
	return api.Errorf(api.CodeThrottling, "table %q changes too fast to be read; try again", show(t.Path))
}

// latest returns the head of a chain, Number 0 where the table is only declared. For a branch that does not exist the error is
// of code 22.
func (c *Catalog) latest(ctx context.Context, t lance.Table, branch lance.Branch) (lance.Version, error) {
	page, _, err := c.versionPage(ctx, t, branch, store.VersionPage{Limit: 1, Descending: true}, nil)
	return first(page), err
}

func first(page []lance.Version) lance.Version {
	if len(page) == 0 {
		return lance.Version{}
	}
	return page[0]
}

// ListTableVersions lists the versions of a branch, oldest first, or newest first with descending. A table that is only declared
// has none; an unknown branch is the error of code 22, which clients take for "no versions yet". Errors: 1, 4, 13, 22.
func (c *Catalog) ListTableVersions(ctx context.Context, req *api.ListTableVersionsRequest) (*api.ListTableVersionsResponse, error) {
	branch, err := branchNamed(req.Branch)
	if err != nil {
		return nil, err
	}
	scope := "versions/" + pathKey(req.ID) + "/" + string(branch)
	if said(req.Descending) {
		scope += "/newest"
	}
	limit, cur, err := c.openPage(req.Page, scope)
	if err != nil {
		return nil, err
	}
	want := store.VersionPage{After: lance.VersionNumber(cur.After), Limit: min(limit, versionChunk), Descending: said(req.Descending)}
	t, seen, err := c.tableAndPage(ctx, req.ID, branch, want)
	if err != nil {
		return nil, err
	}
	resp := &api.ListTableVersionsResponse{Versions: []api.TableVersion{}}
	more := true
	for size := 0; more && len(resp.Versions) < limit && size < pageBytes; {
		var page []lance.Version
		want.After, want.Limit = lance.VersionNumber(cur.After), min(limit-len(resp.Versions), versionChunk)
		page, more, err = c.versionPage(ctx, t, branch, want, seen)
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

// versionChunk is how many versions a list reads at a time.
const versionChunk = 500

// versionPage reads one page of a chain's committed versions, after finishing what is pending on it and marking those whose
// manifests are gone (C7, C9). It reports whether there are more, from a row that it does not look at in storage: asking for the latest
// version costs no look at the one before it.
// seen is what tableAndPage found, nil to look now.
func (c *Catalog) versionPage(ctx context.Context, t lance.Table, branch lance.Branch, want store.VersionPage, seen *chainPage) ([]lance.Version, bool, error) {
	cp, err := c.chainOf(t, branch)
	if err != nil {
		return nil, false, err
	}
	if !managed(t) {
		return c.storedPage(ctx, t, branch, want)
	}
	sought := false
	for range readRounds {
		if seen == nil {
			if seen, err = c.chainPage(ctx, cp.chain, want); err != nil {
				return nil, false, err
			}
		}
		page, more := cut(seen.rows, want.Limit)
		head := seen.head
		seen = nil
		if len(page) == 0 && want.After == 0 && head.Number == 0 {
			// Nothing is known: a writer may have gone past the catalog (C9).
			if sought {
				return nil, false, c.emptyChain(ctx, t, cp)
			}
			sought = true
			if _, err := c.adopt(ctx, cp); err != nil {
				return nil, false, err
			}
			continue
		}
		if i := pendingIn(page); i >= 0 {
			if err := c.help(ctx, page[i].Transaction); err != nil {
				return nil, false, err
			}
			continue
		}
		if !sought && reaches(page, head, want) {
			sought = true
			found, err := c.adoptNext(ctx, cp, head)
			if err != nil {
				return nil, false, err
			}
			if found {
				continue
			}
		}
		gone, err := c.pruneGone(ctx, cp, page, head)
		if err != nil || len(gone) == 0 {
			return page, more, err
		}
	}
	return nil, false, tooBusy(t)
}

// reaches reports whether a page holds the head of its chain, or ends the chain in another way.
func reaches(page []lance.Version, head lance.Version, want store.VersionPage) bool {
	return len(page) < want.Limit || page[0].Number == head.Number || page[len(page)-1].Number == head.Number
}

// adoptNext looks whether storage has the version after the head, as after a writer that went past the catalog, and adopts the chain
// if it does: who asks for the latest version gets what such a writer made (C9). It costs one look at one name.
func (c *Catalog) adoptNext(ctx context.Context, cp chainPlace, head lance.Version) (bool, error) {
	key := cp.place.final(cp.chain.Branch, head.Number+1, head.Scheme)
	_, err := cp.place.objects.Head(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, storageError("look at "+key, err)
	}
	n, err := c.adopt(ctx, cp)
	return n > 0, err
}

func pendingIn(page []lance.Version) int {
	for i, v := range page {
		if v.State == lance.VersionPending {
			return i
		}
	}
	return -1
}

// emptyChain says what it means that a chain has no version: the table is only declared; the branch exists and has no version of
// its own yet; or it does not exist.
func (c *Catalog) emptyChain(ctx context.Context, t lance.Table, cp chainPlace) error {
	if cp.chain.Branch == lance.Main {
		return cp.place.proven(ctx, nil)
	}
	_, err := cp.place.readBranch(ctx, cp.chain.Branch)
	if errors.Is(err, objstore.ErrNotFound) {
		return cp.place.proven(ctx, missingBranch(t, cp.chain.Branch))
	}
	if err != nil {
		return refError("read the reference of branch "+cp.chain.Branch.String(), err)
	}
	return nil
}

func missingBranch(t lance.Table, b lance.Branch) error {
	return api.Errorf(api.CodeTableBranchNotFound, "table %q has no branch %q", show(t.Path), b)
}

// chainPage is a page of a chain's rows, with one more to know whether there are more, and the chain's head.
type chainPage struct {
	rows []lance.Version
	head lance.Version
}

func (c *Catalog) chainPage(ctx context.Context, chain lance.Chain, want store.VersionPage) (*chainPage, error) {
	var p *chainPage
	err := c.view(ctx, func(r store.Reader) (err error) {
		p, err = readChainPage(r, chain, want)
		return err
	})
	return p, err
}

func readChainPage(r store.Reader, chain lance.Chain, want store.VersionPage) (*chainPage, error) {
	want.Limit++
	rows, err := r.ListVersions(chain, want)
	if err != nil {
		return nil, err
	}
	heads, err := r.Heads([]lance.Chain{chain})
	if err != nil {
		return nil, err
	}
	return &chainPage{rows: rows, head: heads[0]}, nil
}

// tableAndPage finds a table and reads a page of one of its chains on the same snapshot: opening a table asks for just that.
func (c *Catalog) tableAndPage(ctx context.Context, id lance.TableID, branch lance.Branch, want store.VersionPage) (lance.Table, *chainPage, error) {
	if err := checkTableID(id); err != nil {
		return lance.Table{}, nil, err
	}
	var t lance.Table
	var p *chainPage
	err := c.view(ctx, func(r store.Reader) (err error) {
		if t, err = tableAt(r, id); err != nil {
			return err
		}
		p, err = readChainPage(r, lance.Chain{Table: t.ID, Branch: branch}, want)
		return err
	})
	if err == nil {
		c.noteUse(t.ID)
	}
	return t, p, err
}

func (c *Catalog) chainOf(t lance.Table, branch lance.Branch) (chainPlace, error) {
	p, err := c.place(t.Location)
	return chainPlace{chain: lance.Chain{Table: t.ID, Branch: branch}, place: p, path: t.Path}, err
}

// wireVersion is a version as it travels: its manifest under the final name, relative to the store's root (client contract,
// facts 42 and 45), and its numbers among the metadata that the writer gave.
func (c *Catalog) wireVersion(t lance.Table, v lance.Version) (api.TableVersion, error) {
	p, err := c.place(t.Location)
	if err != nil {
		return api.TableVersion{}, err
	}
	return api.TableVersion{
		Version:         int64(v.Number),
		ManifestPath:    p.final(v.Chain.Branch, v.Number, v.Scheme),
		ManifestSize:    ptr(v.Size),
		ETag:            ptr(v.ETag),
		TimestampMillis: ptr(millis(v.Timestamp)),
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
	return committed(ctx, c, commitRequest{steps: []step{s}, context: req.Context}, func(o *outcome) (*api.BatchDeleteTableVersionsResponse, error) {
		return &api.BatchDeleteTableVersionsResponse{DeletedCount: ptr(o.results[0].count), TransactionID: transactionID(o.transaction)}, nil
	})
}

// deleteStep checks the request to delete versions.
func deleteStep(req *api.BatchDeleteTableVersionsRequest) (step, error) {
	s := step{kind: lance.EntryDeleteVersions, id: req.ID}
	if err := checkTableID(s.id); err != nil {
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
		s.ranges = append(s.ranges, [2]lance.VersionNumber{lance.VersionNumber(max(r.StartVersion, 1)), lance.VersionNumber(last)})
	}
	var err error
	s.branch, err = branchNamed(req.Branch)
	return s, err
}

// transactionID is a transaction's id as it travels, absent where a version was made by none.
func transactionID(id lance.TransactionID) *string {
	if id == "" {
		return nil
	}
	return ptr(string(id))
}
