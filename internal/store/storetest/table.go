package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

func (s suite) tables(t *testing.T) {
	s.run(t, "Tables/in order, zero where there is none", func(h *harness) {
		h.namespace("a")
		h.namespace("a", "b")
		deep, top := h.table("a", "b", "t"), h.table("t")
		got := read(h, func(r store.Reader) ([]lance.Table, error) {
			return r.Tables([]lance.TableID{deep.Path, {"a", "t"}, top.Path, {"a"}, deep.Path, {"b", "t"}, {"a\x1fb", "t"}, {}, {""}})
		})
		h.equal("tables", got, []lance.Table{deep, {}, top, {}, deep, {}, {}, {}, {}})
	})
	s.run(t, "TableByID/whatever its state", func(h *harness) {
		live, dropped, deregistered := h.table("a"), h.table("b"), h.table("c")
		h.end(dropped.ID, lance.TableDropped)
		h.end(deregistered.ID, lance.TableDeregistered)
		dropped.State, dropped.Path = lance.TableDropped, nil
		deregistered.State, deregistered.Path = lance.TableDeregistered, nil
		for _, want := range []lance.Table{live, dropped, deregistered} {
			h.equal("table", read(h, func(r store.Reader) (lance.Table, error) { return r.TableByID(want.ID) }), want)
		}
	})
	s.run(t, "TableByID/after its namespace is gone", func(h *harness) {
		ns, table := h.namespace("a"), h.table("a", "t")
		h.end(table.ID, lance.TableDropped)
		h.update(func(tx store.Tx) error { return tx.DeleteNamespace(ns.ID) })
		got := read(h, func(r store.Reader) (lance.Table, error) { return r.TableByID(table.ID) })
		h.equal("location", got.Location, table.Location)
	})
	s.run(t, "TableByID/ErrNotFound", func(h *harness) {
		ns := h.namespace("a")
		for _, id := range []lance.ObjectID{12345, ns.ID, lance.RootID} {
			h.view(func(r store.Reader) error {
				if _, err := r.TableByID(id); !errors.Is(err, store.ErrNotFound) {
					h.Errorf("%d: got error %v, want ErrNotFound", id, err)
				}
				return nil
			})
		}
	})
	s.tableInserts(t)
	s.tableEnds(t)
	s.renames(t)
	s.tableLists(t)
}

func (s suite) tableInserts(t *testing.T) {
	s.run(t, "InsertTable/ErrExists for a table", func(h *harness) {
		h.table("t")
		h.refuse(store.ErrExists, insertTable("t"))
	})
	s.run(t, "InsertTable/ErrExists for a namespace", func(h *harness) {
		h.namespace("a")
		h.refuse(store.ErrExists, insertTable("a"))
	})
	s.run(t, "InsertTable/ErrExists before ErrLocationTaken", func(h *harness) {
		first := h.table("t")
		h.refuse(store.ErrExists, func(tx store.Tx) error {
			again := first
			again.ID = tx.NewID()
			return tx.InsertTable(again)
		})
	})
	s.run(t, "InsertTable/ErrNotFound for a namespace that is gone", func(h *harness) {
		ns, other := h.namespace("a"), h.table("t")
		h.update(func(tx store.Tx) error { return tx.DeleteNamespace(ns.ID) })
		for _, parent := range []lance.ObjectID{ns.ID, other.ID} {
			h.refuse(store.ErrNotFound, func(tx store.Tx) error {
				table, _ := newTable(tx, "x")
				table.Namespace = parent
				return tx.InsertTable(table)
			})
		}
	})
	s.run(t, "InsertTable/names differ in case and form", func(h *harness) {
		for _, name := range alike() {
			h.table(name)
		}
		for _, name := range alike() {
			got := read(h, func(r store.Reader) ([]lance.Table, error) { return r.Tables([]lance.TableID{{name}}) })
			h.equal("path", got[0].Path, lance.TableID{name})
		}
	})
	s.run(t, "InsertTable/an error leaves the transaction usable", func(h *harness) {
		h.table("t")
		h.update(func(tx store.Tx) error {
			if err := insertTable("t")(tx); !errors.Is(err, store.ErrExists) {
				h.Errorf("got error %v, want ErrExists", err)
			}
			return insertTable("u")(tx)
		})
		h.equal("tables", h.listTables(lance.RootID, store.TablePage{Limit: 10}), []string{"t", "u"})
	})
}

