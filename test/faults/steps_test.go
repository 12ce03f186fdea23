//go:build unix

package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/local"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/store"
)

// mortal is the state as a server sees it that dies at some moment: from then on nothing can be done to it.
type mortal struct {
	store.Store
	dead    atomic.Bool
	updates atomic.Int32
	// last is the number of the Update at which it dies, 0 for none; durable says whether that takes effect.
	last    int32
	durable bool
}

var errDead = errors.Join(store.ErrUnknown, errors.New("the server is dead"))

func (m *mortal) View(ctx context.Context, fn func(store.Reader) error) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Store.View(ctx, fn)
}

func (m *mortal) Update(ctx context.Context, fn func(store.Tx) error) error {
	if m.dead.Load() {
		return errDead
	}
	if m.updates.Add(1) != m.last {
		return m.Store.Update(ctx, fn)
	}
	m.dead.Store(true)
	if m.durable {
		if err := m.Store.Update(ctx, fn); err != nil {
			return err
		}
	}
	return errDead
}

// site is a data directory that catalogs in this process use one after another, before the real server does.
type site struct {
	data  string
	state store.Store
	files objstore.Store
	root  lance.Location
}

// newFolder makes a site that has no state yet.
func newFolder(t *testing.T) *site {
	t.Helper()
	data, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return siteIn(t, place{data: data})
}

