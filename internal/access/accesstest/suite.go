// Package accesstest holds Run, the suite that every implementation of access.Vendor passes against a server that judges its keys.
//
// The suite asks what the contract says, by trying the keys. What a provider does beyond that (sizes of policies, listing without a
// slash) is tested beside its implementation.
package accesstest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
)

// World is where a vendor's keys are tried.
type World struct {
	Vendor access.Vendor
	// Life is how long Vendor is told to let keys live.
	Life time.Duration
	// Root is a prefix that no other test uses.
	Root lance.Location
	// Owner may do everything below Root.
	Owner objstore.Store
	// Open returns a store that has the given keys and no others.
	Open func(t *testing.T, keys access.Keys) objstore.Store
	// Unreached says why keys for a directory whose name holds what policies read as a pattern do nothing on this server, not even in that
	// directory. Where it is empty they must.
	Unreached string
	// Backslash says why a directory with a backslash in its name can have no keys. Where it is empty it must.
	Backslash string
	// CaseBlind says why keys for a directory may reach another whose name differs in the case of letters alone. Where it is empty they must not.
	CaseBlind string
	// Brief returns a world whose vendor makes keys that end within seconds. It is nil, with the reason in NotBrief, where there is none.
	Brief    func(t *testing.T) World
	NotBrief string
}

// Run runs the suite. newWorld is called once for each subtest, and subtests run in parallel.
func Run(t *testing.T, newWorld func(t *testing.T) World) {
	t.Helper()
	cases := map[string]func(*testing.T, World){
		"ReadWrite reaches the directory at any depth": readWrite,
		"Read reads and does not write":                read,
		"Nothing beside the directory is reached":      neighbours,
		"A name that is a pattern reaches itself only": patterns,
		"What is above the directory is not reached":   above,
		"Expires is the end that was asked for":        expires,
		"Keys are of no use once they have ended":      ended,
		"A context that has ended stops it":            canceled,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, newWorld(t))
		})
	}
}

// vend makes keys for a directory, given from the root.
func (w World) vend(t *testing.T, dir string, grant access.Grant) objstore.Store {
	t.Helper()
	keys, err := w.Vendor.Vend(t.Context(), w.dir(t, dir), grant)
	if err != nil {
		t.Fatalf("Vend(%q) = %v, want keys", dir, err)
	}
	for name, value := range keys.Values {
		if name == "" || value == "" {
			t.Errorf("Vend(%q) has an empty name or value: clients refuse or misread them", dir)
		}
	}
	return w.Open(t, keys)
}