func (s suite) tableEnds(t *testing.T) {
	s.run(t, "EndTable/frees the name", func(h *harness) {
		for _, state := range []lance.TableState{lance.TableDropped, lance.TableDeregistered} {
			first := h.table("t")
			h.end(first.ID, state)
			second := h.table("t")
			if first.ID == second.ID {
				h.Errorf("the id %d was given twice", first.ID)
			}
			h.end(second.ID, state)
		}
		h.namespace("t")
	})
	s.run(t, "EndTable/ErrNotFound", func(h *harness) {
		table, ns := h.table("t"), h.namespace("a")
		h.end(table.ID, lance.TableDropped)
		for _, id := range []lance.ObjectID{table.ID, ns.ID, 12345} {
			h.refuse(store.ErrNotFound, func(tx store.Tx) error { return tx.EndTable(id, lance.TableDeregistered) })
		}
		got := read(h, func(r store.Reader) (lance.Table, error) { return r.TableByID(table.ID) })
		h.equal("state", got.State, lance.TableDropped)
	})
	s.run(t, "ForgetTable/in chunks", s.forgetTable)
	s.run(t, "ForgetTable/what is gone is forgotten", func(h *harness) {
		if done := wrote(h, func(tx store.Tx) (bool, error) { return tx.ForgetTable(12345, 10) }); !done {
			h.Error("got false, want true")
		}
	})
	s.run(t, "ForgetTable/a live table stays", func(h *harness) {
		table := h.table("t")
		h.refuse(store.ErrExists, func(tx store.Tx) error {
			_, err := tx.ForgetTable(table.ID, 10)
			return err
		})
		h.equal("tables", h.listTables(lance.RootID, store.TablePage{Limit: 10}), []string{"t"})
	})
}

func (s suite) renames(t *testing.T) {
	s.run(t, "RenameTable/name, namespace and both", func(h *harness) {
		h.namespace("a")
		b := h.namespace("b")
		table := h.table("a", "t")
		for _, to := range []lance.TableID{{"a", "u"}, {"b", "u"}, {"top"}, {"b", "T"}, {"b", "T"}} {
			h.rename(table.ID, to)
			table.Path = to
			table.Namespace = read(h, func(r store.Reader) (lance.Namespace, error) { return r.Namespace(to.Namespace()) }).ID
			got := read(h, func(r store.Reader) ([]lance.Table, error) { return r.Tables([]lance.TableID{to, {"a", "t"}}) })
			h.equal("tables", got, []lance.Table{table, {}})
		}
		h.equal("tables of b", h.listTables(b.ID, store.TablePage{Limit: 10}), []string{"T"})
	})
	s.run(t, "RenameTable/ErrExists", func(h *harness) {
		ns, table := h.namespace("a"), h.table("t")
		h.table("u")
		h.table("a", "u")
		for _, to := range []struct {
			namespace lance.ObjectID
			name      string
		}{{lance.RootID, "u"}, {lance.RootID, "a"}, {ns.ID, "u"}} {
			h.refuse(store.ErrExists, func(tx store.Tx) error { return tx.RenameTable(table.ID, to.namespace, to.name) })
		}
	})
	s.run(t, "RenameTable/ErrNotFound", func(h *harness) {
		gone, table, dropped := h.namespace("a"), h.table("t"), h.table("d")
		h.end(dropped.ID, lance.TableDropped)
		h.update(func(tx store.Tx) error { return tx.DeleteNamespace(gone.ID) })
		h.refuse(store.ErrNotFound, func(tx store.Tx) error { return tx.RenameTable(table.ID, gone.ID, "t") })
		h.refuse(store.ErrNotFound, func(tx store.Tx) error { return tx.RenameTable(table.ID, dropped.ID, "t") })
		h.refuse(store.ErrNotFound, func(tx store.Tx) error { return tx.RenameTable(dropped.ID, lance.RootID, "x") })
		h.refuse(store.ErrNotFound, func(tx store.Tx) error { return tx.RenameTable(12345, lance.RootID, "x") })
	})
	s.run(t, "RenameTable/frees the old name", func(h *harness) {
		table := h.table("t")
		h.rename(table.ID, lance.TableID{"u"})
		h.table("t")
	})
}

