package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lancerest/lancerest/internal/lance"
)

// A table has one name and one place. Of tables that were found in one place, such as a directory and a symbolic link to it, or one inside the
// other, only one can be taken in. Which one must not depend on who comes first, and a dry run must know it.

// taken are the tables that are to be taken in, by places.
type taken struct {
	at    map[lance.Location]table
	above map[lance.Location]table // by every location that is or contains that of a table
}

// checkPlaces makes tables stand back whose place another one has. What really is there goes before links to it, then what contains others, then
// the first by name.
func (f *found) checkPlaces() {
	order := make([]*table, 0, len(f.tables))
	for i := range f.tables {
		if f.tables[i].fault == "" {
			order = append(order, &f.tables[i])
		}
	}
	slices.SortStableFunc(order, func(a, b *table) int {
		switch {
		case a.link == b.link:
			return cmp.Compare(len(a.location.Path), len(b.location.Path))
		case a.link:
			return 1
		}
		return -1
	})
	all := taken{at: map[lance.Location]table{}, above: map[lance.Location]table{}}
	for _, t := range order {
		if other, ok := all.overlapping(t.location); ok {
			t.twin = t.behind(other)
		} else {
			all.take(*t)
		}
	}
}

// overlapping returns the table whose location is, contains or lies inside the given one.
func (k taken) overlapping(loc lance.Location) (table, bool) {
	if t, ok := k.above[loc]; ok {
		return t, true
	}
	for ; loc.Path != ""; loc.Path = loc.Path[:strings.LastIndexByte(loc.Path, '/')] {
		if t, ok := k.at[loc]; ok {
			return t, true
		}
	}
	return table{}, false
}

func (k taken) take(t table) {
	k.at[t.location] = t
	for loc := t.location; loc.Path != ""; loc.Path = loc.Path[:strings.LastIndexByte(loc.Path, '/')] {
		k.above[loc] = t
	}
}

// behind says why a table stands back behind another one.
func (t table) behind(other table) string {
	name := strings.Join(other.path, "/")
	switch {
	case t.location != other.location:
		return fmt.Sprintf("it overlaps %s, which was found too: the location %s", name, other.location)
	case t.link:
		return fmt.Sprintf("its directory is a symbolic link to that of %s: a table has one name", name)
	}
	return fmt.Sprintf("it lies where %s does: a table has one name", name)
}
