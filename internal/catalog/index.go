package catalog

import (
	"context"
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/memory"
)

// indexShown is what is told of one index.
type indexShown struct {
	content  api.IndexContent
	distance string
}

// ListTableIndices lists the indices of a version, the latest where none is given, sorted by name, as far as its manifest tells: without their
// rows where a compaction left them to be brought up to date when they are read. Those that Lance keeps for itself are left out. Errors:
// 0 (a manifest with unknown flags), 1, 4, 11, 13, 19, 22.
func (c *Catalog) ListTableIndices(ctx context.Context, req *api.ListTableIndicesRequest) (*api.ListTableIndicesResponse, error) {
	limit, cur, err := c.openPage(api.Page{PageToken: req.PageToken, Limit: req.Limit}, "indices/"+lance.PathKey(req.ID))
	if err != nil {
		return nil, err
	}
	indices, err := c.indices(ctx, req.ID, req.Branch, req.Version)
	if err != nil {
		return nil, err
	}
	for len(indices) > 0 && cur.Name != "" && indices[0].content.IndexName <= cur.Name {
		indices = indices[1:]
	}
	indices, more := chain.Cut(indices, limit)
	resp := &api.ListTableIndicesResponse{Indexes: []api.IndexContent{}}
	for _, x := range indices {
		resp.Indexes = append(resp.Indexes, x.content)
		cur.Name = x.content.IndexName
	}
	resp.PageToken, err = c.closeCursor(cur, more)
	return resp, err
}

// DescribeTableIndexStats counts what an index covers, in the latest version or the given one. Errors: 0 (a manifest with unknown flags), 1, 4,
// 6, 11, 13, 19, 22.
func (c *Catalog) DescribeTableIndexStats(ctx context.Context, req *api.DescribeTableIndexStatsRequest) (*api.DescribeTableIndexStatsResponse, error) {
	indices, err := c.indices(ctx, req.ID, req.Branch, req.Version)
	if err != nil {
		return nil, err
	}
	for _, x := range indices {
		if x.content.IndexName != req.IndexName {
			continue
		}
		resp := &api.DescribeTableIndexStatsResponse{
			IndexType: x.content.IndexType, NumIndexedRows: x.content.NumIndexedRows, NumUnindexedRows: x.content.NumUnindexedRows, NumIndices: x.content.NumSegments,
		}
		if x.distance != "" {
			resp.DistanceType = ptr(x.distance)
		}
		return resp, nil
	}
	return nil, api.Errorf(api.CodeTableIndexNotFound, "table %q has no index %q", lance.ShowID(req.ID), req.IndexName)
}

// indices describes all indices of a version, sorted by name. A table that is only declared has none.
func (c *Catalog) indices(ctx context.Context, id []string, branch *string, number *int64) ([]indexShown, error) {
	r, err := c.readingAsked(ctx, id, branch, number)
	if err != nil || r.version.Number == 0 {
		return nil, err
	}
	s, err := r.summary(ctx)
	if err != nil {
		return nil, err
	}
	if why := unknownFlags(s); why != "" {
		return nil, api.Errorf(api.CodeUnsupported, "table %q: %s", lance.ShowID(r.table.Path), why)
	}
	return memory.Remembered(c.memory, memory.Key{What: memory.OfIndices, Digest: r.version.Digest}, func() ([]indexShown, int64, error) {
		indices, err := r.indices(ctx, s)
		bytes := 100
		for _, x := range indices {
			bytes += 1000
			if x.content.IndexDetails != nil {
				bytes += len(*x.content.IndexDetails)
			}
		}
		return indices, int64(bytes), err
	})
}

func (r *reading) indices(ctx context.Context, s *lance.VersionSummary) ([]indexShown, error) {
	data, err := r.manifest(ctx)
	if err != nil {
		return nil, err
	}
	details, err := lance.ReadDetails(data)
	if err != nil {
		return nil, r.damaged(err)
	}
	indices := details.Indices(s.ReaderFlags)
	if len(indices) == 0 {
		return nil, nil
	}
	covers, err := lance.Covers(data, details, indices)
	if err != nil {
		return nil, r.damaged(err)
	}
	names := fieldPaths(details.Fields)
	described := make([]indexShown, len(indices))
	for i, x := range indices {
		described[i] = describeIndex(x, covers[i], names)
	}
	return described, nil
}

// describeIndex puts what is known of an index into the words of the specification. Of its segments the first speaks for all, as to the Lance
// library.
func describeIndex(x lance.Index, covers lance.Coverage, names map[int32]string) indexShown {
	first := x.Segments[0]
	c := api.IndexContent{
		IndexName: x.Name, IndexUUID: first.UUID, Columns: []string{}, Status: "SUCCEEDED", IndexType: ptr(x.Type()), TypeURL: ptr(first.TypeURL),
		NumSegments: ptr(int64(len(x.Segments))),
	}
	for _, id := range x.Columns {
		if name, ok := names[id]; ok { // a column may be gone, and its index left behind
			c.Columns = append(c.Columns, name)
		}
	}
	if covers.Indexed >= 0 {
		c.NumIndexedRows, c.NumUnindexedRows = ptr(covers.Indexed), ptr(covers.Unindexed)
	}
	if text := x.DetailsJSON(); text != "" {
		c.IndexDetails = &text
	}
	c.IndexVersion = ptr(int64(0))
	if first.Version != nil {
		c.IndexVersion = ptr(int64(*first.Version))
	}
	bytes, told := int64(0), true
	for _, s := range x.Segments {
		bytes += s.Bytes
		told = told && s.Files > 0
		if !s.Created.IsZero() && (c.CreatedAt == nil || s.Created.Before(*c.CreatedAt)) {
			c.CreatedAt = ptr(s.Created)
		}
	}
	if told {
		c.SizeBytes = &bytes
	}
	return indexShown{content: c, distance: x.Distance()}
}

// fieldPaths returns the paths of the fields of a schema by their ids: names joined by points, those with a point or a backtick in them
// between backticks.
func fieldPaths(fields []lance.SchemaField) map[int32]string {
	paths := make(map[int32]string, len(fields))
	for _, f := range fields {
		if _, twice := paths[f.ID]; twice {
			continue
		}
		name := f.Name
		if strings.ContainsAny(name, ".`") {
			name = "`" + strings.ReplaceAll(name, "`", "``") + "`"
		}
		if parent, ok := paths[f.Parent]; ok && f.Parent != -1 {
			name = parent + "." + name
		}
		paths[f.ID] = name
	}
	return paths
}