func (s suite) tableLists(t *testing.T) {
	s.run(t, "ListTables/every limit", func(h *harness) {
		ns := h.namespace("a")
		want := names(6)
		for i := range want {
			h.table("a", want[(i*5)%len(want)])
		}
		h.namespace("a", "n001n")
		h.table("a", "n001n", "x")
		h.table("z")
		dropped := h.table("a", "n002d")
		h.end(dropped.ID, lance.TableDropped)
		for limit := 1; limit <= len(want)+1; limit++ {
			var got []string
			page := store.TablePage{Limit: limit}
			for more := true; more; {
				list := h.listTables(ns.ID, page)
				got = append(got, list...)
				if more = len(list) == limit; more {
					page.AfterName = list[limit-1]
				}
			}
			h.equal(fmt.Sprintf("limit %d", limit), got, want)
		}
	})
	s.run(t, "ListTables/without declared", func(h *harness) {
		h.declareSome()
		page := store.TablePage{Limit: 10, WithoutDeclared: true}
		h.equal("tables", h.listTables(lance.RootID, page), []string{"committed", "pruned"})
		page.Limit = 1
		h.equal("first", h.listTables(lance.RootID, page), []string{"committed"})
	})
	s.run(t, "ListAllTables/keyset over namespaces, every limit", func(h *harness) {
		h.namespace("a")
		h.namespace("a", "b")
		var want []lance.Table
		for _, path := range [][]string{{"t1"}, {"t2"}, {"a", "t0"}, {"a", "t3"}, {"a", "b", "t0"}, {"a", "b", "t1"}} {
			want = append(want, h.table(path...))
		}
		slices.SortStableFunc(want, func(x, y lance.Table) int { return cmp.Compare(x.Namespace, y.Namespace) })
		for limit := 1; limit <= len(want)+1; limit++ {
			var got []lance.Table
			page := store.TablePage{Limit: limit}
			for more := true; more; {
				list := read(h, func(r store.Reader) ([]lance.Table, error) { return r.ListAllTables(page) })
				got = append(got, list...)
				if more = len(list) == limit; more {
					page.AfterNamespace, page.AfterName = list[limit-1].Namespace, list[limit-1].Path.Name()
				}
			}
			h.equal(fmt.Sprintf("limit %d", limit), got, want)
		}
	})
	s.run(t, "ListAllTables/without declared", func(h *harness) {
		h.declareSome()
		list := read(h, func(r store.Reader) ([]lance.Table, error) {
			return r.ListAllTables(store.TablePage{Limit: 10, WithoutDeclared: true})
		})
		h.equal("number", len(list), 2)
	})
}

// declareSome adds tables with and without versions.
func (h *harness) declareSome() {
	h.Helper()
	h.table("declared")
	for name, v := range map[string]lance.Version{
		"committed": version(lance.Chain{}, 1, lance.VersionCommitted),
		"detached":  version(lance.Chain{}, -5, lance.VersionCommitted),
		"pending":   version(lance.Chain{}, 1, lance.VersionPending),
		"pruned":    version(lance.Chain{}, 1, lance.VersionPruned),
	} {
		v.Chain.Table = h.table(name).ID
		h.insert(v)
	}
}

