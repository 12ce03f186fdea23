package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
)

// Tags live in storage, in the _refs/tags files that clients write themselves (client contract, fact 65); the operations here
// read and write the same files.

// ListTableTags lists the tags of a table, sorted by name. Errors: 1, 4, 13, 19 (a damaged file).
func (c *Catalog) ListTableTags(ctx context.Context, req *api.ListTableTagsRequest) (*api.ListTableTagsResponse, error) {
	limit, cur, err := c.openPage(req.Page, "tags/"+lance.PathKey(req.ID))
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
	names, err := p.TagNames(ctx, cur.Name)
	if err != nil {
		return nil, err
	}
	names, more := chain.Cut(names, limit)
	resp := &api.ListTableTagsResponse{Tags: map[string]api.TagContents{}}
	for _, name := range names {
		cur.Name = name
		tag, err := c.places.ReadTag(ctx, t, name)
		if err != nil && api.CodeOf(err) == api.CodeTableTagNotFound {
			continue // deleted since it was listed
		}
		if err != nil {
			return nil, err
		}
		contents := api.TagContents{Version: int64(tag.Version), ManifestSize: tag.ManifestSize}
		if tag.Branch != lance.Main {
			contents.Branch = ptr(string(tag.Branch))
		}
		resp.Tags[name] = contents
	}
	resp.PageToken, err = c.closeCursor(cur, more)
	return resp, err
}

// GetTableTagVersion tells which version, of which branch, a tag names. Errors: 1, 4, 8, 13, 19.
func (c *Catalog) GetTableTagVersion(ctx context.Context, req *api.GetTableTagVersionRequest) (*api.GetTableTagVersionResponse, error) {
	t, err := c.table(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	tag, err := c.places.ReadTag(ctx, t, req.Tag)
	if err != nil {
		return nil, err
	}
	resp := &api.GetTableTagVersionResponse{Version: int64(tag.Version)}
	if tag.Branch != lance.Main {
		resp.Branch = ptr(string(tag.Branch))
	}
	return resp, nil
}

// CreateTableTag gives a version a name. Of parallel calls for one name exactly one succeeds. Errors: 1, 4, 9, 11, 13, 22.
func (c *Catalog) CreateTableTag(ctx context.Context, req *api.CreateTableTagRequest) (*api.CreateTableTagResponse, error) {
	t, tag, err := c.tagFor(ctx, api.UpdateTableTagRequest(*req))
	if err != nil {
		return nil, err
	}
	p, err := c.places.At(t.Location)
	if err != nil {
		return nil, err
	}
	tag.CreatedAt = time.Now()
	tag.UpdatedAt = tag.CreatedAt
	data, err := lance.MarshalTag(tag)
	if err != nil {
		return nil, err
	}
	_, err = p.Objects.PutIfAbsent(ctx, lance.TagKey(p.Dir, tag.Name), data)
	if errors.Is(err, objstore.ErrExists) {
		return nil, api.Errorf(api.CodeTableTagAlreadyExists, "table %q has a tag %q already: update it, or choose another name", lance.ShowID(t.Path), tag.Name)
	}
	if err != nil {
		return nil, place.StorageError("write tag "+tag.Name, err)
	}
	return &api.CreateTableTagResponse{}, c.keepTagged(ctx, t, tag)
}

// UpdateTableTag lets a tag name another version. Errors: 1, 4, 8, 11, 13, 14 (somebody else changed it meanwhile), 22.
func (c *Catalog) UpdateTableTag(ctx context.Context, req *api.UpdateTableTagRequest) (*api.UpdateTableTagResponse, error) {
	t, tag, err := c.tagFor(ctx, *req)
	if err != nil {
		return nil, err
	}
	old, info, err := c.places.OpenTag(ctx, t, req.Tag)
	if err != nil {
		return nil, err
	}
	p, err := c.places.At(t.Location)
	if err != nil {
		return nil, err
	}
	tag.CreatedAt, tag.UpdatedAt, tag.Metadata = old.CreatedAt, time.Now(), old.Metadata
	data, err := lance.MarshalTag(tag)
	if err != nil {
		return nil, err
	}
	_, err = p.Objects.PutIf(ctx, info.Key, info.ETag, data)
	if errors.Is(err, objstore.ErrChanged) {
		return nil, api.Errorf(api.CodeConcurrentModification, "tag %q of table %q was changed by somebody else just now: read it and try again", req.Tag, lance.ShowID(t.Path))
	}
	if err != nil {
		return nil, place.StorageError("write tag "+req.Tag, err)
	}
	return &api.UpdateTableTagResponse{}, c.keepTagged(ctx, t, tag)
}

// keepTagged brings a version back that was deleted while a tag was given to it: its manifest goes only after the tags were looked
// at once more.
func (c *Catalog) keepTagged(ctx context.Context, t lance.Table, tag lance.Tag) error {
	row, err := c.state.RowIn(ctx, lance.Slot{Chain: lance.Chain{Table: t.ID, Branch: tag.Branch}, Number: tag.Version})
	if err != nil || row.State == lance.VersionCommitted {
		return err
	}
	return c.chains.Restore(ctx, row.Slot)
}

// tagFor makes the tag that a request asks for, after seeing that its version exists.
func (c *Catalog) tagFor(ctx context.Context, req api.UpdateTableTagRequest) (lance.Table, lance.Tag, error) {
	branch, err := branchNamed(req.Branch)
	if err != nil {
		return lance.Table{}, lance.Tag{}, err
	}
	if err := lance.CheckTagName(req.Tag); err != nil {
		return lance.Table{}, lance.Tag{}, api.Errorf(api.CodeInvalidInput, "%v", err)
	}
	if req.Version < 1 {
		return lance.Table{}, lance.Tag{}, api.Errorf(api.CodeInvalidInput, "version %d cannot have a tag: versions begin at 1", req.Version)
	}
	t, err := c.table(ctx, req.ID)
	if err != nil {
		return t, lance.Tag{}, err
	}
	v, err := c.chains.Version(ctx, t, lance.Slot{Chain: lance.Chain{Table: t.ID, Branch: branch}, Number: lance.VersionNumber(req.Version)})
	if err != nil {
		return t, lance.Tag{}, err
	}
	return t, lance.Tag{Name: req.Tag, Branch: branch, Version: v.Number, ManifestSize: v.Size}, nil
}

// DeleteTableTag removes a tag; the version stays. Errors: 1, 4, 8, 13.
func (c *Catalog) DeleteTableTag(ctx context.Context, req *api.DeleteTableTagRequest) (*api.DeleteTableTagResponse, error) {
	t, err := c.table(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	_, info, err := c.places.OpenTag(ctx, t, req.Tag)
	if err != nil && api.CodeOf(err) != api.CodeInvalidTableState {
		return nil, err
	}
	p, err := c.places.At(t.Location)
	if err != nil {
		return nil, err
	}
	if err := p.Objects.DeleteIf(ctx, info.Key, info.ETag); err != nil && !errors.Is(err, objstore.ErrChanged) {
		return nil, place.StorageError("remove tag "+req.Tag, err)
	} else if err != nil {
		return nil, api.Errorf(api.CodeConcurrentModification, "tag %q of table %q was changed by somebody else just now: read it and try again", req.Tag, lance.ShowID(t.Path))
	}
	return &api.DeleteTableTagResponse{}, nil
}
