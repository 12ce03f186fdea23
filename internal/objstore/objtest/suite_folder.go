package objtest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/objstore"
)

// folderCases are of objstore.FoldersOf, which every store has, by itself or by its listing.
func folderCases() []testCase {
	return []testCase{
		{"directories right below a prefix", func(t *testing.T, s objstore.Store) {
			for _, key := range []string{"r/a/x", "r/a/y/z", "r/a-b/c/d", "r/a.b", "r/file", "r/ü é%/x", "r/z/x", "ra/x"} {
				mustPut(t, s, key, []byte("x"))
			}
			wantFolders(t, s, "r/", "a", "a-b", "z", "ü é%")
			wantFolders(t, s, "r/a/", "y")
			wantFolders(t, s, "r/a-b/c/")
			wantFolders(t, s, "r/none/")
		}},
		{"many directories", func(t *testing.T, s objstore.Store) {
			var want []string
			for a := 'a'; a <= 'z'; a++ {
				want = append(want, string(a), string(a)+"0")
				mustPut(t, s, "r/"+string(a)+"/x", []byte("x"))
				mustPut(t, s, "r/"+string(a)+"0/x", []byte("x"))
			}
			wantFolders(t, s, "r/", want...)
		}},
	}
}

func wantFolders(t *testing.T, s objstore.Store, prefix string, want ...string) {
	t.Helper()
	got, err := objstore.FoldersOf(t.Context(), s, prefix)
	if err != nil {
		t.Fatalf("FoldersOf(%q) = %v, want no error", prefix, err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("FoldersOf(%q) differs (-want +got):\n%s", prefix, diff)
	}
}