func (suite) forgetTable(h *harness) {
	table, other := h.table("t"), h.table("u")
	for n := range lance.VersionNumber(5) {
		h.insert(
			version(lance.Chain{Table: table.ID}, n+1, lance.VersionCommitted),
			version(lance.Chain{Table: table.ID, Branch: "b"}, n+1, lance.VersionPruned),
			version(lance.Chain{Table: other.ID}, n+1, lance.VersionCommitted))
	}
	content := store.Content{Slot: lance.Slot{Chain: lance.Chain{Table: table.ID}, Number: 9}}
	h.update(func(tx store.Tx) error { return tx.RecordAborted("x", []store.Content{content}) })
	h.end(table.ID, lance.TableDropped)
	calls := 0
	for done := false; !done; calls++ {
		if calls > 20 {
			h.Fatal("not forgotten after 20 calls with limit 3, want 12 rows gone")
		}
		done = wrote(h, func(tx store.Tx) (bool, error) { return tx.ForgetTable(table.ID, 3) })
	}
	if calls < 4 {
		h.Errorf("forgotten in %d calls with limit 3, want at least 4 for 12 rows", calls)
	}
	h.view(func(r store.Reader) error {
		if _, err := r.TableByID(table.ID); !errors.Is(err, store.ErrNotFound) {
			h.Errorf("got error %v, want ErrNotFound", err)
		}
		branches, err := r.Branches(table.ID)
		h.equal("branches", branches, []lance.Branch(nil))
		aborted, err2 := r.Aborted([]store.Content{content})
		h.equal("aborted", aborted, []bool{false})
		kept, err3 := r.ListVersions(lance.Chain{Table: other.ID}, store.VersionPage{Limit: 10})
		h.equal("versions of the other table", len(kept), 5)
		return errors.Join(err, err2, err3)
	})
	h.insertAt(table.Location)
}

// listTables returns the names on a page of ListTables, after comparing them with TableNames.
func (h *harness) listTables(namespace lance.ObjectID, page store.TablePage) []string {
	h.Helper()
	var names []string
	list := read(h, func(r store.Reader) (list []lance.Table, err error) {
		if names, err = r.TableNames(namespace, page); err != nil {
			return nil, err
		}
		return r.ListTables(namespace, page)
	})
	var got []string
	for _, t := range list {
		got = append(got, t.Path.Name())
	}
	if !slices.Equal(names, got) {
		h.Errorf("TableNames gives %q where ListTables gives %q", names, got)
	}
	return got
}

func (h *harness) end(id lance.ObjectID, state lance.TableState) {
	h.Helper()
	h.update(func(tx store.Tx) error { return tx.EndTable(id, state) })
}

func (h *harness) rename(id lance.ObjectID, to lance.TableID) {
	h.Helper()
	h.update(func(tx store.Tx) error {
		ns, err := tx.Namespace(to.Namespace())
		if err != nil {
			return err
		}
		return tx.RenameTable(id, ns.ID, to.Name())
	})
}

// insertTable is a closure that adds a table in a namespace that exists.
func insertTable(path ...string) func(tx store.Tx) error {
	return func(tx store.Tx) error {
		table, err := newTable(tx, path...)
		if err != nil {
			return fmt.Errorf("namespace: %v", err)
		}
		return tx.InsertTable(table)
	}
}

