package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// alike are names that a store with a collation of its own would confuse.
func alike() []string { return []string{"A", "a", "\u00e9", "e\u0301", "ss", "ß", "a ", "a%", "a_"} }

func (s suite) namespaces(t *testing.T) {
	s.run(t, "Namespace/the root exists", func(h *harness) {
		root := read(h, func(r store.Reader) (lance.Namespace, error) { return r.Namespace(nil) })
		h.equal("root", root, lance.Namespace{ID: lance.RootID, Parent: lance.RootID})
	})
	s.run(t, "Namespace/gives back what was inserted", func(h *harness) {
		a := h.namespace("a")
		want := wrote(h, func(tx store.Tx) (lance.Namespace, error) {
			ns := lance.Namespace{
				ID: tx.NewID(), Parent: a.ID, Path: lance.NamespaceID{"a", "b c"}, CreatedAt: tx.Now(),
				Properties: map[string]string{"x": "1", "y": ""}, Location: "s3://b/warm é",
			}
			return ns, tx.InsertNamespace(ns)
		})
		h.equal("namespace", read(h, func(r store.Reader) (lance.Namespace, error) { return r.Namespace(want.Path) }), want)
	})
	s.run(t, "Namespace/ErrNotFound", func(h *harness) {
		h.namespace("a")
		h.namespace("a", "b")
		h.table("t")
		for _, path := range []lance.NamespaceID{{"b"}, {"a", "a"}, {"a", "b", "b"}, {"ab"}, {"a\x1fb"}, {""}, {"a", ""}, {"t"}} {
			h.view(func(r store.Reader) error {
				if _, err := r.Namespace(path); !errors.Is(err, store.ErrNotFound) {
					h.Errorf("%q: got error %v, want ErrNotFound", path, err)
				}
				return nil
			})
		}
	})
	s.run(t, "InsertNamespace/ErrExists for a namespace", func(h *harness) {
		h.namespace("a")
		h.namespace("b")
		h.namespace("a", "b")
		h.refuse(store.ErrExists, insertNamespace("a", "b"))
		h.refuse(store.ErrExists, insertNamespace("a"))
	})
	s.run(t, "InsertNamespace/ErrExists for a table", func(h *harness) {
		h.table("a")
		h.refuse(store.ErrExists, insertNamespace("a"))
	})
	s.run(t, "InsertNamespace/ErrNotFound for a parent that is gone", func(h *harness) {
		a := h.namespace("a")
		h.update(func(tx store.Tx) error { return tx.DeleteNamespace(a.ID) })
		h.refuse(store.ErrNotFound, func(tx store.Tx) error {
			return tx.InsertNamespace(lance.Namespace{ID: tx.NewID(), Parent: a.ID, Path: lance.NamespaceID{"a", "b"}})
		})
		h.equal("namespaces", h.listNamespaces(lance.RootID, "", 10), []string(nil))
	})
	s.run(t, "InsertNamespace/names differ in case and form", func(h *harness) {
		for _, name := range alike() {
			h.namespace(name)
		}
		for _, name := range alike() {
			got := read(h, func(r store.Reader) (lance.Namespace, error) { return r.Namespace(lance.NamespaceID{name}) })
			h.equal("name", got.Name(), name)
		}
	})
	s.run(t, "DeleteNamespace/frees the name", func(h *harness) {
		first := h.namespace("a")
		h.update(func(tx store.Tx) error { return tx.DeleteNamespace(first.ID) })
		if second := h.namespace("a"); second.ID == first.ID {
			h.Errorf("the id %d was given twice", first.ID)
		}
	})
	s.run(t, "DeleteNamespace/ErrNotFound", func(h *harness) {
		a, table := h.namespace("a"), h.table("t")
		h.update(func(tx store.Tx) error { return tx.DeleteNamespace(a.ID) })
		for _, id := range []lance.ObjectID{a.ID, lance.RootID, table.ID} {
			h.refuse(store.ErrNotFound, func(tx store.Tx) error { return tx.DeleteNamespace(id) })
		}
	})
	s.run(t, "ListNamespaces/every limit", s.listNamespaces)
}

func (suite) listNamespaces(h *harness) {
	a := h.namespace("a")
	want := names(7)
	for i := range want {
		h.namespace("a", want[(i*3)%len(want)])
	}
	h.namespace("a", want[0], "deeper")
	h.namespace("b")
	h.table("a", "n001t")
	for limit := 1; limit <= len(want)+1; limit++ {
		var got []string
		after := ""
		for {
			page := h.listNamespaces(a.ID, after, limit)
			if len(page) > limit {
				h.Fatalf("limit %d: got %d namespaces", limit, len(page))
			}
			got = append(got, page...)
			if len(page) < limit {
				break
			}
			after = page[len(page)-1]
		}
		h.equal(fmt.Sprintf("limit %d", limit), got, want)
	}
	h.equal("below the root", h.listNamespaces(lance.RootID, "", 10), []string{"a", "b"})
}

func (h *harness) listNamespaces(parent lance.ObjectID, after string, limit int) []string {
	h.Helper()
	list := read(h, func(r store.Reader) ([]lance.Namespace, error) { return r.ListNamespaces(parent, after, limit) })
	var got []string
	for _, ns := range list {
		if ns.Parent != parent {
			h.Errorf("%q has parent %d, want %d", ns.Path, ns.Parent, parent)
		}
		got = append(got, ns.Name())
	}
	return got
}

// insertNamespace is a closure that adds a namespace below a parent that exists.
func insertNamespace(path ...string) func(tx store.Tx) error {
	return func(tx store.Tx) error {
		parent, err := tx.Namespace(path[:len(path)-1])
		if err != nil {
			return fmt.Errorf("parent: %v", err)
		}
		return tx.InsertNamespace(lance.Namespace{ID: tx.NewID(), Parent: parent.ID, Path: path, CreatedAt: tx.Now()})
	}
}