// siteIn makes a site of a place.
func siteIn(t *testing.T, where place) *site {
	t.Helper()
	data := where.data
	s := &site{data: data}
	var err error
	if where.root != "" {
		s.files = openBucket(t)
		if s.root, err = lance.ParseLocation(where.root); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if err := os.MkdirAll(filepath.Join(data, "tables"), 0o755); err != nil {
		t.Fatal(err)
	}
	if s.files, err = local.New(local.Options{}); err != nil {
		t.Fatal(err)
	}
	if s.root, err = lance.ParseLocation(filepath.Join(data, "tables")); err != nil {
		t.Fatal(err)
	}
	return s
}

// catalog opens a catalog on the site, with one call of storage at a time.
func (s *site) catalog(t *testing.T, state store.Store, files *objtest.Faulty) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(context.Background(), catalog.Options{
		Store: state, Roots: []catalog.Root{{Location: s.root, Objects: files}}, Parallel: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// moment is where a server dies.
type moment struct {
	name    string
	call    int // of storage, counted in the batch; 0 for none
	stage   objtest.Stage
	update  int32 // of the state
	durable bool
	// foreign puts another writer's version into the slot of the second table after the death.
	foreign bool
}

func moments(calls int) []moment {
	var all []moment
	for _, foreign := range []bool{false, true} {
		for n := 1; n <= calls; n++ {
			all = append(all,
				moment{name: fmt.Sprintf("before call %d", n), call: n, stage: objtest.Before, foreign: foreign},
				moment{name: fmt.Sprintf("after call %d", n), call: n, stage: objtest.After, foreign: foreign})
		}
		for n, name := range map[int32]string{1: "reserving", 2: "resolving"} {
			all = append(all,
				moment{name: "before " + name, update: n, foreign: foreign},
				moment{name: "after " + name, update: n, durable: true, foreign: foreign})
		}
	}
	return all
}

// victim is a batch on two tables whose server died.
type victim struct {
	moment
	tables  [2]table
	request *api.BatchCreateTableVersionsRequest
	foreign string // the mark of the foreign version, "" where there is none
}

// die performs a batch on tables of its own with a server that dies at a moment.
func (s *site) die(t *testing.T, n int, at moment) victim {
	t.Helper()
	v := victim{moment: at}
	living := s.catalog(t, s.state, objtest.NewFaulty(s.files))
	for i := range v.tables {
		v.tables[i] = declare(t, living, fmt.Sprintf("t%d_%d", n, i))
	}
	var err error
	if v.request, err = commitOf(1, v.tables[:]...); err != nil {
		t.Fatal(err)
	}
	files := objtest.NewFaulty(s.files)
	state := &mortal{Store: s.state}
	dying := s.catalog(t, state, files)
	state.updates.Store(0)
	state.last, state.durable = at.update, at.durable
	if at.call > 0 {
		gate := files.Hold(objtest.Match{Nth: at.call}, at.stage)
		files.Fail(objtest.Match{Nth: at.call + 1, Times: objtest.Forever}, objtest.Before, nil)
		go func() {
			<-gate.Reached()
			state.dead.Store(true)
			gate.Drop()
		}()
	}
	if _, err = dying.BatchCreateTableVersions(context.Background(), v.request); err == nil {
		t.Fatalf("%s: the batch succeeded although its server died", at.name)
	}
	if at.foreign && v.tables[1].mark(1) == "" {
		v.foreign = fmt.Sprintf("foreign %d", n)
		if err := v.tables[1].files.write(v.tables[1].final(1), lancetest.Manifest(lancetest.Spec{Version: 1, Mark: v.foreign})); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// calls counts the calls of storage that a batch of two versions makes.
func (s *site) calls(t *testing.T) int {
	t.Helper()
	files := objtest.NewFaulty(s.files)
	c := s.catalog(t, s.state, files)
	tables := []table{declare(t, c, "count_0"), declare(t, c, "count_1")}
	req, err := commitOf(1, tables...)
	if err != nil {
		t.Fatal(err)
	}
	before := len(files.Calls())
	if _, err := c.BatchCreateTableVersions(context.Background(), req); err != nil {
		t.Fatal(err)
	}
	return len(files.Calls()) - before
}

// TestDeathAtEveryStep leaves behind what a death at every step of a batch leaves, with and without a writer that bypasses the
// catalog meanwhile, and starts the server on it. Every batch is there as a whole or not at all, and can go on.
func TestDeathAtEveryStep(t *testing.T) {
	t.Parallel()
	eachState(t, func(t *testing.T, where place) {
		s := siteIn(t, where)
		s.state = where.open(t)
		var victims []victim
		for n, at := range moments(s.calls(t)) {
			victims = append(victims, s.die(t, n, at))
		}
		if err := s.state.Close(); err != nil {
			t.Fatal(err)
		}
		p := start(t, where.data, where.flags()...)
		for n, v := range victims {
			// Half of them are met by readers, the others are left to the server's own recovery.
			if n%2 == 0 {
				v.check(t, p)
			}
		}
		for _, v := range victims {
			v.goOn(t, p)
			v.check(t, p)
		}
		p.stop(t)
		clean(t, where.data, where.flags()...)
	})
}

// check fails the test unless the batch is there as a whole or not at all.
func (v victim) check(t *testing.T, p *process) {
	t.Helper()
	var seen [2]string
	for i, tb := range v.tables {
		var err error
		if _, seen[i], err = latest(p, tb); err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
	}
	want := marks(v.request)
	whole := seen[0] == want[0] && seen[1] == want[1]
	undone := seen[0] != want[0] && seen[1] != want[1]
	if !whole && !undone {
		t.Errorf("%s, foreign %q: half of the batch is seen: %q of %q", v.name, v.foreign, seen, want)
	}
	if v.foreign != "" && v.tables[1].mark(1) != v.foreign {
		t.Errorf("%s: the foreign version is gone", v.name)
	}
}

// goOn sends the batch again, and a first version of the first table where that is refused: tables must stay usable.
func (v victim) goOn(t *testing.T, p *process) {
	t.Helper()
	_, err := p.BatchCreateTableVersions(context.Background(), v.request)
	switch {
	case err == nil && v.foreign == "":
		return
	case err == nil:
		t.Errorf("%s: the batch is answered as done beside a foreign version", v.name)
		return
	case api.CodeOf(err) != api.CodeConcurrentModification || v.foreign == "":
		t.Errorf("%s, foreign %q: sent again: %v", v.name, v.foreign, err)
		return
	}
	anew, err := commitOf(1, v.tables[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.BatchCreateTableVersions(context.Background(), anew); err != nil {
		t.Errorf("%s: a new first version: %v", v.name, err)
	}
}
