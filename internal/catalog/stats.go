package catalog

import (
	"context"
	"slices"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/memory"
)

// smallFragment is the number of rows under which a fragment counts as small: the size that the Lance library compacts to.
const smallFragment = 1 << 20

// tableStats are the numbers of one version that its row does not have.
type tableStats struct {
	fragments  api.FragmentStats
	numIndices int64
}

// readingAsked finds the version that a request is about. For a table that is only declared its Number is 0.
func (c *Catalog) readingAsked(ctx context.Context, id []string, branch *string, number *int64) (*reading, error) {
	b, err := branchNamed(branch)
	if err != nil {
		return nil, err
	}
	t, err := c.table(ctx, id)
	if err != nil {
		return nil, err
	}
	v, err := c.versionAsked(ctx, t, b, number)
	return &reading{c: c, table: t, version: v}, err
}

// GetTableStats sums up the latest version of a branch by its manifest: rows without the deleted ones, the bytes of all data files, the indices
// by their names, and how the rows spread over fragments, deleted ones included. All is 0 for a table that is only declared. Errors: 0 (the
// manifest does not tell), 1, 4, 19, 22.
func (c *Catalog) GetTableStats(ctx context.Context, req *api.GetTableStatsRequest) (*api.GetTableStatsResponse, error) {
	r, err := c.readingAsked(ctx, req.ID, req.Branch, nil)
	if err != nil || r.version.Number == 0 {
		return &api.GetTableStatsResponse{}, err
	}
	s, err := r.summary(ctx)
	if err != nil {
		return nil, err
	}
	if err := countable(r.table, s); err != nil {
		return nil, err
	}
	stats, err := memory.Remembered(c.memory, memory.Key{What: memory.OfStats, Digest: r.version.Digest}, func() (*tableStats, int64, error) {
		stats, err := r.stats(ctx, s)
		return stats, 300, err
	})
	if err != nil {
		return nil, err
	}
	return &api.GetTableStatsResponse{TotalBytes: s.DataBytes, NumRows: s.Rows, NumIndices: stats.numIndices, FragmentStats: stats.fragments}, nil
}

// stats reads the manifest: the indices it names, and its fragments in one pass.
func (r *reading) stats(ctx context.Context, s *lance.VersionSummary) (*tableStats, error) {
	data, err := r.manifest(ctx)
	if err != nil {
		return nil, err
	}
	details, err := lance.ReadDetails(data)
	if err != nil {
		return nil, r.damaged(err)
	}
	lengths := make([]int64, 0, s.Fragments)
	small := int64(0)
	err = lance.VisitFragments(data, func(f *lance.Fragment) error {
		lengths = append(lengths, f.PhysicalRows)
		if f.PhysicalRows < smallFragment {
			small++
		}
		return nil
	})
	if err != nil {
		return nil, r.damaged(err)
	}
	return &tableStats{
		numIndices: int64(len(details.Indices(s.ReaderFlags))),
		fragments:  api.FragmentStats{NumFragments: int64(len(lengths)), NumSmallFragments: small, Lengths: spread(lengths)},
	}, nil
}

// spread sums up how many rows fragments have. The list is sorted by it.
func spread(lengths []int64) api.FragmentSummary {
	if len(lengths) == 0 {
		return api.FragmentSummary{}
	}
	slices.Sort(lengths)
	sum := int64(0)
	for _, n := range lengths {
		sum += n
	}
	last := len(lengths) - 1
	percent := func(p int) int64 { return lengths[last*p/100] }
	return api.FragmentSummary{
		Min: lengths[0], Max: lengths[last], Mean: sum / int64(len(lengths)), P25: percent(25), P50: percent(50), P75: percent(75), P99: percent(99),
	}
}

// CountTableRows counts the rows of a version, the latest where none is given, by its summary: without a look at storage. A predicate needs the
// engine; the caller sees to that. Errors: 0 (the manifest does not tell), 1, 4, 11, 19, 22.
func (c *Catalog) CountTableRows(ctx context.Context, req *api.CountTableRowsRequest) (*api.CountTableRowsResponse, error) {
	r, err := c.readingAsked(ctx, req.ID, req.Branch, req.Version)
	if err != nil || r.version.Number == 0 {
		return &api.CountTableRowsResponse{}, err
	}
	s, err := r.summary(ctx)
	if err != nil {
		return nil, err
	}
	if err := countable(r.table, s); err != nil {
		return nil, err
	}
	return &api.CountTableRowsResponse{Count: s.Rows}, nil
}
