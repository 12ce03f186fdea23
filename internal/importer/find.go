package importer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
)

// What lies in a directory of datasets (Lance's directory catalog, versions 1 and 2).
const (
	suffix       = ".lance"
	catalogTable = "__manifest"
	reserved     = ".lance-reserved"     // a table that is declared and has no data yet
	deregistered = ".lance-deregistered" // a table that was taken out of the directory, with its data still there
)

// find says what lies in the source: one dataset, a directory catalog, a tree or a plain directory of datasets.
func (r *run) find(ctx context.Context) (*found, error) {
	folders, err := objstore.FoldersOf(ctx, r.Objects, dirOf(r.Location))
	if err != nil {
		return nil, err
	}
	f := &found{}
	switch {
	case slices.Contains(folders, lance.VersionsDir):
		name := r.Location.Path[strings.LastIndexByte(r.Location.Path, '/')+1:]
		f.tables = []table{{path: r.at(strings.TrimSuffix(name, suffix)), location: r.Resolve(r.Location)}}
	case slices.Contains(folders, catalogTable):
		err = r.findInCatalog(ctx, f, folders)
	case r.Nested:
		err = r.findBelow(ctx, f)
	default:
		err = r.findHere(ctx, f, folders)
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(f.tables, func(a, b table) int { return slices.Compare(a.path, b.path) })
	f.checkNames()
	f.checkPlaces()
	return f, nil
}

// dirOf is the prefix of the keys below a location.
func dirOf(l lance.Location) string {
	if l.Key() == "" {
		return ""
	}
	return l.Key() + "/"
}

// at is a path in the namespace that takes the tables.
func (r *run) at(names ...string) lance.TableID {
	return append(slices.Clone(lance.TableID(r.Into)), names...)
}

// checkNames finds fault with paths that the catalog cannot have.
func (f *found) checkNames() {
	spaces := map[string]bool{}
	for _, t := range f.tables {
		for depth := 1; t.fault == "" && depth < len(t.path); depth++ {
			spaces[key(t.path[:depth])] = true
		}
	}
	taken := map[string]lance.Location{}
	for i := range f.tables {
		t := &f.tables[i]
		if t.fault != "" {
			continue
		}
		other, twice := taken[key(t.path)]
		switch err := lance.CheckPath(t.path, lance.DefaultDelimiter); {
		case slices.ContainsFunc(t.path, func(name string) bool { return strings.Contains(name, lance.DefaultDelimiter) }):
			t.fault = "its name holds a " + lance.DefaultDelimiter + ", which separates the names of a table's id: rename its directory, or register it under another name with its location (RegisterTable)"
		case err != nil:
			t.fault = err.Error()
		case spaces[key(t.path)]:
			t.fault = "a namespace has the same name: names are unique among all children of a namespace"
		case twice:
			t.fault = "another dataset found has the same name, at " + other.String()
		default:
			taken[key(t.path)] = t.location
		}
	}
}

// findHere takes what a listing of the directory shows: names that end in .lance. Datasets with other names are told.
func (r *run) findHere(ctx context.Context, f *found, folders []string) error {
	others, err := r.holding(ctx, r.Location, slices.DeleteFunc(slices.Clone(folders), func(name string) bool { return strings.HasSuffix(name, suffix) }))
	if err != nil {
		return err
	}
	for _, name := range folders {
		bare, named := strings.CutSuffix(name, suffix)
		if !named && !others[name] {
			continue
		}
		t := r.listedTable(r.at(bare), r.Location, name)
		if !named && t.fault == "" {
			t.fault = `its directory is not named *.lance, so that no listing shows it: rename it, or import it by its own location, or with --nested`
		}
		f.tables = append(f.tables, t)
	}
	return nil
}

// listedTable is a table in a directory that a listing showed.
func (r *run) listedTable(path lance.TableID, parent lance.Location, name string) table {
	loc, err := parent.Join(name)
	if err != nil {
		return table{path: path, location: parent, fault: err.Error()}
	}
	really := r.Resolve(loc)
	return table{path: path, location: really, link: really != loc, listed: true}
}

// holding returns those of the directories in parent that are datasets.
func (r *run) holding(ctx context.Context, parent lance.Location, names []string) (map[string]bool, error) {
	is := make([]bool, len(names))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, name := range names {
		g.Go(func() error {
			inside, err := objstore.FoldersOf(gctx, r.Objects, dirOf(parent)+name+"/")
			is[i] = slices.Contains(inside, lance.VersionsDir)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	holds := map[string]bool{}
	for i, name := range names {
		if is[i] {
			holds[name] = true
		}
	}
	return holds, nil
}

// folder is a directory of a tree.
type folder struct {
	location lance.Location // past symbolic links
	link     bool           // the last of its names is a symbolic link
	names    []string       // its directories that lead to it
	inside   []string       // its own directories
}

// findBelow takes every dataset of the tree, whatever it is called; the directories that lead to it become namespaces. Symbolic links to other
// directories are followed once all that can be reached without them is found, for they may lead to where we came from.
func (r *run) findBelow(ctx context.Context, f *found) error {
	level, links := []folder{{location: r.Resolve(r.Location)}}, []folder(nil)
	seen := map[lance.Location]bool{}
	for len(level) > 0 {
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(parallel)
		for i := range level {
			g.Go(func() (err error) {
				level[i].inside, err = objstore.FoldersOf(gctx, r.Objects, dirOf(level[i].location))
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		var next []folder
		for _, at := range level {
			if !r.dataset(f, at) && !seen[at.location] {
				seen[at.location] = true
				next = append(next, r.below(f, at)...)
			}
		}
		level = nil
		for _, at := range next {
			if at.link {
				links = append(links, at)
			} else {
				level = append(level, at)
			}
		}
		if len(level) == 0 {
			slices.SortFunc(links, func(a, b folder) int { return slices.Compare(a.names, b.names) })
			level, links = links, nil
		}
	}
	return nil
}

// dataset takes a directory of a tree for a dataset, or says that it is none.
func (r *run) dataset(f *found, at folder) bool {
	last := len(at.names) - 1
	if slices.Contains(at.inside, lance.VersionsDir) || last >= 0 && strings.HasSuffix(at.names[last], suffix) {
		path := r.at(at.names...)
		path[len(path)-1] = strings.TrimSuffix(path[len(path)-1], suffix)
		f.tables = append(f.tables, table{path: path, location: at.location, link: at.link, listed: true})
		return true
	}
	if slices.Contains(at.inside, catalogTable) {
		f.tables = append(f.tables, table{path: r.at(at.names...), location: at.location, fault: "it is a directory catalog of its own: import it by its own location"})
		return true
	}
	return false
}

// below returns the directories in a directory of a tree.
func (r *run) below(f *found, at folder) []folder {
	var below []folder
	for _, name := range at.inside {
		loc, err := at.location.Join(name)
		if err != nil || len(at.names) >= lance.MaxDepth {
			f.tables = append(f.tables, table{path: r.at(at.names...), location: at.location, fault: fmt.Sprintf("what is in its directory %q is too deep or cannot be named: %v", name, err)})
			continue
		}
		really := r.Resolve(loc)
		below = append(below, folder{location: really, link: really != loc, names: append(slices.Clone(at.names), name)})
	}
	return below
}

// looked is what a table's directory holds.
type looked struct {
	declared bool   // nothing yet
	fault    string // why it is no table
}

// look finds out whether a table's directory holds a version that can be read. Registering does so too; this tells it beforehand.
func (r *run) look(ctx context.Context, t table) (looked, error) {
	dir := dirOf(t.location)
	if t.listed {
		out, err := objectThere(ctx, r.Objects, dir+deregistered)
		if err != nil || out {
			return looked{fault: "it was deregistered: its directory holds " + deregistered}, err
		}
	}
	newest, err := newestManifest(ctx, r.Objects, dir)
	if err != nil {
		return looked{}, err
	}
	if newest == "" {
		return r.lookForMarker(ctx, t)
	}
	if r.Catalog != nil {
		return looked{}, nil
	}
	data, _, err := r.Objects.Get(ctx, newest, manifestMax)
	if err != nil {
		return looked{}, err
	}
	if _, err := lance.ReadManifest(data); err != nil {
		return looked{fault: newest + " cannot be read: " + err.Error()}, nil
	}
	return looked{}, nil
}

// manifestMax bounds the bytes of a manifest that is read.
const manifestMax = 1 << 30

// lookForMarker tells a table that is only declared from a directory that is none. Rows of a directory catalog need no marker.
func (r *run) lookForMarker(ctx context.Context, t table) (looked, error) {
	there, err := objectThere(ctx, r.Objects, dirOf(t.location)+reserved)
	if err != nil || there || !t.listed {
		return looked{declared: true}, err
	}
	return looked{fault: "it holds no version: there is no manifest in its " + lance.VersionsDir + " directory"}, nil
}
