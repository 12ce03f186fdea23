// Package importer takes datasets that lie in storage already into a catalog: a directory or a bucket's prefix of them, flat or nested, and the
// directory catalogs that Lance libraries keep themselves. It finds them, says what it would do, and registers them one by one; what is there
// already is passed over, so that an import that was broken off goes on where it stopped. Nothing in storage is written, moved or removed.
//
// What does not live here: what a registered table is and how its versions are taken in (package catalog), and how stores and catalogs are
// opened (package app).
package importer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
)

// Known tells what the catalog has already.
type Known interface {
	// Table returns the location of the table at a path, "" if there is none.
	Table(ctx context.Context, id lance.TableID) (string, error)
	// Claimed returns a table's location that equals, contains or lies inside the given one, "" if there is none or nobody can tell beforehand.
	Claimed(ctx context.Context, location string) (string, error)
}

// Catalog takes tables in. Errors are *api.Error where the catalog has refused something.
type Catalog interface {
	CreateNamespace(ctx context.Context, req *api.CreateNamespaceRequest) (*api.CreateNamespaceResponse, error)
	RegisterTable(ctx context.Context, req *api.RegisterTableRequest) (*api.RegisterTableResponse, error)
	DeclareTable(ctx context.Context, req *api.DeclareTableRequest) (*api.DeclareTableResponse, error)
}

// Options say what to import and where to. Location, Objects, Known and Report are required.
type Options struct {
	// Location is the directory, or the prefix in a bucket, in which datasets are sought, or one dataset. Objects is its store.
	Location lance.Location
	Objects  objstore.Store
	// Into is the namespace that takes the tables; it is made where it is missing.
	Into lance.NamespaceID
	// Nested makes namespaces of the directories below Location; without it only the datasets right in it are taken.
	Nested bool
	// Unmanaged leaves the versions of the tables to storage: the catalog is a directory of names for them.
	Unmanaged bool
	// Known tells what is there. Catalog takes the rest in; nil makes a dry run, which writes nothing at all.
	Known   Known
	Catalog Catalog
	// Python is the interpreter that reads the table of a directory catalog; it must have pylance (default "python3").
	Python string
	// Resolve returns where a location really is, past symbolic links (default: as it stands).
	Resolve func(lance.Location) lance.Location
	// Refuse says why a location can have no table of this catalog, "" if nothing is known against it (default).
	Refuse func(lance.Location) string
	// Report is told of every table, in the order of their names, never from two goroutines at once.
	Report func(Item)
}

// Status is what became of a table.
type Status string

// The statuses. A failed table is one for which something did not answer: again, it may work.
const (
	Imported    Status = "imported"
	WouldImport Status = "would import"
	Declared    Status = "declared" // it has no data yet: its name and place are kept
	WouldDecl   Status = "would declare"
	There       Status = "already there"
	Skipped     Status = "skipped"
	Failed      Status = "failed"
)

// Item is one table that was found.
type Item struct {
	Status   Status
	Path     []string // in the catalog; empty where it can have no name there
	Location string
	Why      string // of Skipped and Failed
}

// Summary counts tables by what became of them, and the namespaces that hold them.
type Summary struct {
	Found, Namespaces int
	Tables            map[Status]int
}

// parallel is how many tables are looked at and taken in at a time.
const parallel = 16

// run is one import.
type run struct {
	Options
	mu      sync.Mutex
	summary Summary
	told    int // tables that Report was told of
}

