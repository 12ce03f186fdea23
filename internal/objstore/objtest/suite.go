// Package objtest holds what tests of storage need: Run, the suite that every implementation of objstore.Store passes; Faulty, a
// store that fails, delays and loses answers on demand; and Slow, one that takes its time.
//
// The suite asks only what the contract says. What an implementation adds (symbolic links, locks between processes) is tested
// beside that implementation. Durability cannot be seen from within a process; crash tests stand in test/faults.
package objtest

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/objstore"
)

// parallel is how many goroutines take part in the suite's races.
const parallel = 16

// raceRounds is how often a race for one name is run.
const raceRounds = 10

// testCase is one outcome that the contract lists, with the text of that outcome as its name.
type testCase struct {
	name string
	run  func(t *testing.T, s objstore.Store)
}

// Options say how to run the suite on a server that is known to be different from the contract, or slow.
type Options struct {
	// Except names subtests ("List/in bytewise order of keys") that the server cannot pass, each with the reason, which is logged.
	Except map[string]string
	// Rounds is how often a race for one name is run (default 10).
	Rounds int
}

// Run runs the suite. newStore returns a store that shares no objects with any other; it is called once for each subtest, and
// subtests run in parallel.
func Run(t *testing.T, newStore func(t *testing.T) objstore.Store) {
	t.Helper()
	RunWith(t, newStore, Options{})
}

// RunWith is Run with options.
func RunWith(t *testing.T, newStore func(t *testing.T) objstore.Store, o Options) {
	t.Helper()
	if o.Rounds == 0 {
		o.Rounds = raceRounds
	}
	groups := []struct {
		name  string
		cases []testCase
	}{
		{"Get", getCases()},
		{"Head", headCases()},
		{"PutIfAbsent", putIfAbsentCases(o.Rounds)},
		{"PutIf", putIfCases(o.Rounds)},
		{"DeleteIf", deleteIfCases()},
		{"Delete", deleteCases()},
		{"List", listCases()},
		{"Folders", folderCases()},
		{"DeleteTree", deleteTreeCases()},
		{"Store", storeCases()},
	}
	unknown := maps.Clone(o.Except)
	for _, g := range groups {
		var cases []testCase
		for _, c := range g.cases {
			if why, excepted := o.Except[g.name+"/"+c.name]; excepted {
				t.Logf("not run: %s/%s: %s", g.name, c.name, why)
				delete(unknown, g.name+"/"+c.name)
				continue
			}
			cases = append(cases, c)
		}
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(t, newStore(t))
				})
			}
		})
	}
	for name := range unknown {
		t.Errorf("the exceptions name %q, and there is no such subtest", name)
	}
}

// mustPut puts an object that nothing can be in the way of.
func mustPut(t *testing.T, s objstore.Store, key string, data []byte) objstore.Info {
	t.Helper()
	info, err := s.PutIfAbsent(t.Context(), key, data)
	if err != nil {
		t.Fatalf("PutIfAbsent(%q) = %v, want nil", key, err)
	}
	return info
}

// wantObject checks that key holds data, and that Get and Head describe it as info does.
func wantObject(t *testing.T, s objstore.Store, info objstore.Info, data []byte) {
	t.Helper()
	got, gotInfo, err := s.Get(t.Context(), info.Key, 0)
	if err != nil {
		t.Fatalf("Get(%q) = %v, want %d bytes", info.Key, err, len(data))
	}
	if !bytes.Equal(got, data) {
		t.Errorf("Get(%q) = %d bytes %.40q, want %d bytes %.40q", info.Key, len(got), got, len(data), data)
	}
	if info.Modified.IsZero() {
		info.Modified = gotInfo.Modified // a put need not tell it
	}
	if diff := cmp.Diff(info, gotInfo); diff != "" {
		t.Errorf("Get(%q) describes the object differently (-want +got):\n%s", info.Key, diff)
	}
	head, err := s.Head(t.Context(), info.Key)
	if err != nil {
		t.Fatalf("Head(%q) = %v, want nil", info.Key, err)
	}
	if diff := cmp.Diff(info, head); diff != "" {
		t.Errorf("Head(%q) describes the object differently (-want +got):\n%s", info.Key, diff)
	}
}

// wantAbsent checks that there is no object under key.
func wantAbsent(t *testing.T, s objstore.Store, key string) {
	t.Helper()
	if _, _, err := s.Get(t.Context(), key, 0); !errors.Is(err, objstore.ErrNotFound) {
		t.Errorf("Get(%q) = %v, want ErrNotFound", key, err)
	}
	if _, err := s.Head(t.Context(), key); !errors.Is(err, objstore.ErrNotFound) {
		t.Errorf("Head(%q) = %v, want ErrNotFound", key, err)
	}
}

// wantError checks the kind of an error.
func wantError(t *testing.T, call string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s = %v, want %v", call, got, want)
	}
}

// keysOf lists the keys under prefix that come after a key.
func keysOf(t *testing.T, s objstore.Store, prefix, after string) []string {
	t.Helper()
	var keys []string
	for info, err := range s.List(t.Context(), prefix, after) {
		if err != nil {
			t.Fatalf("List(%q, %q) = %v, want no error", prefix, after, err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// wantKeys checks what is under prefix and after a key, order included.
func wantKeys(t *testing.T, s objstore.Store, prefix, after string, want ...string) {
	t.Helper()
	if got := keysOf(t, s, prefix, after); !slices.Equal(got, want) {
		t.Errorf("List(%q, %q) differs (-want +got):\n%s", prefix, after, cmp.Diff(want, got))
	}
}

// race runs do in n goroutines that start together and waits for all of them.
func race(n int, do func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	wg.Wait()
}