func (w World) dir(t *testing.T, name string) lance.Location {
	t.Helper()
	loc, err := w.Root.Join(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// key is the key of an object, given from the root.
func (w World) key(below string) string {
	if w.Root.Key() == "" {
		return below
	}
	return w.Root.Key() + "/" + below
}

// put makes an object as the owner.
func (w World) put(t *testing.T, below string) {
	t.Helper()
	if _, err := w.Owner.PutIfAbsent(t.Context(), w.key(below), []byte("theirs")); err != nil {
		t.Fatalf("the owner cannot put %q: %v", below, err)
	}
}

// inside are objects of a table, by what is special about their keys.
func inside() []string {
	return []string{"_versions/1.manifest", "data/0-1.lance", "tree/feature/x/_versions/2.manifest", "_refs/tags/a b+c%20.json"}
}

func readWrite(t *testing.T, w World) {
	for _, dir := range []string{"t", "plain name.lance", `it's a "q" & $1`, "Übung 日本 😀"} {
		s := w.vend(t, dir, access.ReadWrite)
		for _, below := range inside() {
			key := w.key(dir + "/" + below)
			info, err := s.PutIfAbsent(t.Context(), key, []byte("mine"))
			if err != nil {
				t.Errorf("put %q: %v", key, err)
				continue
			}
			if got, _, err := s.Get(t.Context(), key, 0); err != nil || string(got) != "mine" {
				t.Errorf("get %q: %q, %v", key, got, err)
			}
			if _, err := s.Head(t.Context(), key); err != nil {
				t.Errorf("head %q: %v", key, err)
			}
			if _, err := s.PutIf(t.Context(), key, info.ETag, []byte("mine too")); err != nil {
				t.Errorf("replace %q: %v", key, err)
			}
		}
		if n, err := list(t, s, w.key(dir)+"/"); n != len(inside()) || err != nil {
			t.Errorf("list %q: %d objects, %v; want %d", dir, n, err, len(inside()))
		}
		if err := s.Delete(t.Context(), w.key(dir+"/"+inside()[0])); err != nil {
			t.Errorf("delete in %q: %v", dir, err)
		}
		if _, err := s.Head(t.Context(), w.key(dir+"/absent")); !errors.Is(err, objstore.ErrNotFound) {
			t.Errorf("look at what is absent in %q: %v, want ErrNotFound: clients ask so whether something is there", dir, err)
		}
	}
}

func read(t *testing.T, w World) {
	w.put(t, "t/data/1")
	s := w.vend(t, "t", access.Read)
	if got, _, err := s.Get(t.Context(), w.key("t/data/1"), 0); err != nil || string(got) != "theirs" {
		t.Errorf("get: %q, %v", got, err)
	}
	if n, err := list(t, s, w.key("t")+"/"); n != 1 || err != nil {
		t.Errorf("list: %d objects, %v; want 1", n, err)
	}
	if _, err := s.PutIfAbsent(t.Context(), w.key("t/data/2"), []byte("mine")); !errors.Is(err, objstore.ErrDenied) {
		t.Errorf("put: %v, want ErrDenied", err)
	}
	if err := s.Delete(t.Context(), w.key("t/data/1")); !errors.Is(err, objstore.ErrDenied) {
		t.Errorf("delete: %v, want ErrDenied", err)
	}
	w.there(t, "t/data/1")
}

func neighbours(t *testing.T, w World) {
	dirs := []string{"t2", "t.lance", "t-", "other", "xt"}
	if w.CaseBlind == "" {
		dirs = append(dirs, "T")
	}
	for _, dir := range dirs {
		w.put(t, dir+"/data/1")
	}
	s := w.vend(t, "t", access.ReadWrite)
	for _, dir := range dirs {
		w.denied(t, s, dir)
	}
	// The other way round: a directory whose name begins with another's does not reach that one.
	w.put(t, "t/data/1")
	w.denied(t, w.vend(t, "t2", access.ReadWrite), "t")
}

// patterns: names hold what policies read as patterns, variables and quotes (case A13).
func patterns(t *testing.T, w World) {
	for _, c := range []struct{ dir, other string }{
		{"f*", "foo"}, {"*", "any"}, {"a?c", "abc"}, {"${aws:username}", "x"}, {"$", "y"}, {`q"`, "q"}, {`b\`, "b"}, {"c' || true || '", "c"}, {"%2A", "z"},
	} {
		if w.Backslash != "" && strings.Contains(c.dir, `\`) {
			if _, err := w.Vendor.Vend(t.Context(), w.dir(t, c.dir), access.ReadWrite); !errors.Is(err, access.ErrUnfit) {
				t.Errorf("Vend(%q) = %v, want ErrUnfit", c.dir, err)
			}
			continue
		}
		w.put(t, c.other+"/data/1")
		s := w.vend(t, c.dir, access.ReadWrite)
		w.denied(t, s, c.other)
		_, err := s.PutIfAbsent(t.Context(), w.key(c.dir+"/data/1"), []byte("mine"))
		if w.Unreached != "" && errors.Is(err, objstore.ErrDenied) {
			continue
		}
		if err != nil {
			t.Errorf("put in %q: %v", c.dir, err)
		}
		if n, err := list(t, s, w.key(c.dir)+"/"); n != 1 || err != nil {
			t.Errorf("list %q: %d objects, %v; want 1", c.dir, n, err)
		}
	}
}

func above(t *testing.T, w World) {
	w.put(t, ".lancerest")
	w.put(t, "sub/.lancerest")
	root := w
	root.Root = w.dir(t, "sub")
	s := root.vend(t, "t", access.ReadWrite)
	for _, key := range []string{".lancerest", "sub/.lancerest"} {
		if _, _, err := s.Get(t.Context(), w.key(key), 0); !errors.Is(err, objstore.ErrDenied) {
			t.Errorf("get %q: %v, want ErrDenied", key, err)
		}
		if err := s.Delete(t.Context(), w.key(key)); !errors.Is(err, objstore.ErrDenied) {
			t.Errorf("delete %q: %v, want ErrDenied", key, err)
		}
		w.there(t, key)
	}
	if _, err := list(t, s, w.key("sub")+"/"); !errors.Is(err, objstore.ErrDenied) {
		t.Errorf("list what is above: %v, want ErrDenied", err)
	}
}

// clockSkew is by how much the clocks of this machine and the provider may differ.
const clockSkew = time.Minute

func expires(t *testing.T, w World) {
	before := time.Now()
	keys, err := w.Vendor.Vend(t.Context(), w.dir(t, "t"), access.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	early, late := before.Add(w.Life-clockSkew), time.Now().Add(w.Life+clockSkew)
	if keys.Expires.Before(early) || keys.Expires.After(late) {
		t.Errorf("keys asked for %s at %s end at %s", w.Life, before, keys.Expires)
	}
}

// endedWait bounds the wait for keys to end.
const endedWait = 3 * time.Minute

func ended(t *testing.T, w World) {
	if w.Brief == nil {
		if w.NotBrief == "" {
			t.Fatal("the world says neither how to get keys that end soon, nor why there are none")
		}
		t.Logf("not tried: %s", w.NotBrief)
		return
	}
	w = w.Brief(t)
	w.put(t, "t/data/1")
	keys, err := w.Vendor.Vend(t.Context(), w.dir(t, "t"), access.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	s := w.Open(t, keys)
	if _, err := s.Head(t.Context(), w.key("t/data/1")); err != nil {
		t.Fatalf("the keys do not work while they live: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), endedWait)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		_, err := s.Head(ctx, w.key("t/data/1"))
		if errors.Is(err, objstore.ErrDenied) {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("keys that ended at %s still work at %s: %v", keys.Expires, time.Now(), err)
		}
	}
	if early := time.Until(keys.Expires); early > clockSkew {
		t.Errorf("keys that are to live for another %s are refused", early)
	}
}

func canceled(t *testing.T, w World) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Vendor.Vend(ctx, w.dir(t, "t"), access.Read); !errors.Is(err, context.Canceled) {
		t.Errorf("Vend with a context that has ended = %v, want context.Canceled", err)
	}
}

// denied checks that keys do nothing in a directory that holds data/1.
func (w World) denied(t *testing.T, s objstore.Store, dir string) {
	t.Helper()
	key := w.key(dir + "/data/1")
	if _, _, err := s.Get(t.Context(), key, 0); !errors.Is(err, objstore.ErrDenied) {
		t.Errorf("get %q: %v, want ErrDenied", key, err)
	}
	if _, err := s.Head(t.Context(), key); !errors.Is(err, objstore.ErrDenied) {
		t.Errorf("head %q: %v, want ErrDenied", key, err)
	}
	if _, err := s.PutIfAbsent(t.Context(), w.key(dir+"/data/2"), []byte("mine")); !errors.Is(err, objstore.ErrDenied) {
		t.Errorf("put in %q: %v, want ErrDenied", dir, err)
	}
	if err := s.Delete(t.Context(), key); !errors.Is(err, objstore.ErrDenied) {
		t.Errorf("delete %q: %v, want ErrDenied", key, err)
	}
	if _, err := list(t, s, w.key(dir)+"/"); !errors.Is(err, objstore.ErrDenied) {
		t.Errorf("list %q: %v, want ErrDenied", dir, err)
	}
	w.there(t, dir+"/data/1")
}

// there checks that an object is as the owner put it.
func (w World) there(t *testing.T, below string) {
	t.Helper()
	if got, _, err := w.Owner.Get(t.Context(), w.key(below), 0); err != nil || string(got) != "theirs" {
		t.Errorf("%q is %q, %v; want it untouched", below, got, err)
	}
}

// list counts what lies below a prefix.
func list(t *testing.T, s objstore.Store, prefix string) (int, error) {
	t.Helper()
	n := 0
	for _, err := range s.List(t.Context(), prefix, "") {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
