package objtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/objstore"
)

func listCases() []testCase {
	return []testCase{
		{"in bytewise order of keys", func(t *testing.T, s objstore.Store) {
			// '-' and '.' sort before '/', '0' and letters after it, so walking directories by name gives another order.
			want := []string{"r/a-/x", "r/a-b", "r/a.b/x", "r/a/x", "r/a/y/z", "r/a0", "r/ab/x", "r/b", "r/\xc3\xa4", "r/\xf0\x9f\x90\x98"}
			for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(want)) {
				mustPut(t, s, want[i], []byte("x"))
			}
			wantKeys(t, s, "r/", "", want...)
		}},
		{"only keys that begin with prefix", func(t *testing.T, s objstore.Store) {
			for _, key := range []string{"r/a/x", "r/a/y/z", "r/a-b/x", "r/ab", "r/b/a/x", "q"} {
				mustPut(t, s, key, []byte("x"))
			}
			wantKeys(t, s, "r/a/", "", "r/a/x", "r/a/y/z")
			wantKeys(t, s, "r/a-b/", "", "r/a-b/x")
			wantKeys(t, s, "r/a/y/", "", "r/a/y/z")
		}},
		{"after the given key", func(t *testing.T, s objstore.Store) {
			for _, key := range []string{"r/a", "r/b/x", "r/b/y", "r/c"} {
				mustPut(t, s, key, []byte("x"))
			}
			wantKeys(t, s, "r/", "r/a", "r/b/x", "r/b/y", "r/c")
			wantKeys(t, s, "r/", "r/b", "r/b/x", "r/b/y", "r/c")
			wantKeys(t, s, "r/", "r/b/x", "r/b/y", "r/c")
			wantKeys(t, s, "r/", "r/b/xx", "r/b/y", "r/c")
			wantKeys(t, s, "r/", "r/b0", "r/c")
			wantKeys(t, s, "r/", "r/c")
			wantKeys(t, s, "r/", "a", "r/a", "r/b/x", "r/b/y", "r/c")
			wantKeys(t, s, "r/", "s")
		}},
		{"a prefix with no objects yields nothing", func(t *testing.T, s objstore.Store) {
			mustPut(t, s, "r/a", []byte("x"))
			for _, prefix := range []string{"s/", "r/b/", "r/a/", "s/t/u/"} {
				wantKeys(t, s, prefix, "")
			}
		}},
		{"describes objects as Head does", func(t *testing.T, s objstore.Store) {
			var want []objstore.Info
			for i := range 5 {
				info, err := s.Head(t.Context(), mustPut(t, s, fmt.Sprintf("r/%d", i), make([]byte, i)).Key)
				if err != nil {
					t.Fatalf("Head = %v, want nil", err)
				}
				want = append(want, info)
			}
			var got []objstore.Info
			for info, err := range s.List(t.Context(), "r/", "") {
				if err != nil {
					t.Fatalf("List = %v, want no error", err)
				}
				got = append(got, info)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("List differs from what Head returned (-want +got):\n%s", diff)
			}
		}},
		{"stops when the caller does and can be run again", func(t *testing.T, s objstore.Store) {
			for _, key := range []string{"r/a", "r/b/c", "r/d"} {
				mustPut(t, s, key, []byte("x"))
			}
			list := s.List(t.Context(), "r/", "")
			for range 2 {
				for info, err := range list {
					if err != nil || info.Key != "r/a" {
						t.Errorf("the first object = %q, %v, want \"r/a\", nil", info.Key, err)
					}
					break
				}
			}
		}},
		{"any tree from any start", listAnyTree},
		{"objects that stay are listed while others come and go", listBesideChanges},
	}
}

// listAnyTree compares listings of a random tree with sorted keys. Directories and files are of different letters, so that no
// name is both.
func listAnyTree(t *testing.T, s objstore.Store) {
	random := rand.New(rand.NewPCG(7, 11))
	segment := func(letters string) string {
		b := make([]byte, 1+random.IntN(3))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	set := map[string]bool{}
	for range 120 {
		key := "r/"
		for range random.IntN(4) {
			key += segment("-ab0 ") + "/"
		}
		set[key+segment("-f0 ")+"f"] = true
	}
	var keys []string
	for key := range set {
		mustPut(t, s, key, []byte("x"))
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for range 60 {
		after := keys[random.IntN(len(keys))]
		after = after[:1+random.IntN(len(after))]
		from, _ := slices.BinarySearchFunc(keys, after, func(key, after string) int {
			return strings.Compare(key, after+"\x00") // the first key greater than after
		})
		if got := keysOf(t, s, "r/", after); !slices.Equal(got, keys[from:]) {
			t.Errorf("List after %q differs (-want +got):\n%s", after, cmp.Diff(keys[from:], got))
		}
	}
}

func listBesideChanges(t *testing.T, s objstore.Store) {
	var stay []string
	for i := range 20 {
		key := fmt.Sprintf("r/%02d/stays", i)
		mustPut(t, s, key, []byte("x"))
		stay = append(stay, key)
	}
	race(4, func(i int) {
		for round := range 10 {
			if i == 0 {
				got := slices.DeleteFunc(keysOfAll(t, s, "r/"), func(key string) bool { return !strings.HasSuffix(key, "/stays") })
				if !slices.Equal(got, stay) {
					t.Errorf("List beside changes differs (-want +got):\n%s", cmp.Diff(stay, got))
				}
				continue
			}
			dir := fmt.Sprintf("r/%02d/%d-%d/", round, i, round)
			mustPutFrom(t, s, dir+"goes", []byte("x"))
			if _, err := s.DeleteTree(t.Context(), dir); err != nil {
				t.Errorf("DeleteTree(%q) = %v, want nil", dir, err)
			}
		}
	})
}

// keysOfAll is keysOf for a goroutine that is not the test's own.
func keysOfAll(t *testing.T, s objstore.Store, prefix string) []string {
	var keys []string
	for info, err := range s.List(t.Context(), prefix, "") {
		if err != nil {
			t.Errorf("List(%q) = %v, want no error", prefix, err)
			return nil
		}
		keys = append(keys, info.Key)
	}
	return keys
}
