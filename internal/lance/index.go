package lance

import (
	"slices"
	"strings"
)

// Index is one index of a version, with all its segments.
type Index struct {
	Name string
	// Columns are the schema fields that it is made for, without those that it only carries along.
	Columns  []int32
	Segments []IndexSegment
}

// Names of what Lance keeps among the indices for itself: no index that a query could use.
const (
	fragmentReuseIndex = "__lance_frag_reuse"
	memoryLogIndex     = "__lance_mem_wal"
)

// Indices returns a version's indices, sorted by name, without those that Lance keeps for itself. The flags are the manifest's ReaderFlags.
func (d Details) Indices(flags FeatureFlags) []Index {
	byName := map[string]*Index{}
	var indices []*Index
	for _, s := range d.Segments {
		if s.Name == fragmentReuseIndex || s.Name == memoryLogIndex {
			continue
		}
		x := byName[s.Name]
		if x == nil {
			x = &Index{Name: s.Name, Columns: s.columns(flags)}
			byName[s.Name] = x
			indices = append(indices, x)
		}
		x.Segments = append(x.Segments, s)
	}
	slices.SortFunc(indices, func(a, b *Index) int { return strings.Compare(a.Name, b.Name) })
	sorted := make([]Index, len(indices))
	for i, x := range indices {
		sorted[i] = *x
	}
	return sorted
}

// columns returns the fields that a segment is made for. Those that it only carries along stand behind them, unless the flag says that the two
// lists are apart.
func (s IndexSegment) columns(flags FeatureFlags) []int32 {
	if flags&FlagCoveringApart != 0 {
		return s.Fields
	}
	return s.Fields[:max(0, len(s.Fields)-len(s.CoveringFields))]
}

// Type returns the usual name of the index's type, "BTree" or "IVF_PQ", made from the message that describes it; "Unknown" where a
// writer left none, and the name in the message's type where it is not known here.
func (x Index) Type() string {
	s := x.Segments[0]
	if s.TypeURL == "" {
		return "Unknown"
	}
	name := strings.TrimSuffix(s.TypeURL[strings.LastIndexAny(s.TypeURL, "./")+1:], "IndexDetails")
	switch name {
	case "Vector":
		return s.vectorType()
	case "FM":
		return "Fm"
	}
	return name
}

// Coverage counts the rows that an index holds, deleted ones left out, and those that it lacks. Both are -1 where the manifest does not tell.
type Coverage struct {
	Indexed   int64
	Unindexed int64
}

// Covers counts for each of a version's indices what it covers, in one pass over the fragments of the manifest file, given whole. A
// fragment is covered as a whole or not at all.
//
// Nothing is told where a compaction left indices to be brought up to date when they are read, where an index does not say which fragments
// it has, or where a fragment does not say how many rows it has.
func Covers(data []byte, d Details, indices []Index) ([]Coverage, error) {
	covers := make([]Coverage, len(indices))
	unknown := slices.ContainsFunc(d.Segments, func(s IndexSegment) bool { return s.Name == fragmentReuseIndex })
	err := VisitFragments(data, func(f *Fragment) error {
		unknown = unknown || f.RowsUnknown
		for i, x := range indices {
			if x.covers(f.ID) {
				covers[i].Indexed += f.Rows()
			} else {
				covers[i].Unindexed += f.Rows()
			}
		}
		return nil
	})
	for i, x := range indices {
		if unknown || slices.ContainsFunc(x.Segments, func(s IndexSegment) bool { return s.Fragments == nil }) {
			covers[i] = Coverage{Indexed: -1, Unindexed: -1}
		}
	}
	return covers, err
}

func (x Index) covers(fragment uint64) bool {
	for _, s := range x.Segments {
		if s.Fragments != nil && s.Fragments.Contains(fragment) {
			return true
		}
	}
	return false
}
