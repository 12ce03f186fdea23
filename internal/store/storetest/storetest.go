// Package storetest is the suite that every implementation of store.Store passes. Each outcome that the contract lists for a method
// is a subtest named after it, on a fresh store.
//
// What does not live here: tests of what an implementation does beyond the contract; they stand beside it.
package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// Options says what kind of store a subtest needs.
type Options struct {
	// Dir is the directory of the state. Opening it again, after Close, gives the same state.
	Dir string
	// RunTwice asks for a store that runs each closure of Update, rolls it back and runs it again.
	RunTwice bool
	// Writers bounds how many Updates run at once and QueueLength how many may wait, 0 for the store's own bounds.
	Writers, QueueLength int
	// Now is the store's clock, nil for the system's.
	Now func() time.Time
}

// Open opens the store that o describes. It ends the test if it cannot.
type Open func(t *testing.T, o Options) store.Store

// Run runs the suite: every subtest calls open for a store of its own and closes it.
func Run(t *testing.T, open Open) {
	for _, o := range []struct {
		name    string
		options Options
	}{
		{"once", Options{}},
		{"twice", Options{RunTwice: true}},
	} {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			s := suite{open: open, options: o.options}
			s.namespaces(t)
			s.tables(t)
			s.locations(t)
			s.versions(t)
			s.versionWrites(t)
			s.transactions(t)
			s.look(t)
			s.jobs(t)
			s.answers(t)
			s.unsynced(t)
			s.lifecycle(t)
			s.concurrency(t)
		})
	}
}

type suite struct {
	open    Open
	options Options
}

// run runs a subtest on a fresh store.
func (s suite) run(t *testing.T, name string, fn func(h *harness)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		fn(s.harness(t, s.options))
	})
}

// harness is a store with the test that uses it.
type harness struct {
	*testing.T
	store.Store
	options Options
}

func (s suite) harness(t *testing.T, o Options) *harness {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	h := &harness{T: t, Store: s.open(t, o), options: o}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return h
}

// update runs fn in an Update that must succeed.
func (h *harness) update(fn func(tx store.Tx) error) {
	h.Helper()
	if err := h.Update(h.Context(), fn); err != nil {
		h.Fatalf("Update: %v", err)
	}
}

// refuse runs fn in an Update that must end with the error want.
func (h *harness) refuse(want error, fn func(tx store.Tx) error) {
	h.Helper()
	if err := h.Update(h.Context(), fn); !errors.Is(err, want) {
		h.Errorf("got error %v, want %v", err, want)
	}
}

// view runs fn in a View that must succeed.
func (h *harness) view(fn func(r store.Reader) error) {
	h.Helper()
	if err := h.View(h.Context(), fn); err != nil {
		h.Fatalf("View: %v", err)
	}
}

// equal compares what was got with what is wanted; empty maps and slices equal nil.
func (h *harness) equal(what string, got, want any) {
	h.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		h.Errorf("%s: unwanted difference (-want +got):\n%s", what, diff)
	}
}

// read returns what fn reads in a View.
func read[T any](h *harness, fn func(r store.Reader) (T, error)) T {
	h.Helper()
	var got T
	h.view(func(r store.Reader) (err error) {
		got, err = fn(r)
		return err
	})
	return got
}

// wrote returns what fn returns in an Update that must succeed.
func wrote[T any](h *harness, fn func(tx store.Tx) (T, error)) T {
	h.Helper()
	var got T
	h.update(func(tx store.Tx) (err error) {
		got, err = fn(tx)
		return err
	})
	return got
}

// names builds a list of n names that sort as they are numbered.
func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("n%03d", i)
	}
	return list
}

// namespace adds the namespace at path, whose parent exists, and returns it.
func (h *harness) namespace(path ...string) lance.Namespace {
	h.Helper()
	return wrote(h, func(tx store.Tx) (lance.Namespace, error) {
		parent, err := tx.Namespace(path[:len(path)-1])
		if err != nil {
			return lance.Namespace{}, err
		}
		ns := lance.Namespace{ID: tx.NewID(), Parent: parent.ID, Path: path, CreatedAt: tx.Now()}
		return ns, tx.InsertNamespace(ns)
	})
}

// table adds the table at path, whose namespace exists, with a location of its own, and returns it.
func (h *harness) table(path ...string) lance.Table {
	h.Helper()
	return wrote(h, func(tx store.Tx) (lance.Table, error) {
		t, err := newTable(tx, path...)
		if err != nil {
			return t, err
		}
		return t, tx.InsertTable(t)
	})
}

// newTable describes a table at path with a location of its own.
func newTable(tx store.Tx, path ...string) (lance.Table, error) {
	id := lance.TableID(path)
	parent, err := tx.Namespace(id.Namespace())
	t := lance.Table{
		ID: tx.NewID(), Namespace: parent.ID, Path: id, State: lance.TableLive, CreatedAt: tx.Now(),
		Properties: map[string]string{"owner": "ann", "": "é\u0000"},
	}
	t.Location = fmt.Sprintf("mem:///data/%d", t.ID)
	return t, err
}

// version describes a version of chain with every field set.
func version(chain lance.Chain, number lance.VersionNumber, state lance.VersionState) lance.Version {
	v := lance.Version{
		Slot:        lance.Slot{Chain: chain, Number: number},
		State:       state,
		Origin:      lance.OriginCatalog,
		Transaction: "5f0c1a52-0000-4000-8000-000000000001",
		Scheme:      lance.SchemeV2,
		Staged:      fmt.Sprintf("%d.manifest-uuid", number),
		Size:        int64(number) * 10,
		ETag:        fmt.Sprintf("etag-%d", number),
		Timestamp:   time.UnixMilli(1_750_000_000_000 + int64(number)).UTC(),
		Metadata:    map[string]string{"k": "v", "quote": `"`},
		Summary: &lance.VersionSummary{
			Rows: int64(number) * 7, DeletedRows: 1, Fragments: 2, DataFiles: 3, DeletionFiles: 4, DataBytes: 1 << 50, ReaderFlags: 1<<63 | 1,
			Schema: lance.Digest{byte(number), 31: 9}, TransactionUUID: fmt.Sprintf("change-%d", number),
		},
	}
	v.Digest[0], v.Digest[31] = byte(number), 1
	return v
}

// insert adds versions in an Update that must succeed.
func (h *harness) insert(versions ...lance.Version) {
	h.Helper()
	h.update(func(tx store.Tx) error { return tx.InsertVersions(versions) })
}

// numbers returns the numbers of versions.
func numbers(versions []lance.Version) []lance.VersionNumber {
	list := make([]lance.VersionNumber, len(versions))
	for i, v := range versions {
		list[i] = v.Number
	}
	return list
}