func (s suite) locations(t *testing.T) {
	for _, c := range []struct{ claimed, location string }{
		{"file:///d/x", "file:///d/x"},
		{"file:///d/x", "file:///d"},
		{"file:///d/x", "file:///d/x/y"},
		{"file:///d/x", "file:///d/x/y/z"},
		{"file:///d/x/y/z", "file:///d/x"},
		{"s3://b", "s3://b/t"},
	} {
		s.run(t, "InsertTable/ErrLocationTaken/"+c.claimed+" and "+c.location, func(h *harness) {
			// Neighbours in the order of bytes must not hide the overlap.
			for _, near := range []string{"file:///d/x-1", "file:///d/x!", "file:///d/x0", "file:///d-", "file:///d0", "s3://b-1/t", "s3://b0"} {
				h.insertAt(near)
			}
			h.insertAt(c.claimed)
			h.refuse(store.ErrLocationTaken, insertTableAt(c.location))
			h.equal("tables", len(h.listTables(lance.RootID, store.TablePage{Limit: 100})), 8)
		})
	}
	s.run(t, "InsertTable/locations side by side", func(h *harness) {
		for _, location := range []string{
			"file:///d/x", "file:///d/xy", "file:///d/x-", "file:///d/x0", "file:///d/X", "file:///d/w", "file:///d/y/x",
			"file:///d/y/x2", "file:///d/é", "file:///d/x%2Fy", "s3://d/x", "s3://d/x.lance", "file:///d/x.lance",
		} {
			h.insertAt(location)
		}
	})
	for _, c := range []struct {
		space, table string
		taken        bool
	}{
		{"s3://b/x", "s3://b/x", true},
		{"s3://b/x", "s3://b", true},
		{"s3://b/x/y", "s3://b/x", true},
		{"s3://b/x", "s3://b/x/t", false},
		{"s3://b/x", "s3://b/x-1", false},
		{"s3://b/x", "s3://b/xy", false},
	} {
		space := func(tx store.Tx) error {
			return tx.InsertNamespace(lance.Namespace{ID: tx.NewID(), Path: lance.NamespaceID{"warm"}, Location: c.space})
		}
		s.run(t, "InsertTable/a namespace's tables go to "+c.space+", a table to "+c.table, func(h *harness) {
			h.update(space)
			h.update(func(tx store.Tx) error {
				return tx.InsertNamespace(lance.Namespace{ID: tx.NewID(), Path: lance.NamespaceID{"too"}, Location: c.space})
			})
			if c.taken {
				h.refuse(store.ErrLocationTaken, insertTableAt(c.table))
			} else {
				h.insertAt(c.table)
			}
		})
		s.run(t, "InsertNamespace/a table is at "+c.table+", a namespace's are to go to "+c.space, func(h *harness) {
			// A table below the place is one of those that are there.
			table := h.insertAt(c.table)
			if c.taken {
				h.refuse(store.ErrLocationTaken, space)
				h.end(table.ID, lance.TableDeregistered)
			}
			h.update(space)
		})
	}
	s.run(t, "EndTable/dropped keeps the location", func(h *harness) {
		table := h.insertAt("file:///d/x")
		h.end(table.ID, lance.TableDropped)
		for _, location := range []string{"file:///d/x", "file:///d/x/y", "file:///d"} {
			h.refuse(store.ErrLocationTaken, insertTableAt(location))
		}
	})
	s.run(t, "EndTable/deregistered frees the location", func(h *harness) {
		for _, location := range []string{"file:///d/x", "file:///d/x/y", "file:///d", "file:///d"} {
			table := h.insertAt(location)
			h.end(table.ID, lance.TableDeregistered)
		}
	})
	s.run(t, "RenameTable/keeps the location", func(h *harness) {
		table := h.insertAt("file:///d/x")
		h.rename(table.ID, lance.TableID{"other"})
		h.refuse(store.ErrLocationTaken, insertTableAt("file:///d/x"))
	})
}

// insertAt adds a table with a name of its own at a location.
func (h *harness) insertAt(location string) lance.Table {
	h.Helper()
	return wrote(h, func(tx store.Tx) (lance.Table, error) {
		table, err := newTable(tx, "x")
		if err != nil {
			return table, err
		}
		table.Path, table.Location = lance.TableID{fmt.Sprint(table.ID)}, location
		return table, tx.InsertTable(table)
	})
}

// insertTableAt is a closure that adds a table with a name of its own at a location.
func insertTableAt(location string) func(tx store.Tx) error {
	return func(tx store.Tx) error {
		table, err := newTable(tx, "x")
		if err != nil {
			return err
		}
		table.Path, table.Location = lance.TableID{fmt.Sprint(table.ID)}, location
		return tx.InsertTable(table)
	}
}