// Run imports, or reports what it would import. The error says why nothing could be found, or that ctx ended; what befell single tables is in
// the report and the summary.
func Run(ctx context.Context, o Options) (Summary, error) {
	o.Python = cmp.Or(o.Python, "python3")
	if o.Resolve == nil {
		o.Resolve = func(l lance.Location) lance.Location { return l }
	}
	if o.Refuse == nil {
		o.Refuse = func(lance.Location) string { return "" }
	}
	r := &run{Options: o, summary: Summary{Tables: map[Status]int{}}}
	found, err := r.find(ctx)
	if err != nil {
		return r.summary, err
	}
	r.summary.Found = len(found.tables)
	spaces := found.spaces(o.Into)
	r.summary.Namespaces = len(spaces)
	if err := r.makeSpaces(ctx, spaces); err != nil {
		return r.summary, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	done := make([]*Item, len(found.tables))
	for i, t := range found.tables {
		g.Go(func() error {
			r.report(done, i, r.take(gctx, t))
			return gctx.Err()
		})
	}
	return r.summary, g.Wait()
}

// report tells of a table, the one with number i, once all before it were told of. done keeps those that wait for that.
func (r *run) report(done []*Item, i int, item Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.summary.Tables[item.Status]++
	done[i] = &item
	for ; r.told < len(done) && done[r.told] != nil; r.told++ {
		r.Report(*done[r.told])
		done[r.told] = &Item{} // it is not needed any more
	}
}

// makeSpaces makes the namespaces, outer ones first, that are not there. One that a table's name stands in the way of is left to the refusals of
// the tables in it.
func (r *run) makeSpaces(ctx context.Context, spaces []space) error {
	if r.Catalog == nil {
		return nil
	}
	for _, s := range spaces {
		req := &api.CreateNamespaceRequest{Target: api.At(s.path...), Mode: new(string), Properties: s.properties}
		*req.Mode = "ExistOk"
		_, err := r.Catalog.CreateNamespace(ctx, req)
		if err != nil && !refused(err) {
			return err
		}
	}
	return nil
}

// refused reports whether the catalog has judged a request, so that the same one would be refused again.
func refused(err error) bool {
	var e *api.Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Code != api.CodeServiceUnavailable && e.Code != api.CodeInternal && e.Code != api.CodeThrottling && e.Code != api.CodeUnauthenticated
}

// take brings one table into the catalog.
func (r *run) take(ctx context.Context, t table) Item {
	item := Item{Path: t.path, Location: t.location.String(), Status: Skipped, Why: t.fault}
	if t.fault != "" {
		return item
	}
	if r.there(ctx, &item) {
		return item
	}
	if item.Why = t.twin; item.Why != "" {
		return item
	}
	if item.Why = r.Refuse(t.location); item.Why != "" {
		return item
	}
	what, err := r.look(ctx, t)
	switch {
	case err != nil:
		item.Status, item.Why = Failed, err.Error()
	case what.fault != "":
		item.Why = what.fault
	case r.Catalog == nil:
		r.foresee(ctx, &item, what)
	default:
		r.enter(ctx, &item, t, what)
	}
	return item
}

// there reports whether the table's name leads somewhere already, and notes where to.
func (r *run) there(ctx context.Context, item *Item) bool {
	at, err := r.Known.Table(ctx, item.Path)
	switch {
	case err != nil:
		item.Status, item.Why = Failed, err.Error()
	case at == "":
		return false
	case at == item.Location:
		item.Status, item.Why = There, ""
	default:
		item.Status, item.Why = Skipped, "the catalog has another table of that name, at "+at
	}
	return true
}

// foresee says what a dry run can know of the outcome.
func (r *run) foresee(ctx context.Context, item *Item, what looked) {
	claimed, err := r.Known.Claimed(ctx, item.Location)
	switch {
	case err != nil:
		item.Status, item.Why = Failed, err.Error()
	case claimed != "":
		item.Why = "the catalog has it, or what it overlaps, under another name: the location " + claimed
	case what.declared:
		item.Status = WouldDecl
	default:
		item.Status = WouldImport
	}
}

// enter registers a dataset, or declares a table that has no data yet.
func (r *run) enter(ctx context.Context, item *Item, t table, what looked) {
	var err error
	if what.declared {
		item.Status = Declared
		_, err = r.Catalog.DeclareTable(ctx, &api.DeclareTableRequest{Target: api.At(t.path...), Location: &item.Location, Properties: r.properties(t)})
	} else {
		item.Status = Imported
		_, err = r.Catalog.RegisterTable(ctx, &api.RegisterTableRequest{Target: api.At(t.path...), Location: item.Location, Properties: r.properties(t)})
	}
	switch {
	case err == nil:
	case api.CodeOf(err) == api.CodeTableAlreadyExists && r.there(ctx, item):
		// Somebody else has imported it meanwhile.
	case refused(err):
		item.Status, item.Why = Skipped, err.Error()
	default:
		item.Status, item.Why = Failed, err.Error()
	}
}

// properties are those of a table, with what the import says of all of them.
func (r *run) properties(t table) map[string]string {
	if !r.Unmanaged {
		return t.properties
	}
	all := map[string]string{"managed_versioning": "false"}
	for key, value := range t.properties {
		all[key] = value
	}
	return all
}

// space is a namespace that the import needs.
type space struct {
	path       lance.NamespaceID
	properties map[string]string
}

// table is a dataset that was found.
type table struct {
	path       lance.TableID
	location   lance.Location
	properties map[string]string
	link       bool   // its directory is a symbolic link to location
	listed     bool   // it was found in a listing, where a marker may say that it is no table any more
	fault      string // why it cannot be taken
	twin       string // why it stands back behind another table that was found; what the catalog has already is there all the same
}

// found is what lies in a source.
type found struct {
	spaces_ []space // with properties of their own
	tables  []table
}

func key(path []string) string { return strings.Join(path, "\x1f") }

// spaces returns every namespace that is needed, outer ones first: those with properties, and all above them and above tables.
func (f *found) spaces(into lance.NamespaceID) []space {
	byPath := map[string]space{}
	add := func(path lance.NamespaceID) {
		for depth := 1; depth <= len(path); depth++ {
			if _, ok := byPath[key(path[:depth])]; !ok {
				byPath[key(path[:depth])] = space{path: path[:depth]}
			}
		}
	}
	for _, s := range f.spaces_ {
		byPath[key(s.path)] = s
	}
	for _, s := range f.spaces_ {
		add(s.path)
	}
	for _, t := range f.tables {
		if t.fault == "" {
			add(t.path.Namespace())
		}
	}
	add(into)
	all := make([]space, 0, len(byPath))
	for _, s := range byPath {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b space) int {
		return cmp.Or(cmp.Compare(len(a.path), len(b.path)), slices.Compare(a.path, b.path))
	})
	return all
}
