package lance_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lancerest/lancerest/internal/lance"
)

// TestRenumber repeats versions that pylance 14.0.2 made, and compares with what pylance has read, appended to, deleted from,
// merged into, indexed and compacted. A writer that had read the version before, the version itself, or another one in its
// place was refused, and went on after it had opened the latest.
func TestRenumber(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]lance.VersionNumber{
		"append": 3, "append_sr": 3, "append_indexed": 4, "append_indexed_sr": 4, "delete": 3, "update_sr": 3, "overwrite": 3, "index": 3,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := readFile(t, fmt.Sprintf("renumber/%s.%d", name, v-1))
			kept := bytes.Clone(before)
			got, err := lance.RenumberVersion(before, v)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(readFile(t, fmt.Sprintf("renumber/%s.%d", name, v)), got); diff != "" {
				t.Errorf("RenumberVersion (-want +got):\n%s", diff)
			}
			if !bytes.Equal(before, kept) {
				t.Error("RenumberVersion changed its argument")
			}
			wantOnlyTransactionReplaced(t, before, got, v)
			if _, operation := transactionIn(t, got); operation != opOverwrite {
				t.Errorf("its transaction has operation %d, want an overwrite, %d", operation, opOverwrite)
			}
			again, err := lance.RenumberVersion(got, v+1)
			if err != nil {
				t.Fatal(err)
			}
			wantOnlyTransactionReplaced(t, got, again, v+1)
		})
	}
}

// TestRenumberKeepsVersionsInside holds that what a manifest records of earlier versions stays, and that no flag is in the way.
func TestRenumberKeepsVersionsInside(t *testing.T) {
	t.Parallel()
	build := func(version uint64, transaction ...[]byte) []byte {
		return message(content(2, message(content(7, content(1, number(2, 6))), content(11, number(3, 5)))), number(3, version), number(9, 1<<40|1<<9), message(transaction...))
	}
	got, err := lance.RenumberVersion(manifestFile(section(nil), build(6, content(12, []byte("5-x.txn")), number(23, 0))), 7)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := manifestContent(got), build(7, number(23, 4)); !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// Fragments in a tree cannot be told in a transaction.
	got, err = lance.RenumberVersion(manifestFile(nil, message(number(3, 6), content(22, nil), content(12, []byte("5-x.txn")))), 7)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := manifestContent(got), message(number(3, 7), content(22, nil)); !bytes.Equal(got, want) {
		t.Errorf("with a tree of fragments: got  %q\nwant %q", got, want)
	}
}

func TestRenumberRefuses(t *testing.T) {
	t.Parallel()
	data := readFile(t, "renumber/append.2")
	for _, v := range []lance.VersionNumber{0, 1, 2, 4, -1} {
		_, err := lance.RenumberVersion(data, v)
		wantInvalid(t, err, fmt.Sprintf("version %d: is not the one after 2", v))
	}
	_, err := lance.RenumberVersion(manifestFile(nil, number(3, math.MaxInt64)), math.MinInt64)
	wantInvalid(t, err, "is not the one after 9223372036854775807")
	detached := readFile(t, "attach/append.2.before")
	m, err := lance.ReadManifest(detached)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lance.RenumberVersion(detached, m.Version+1)
	wantInvalid(t, err, "is not the one after")
	_, err = lance.RenumberVersion([]byte("LANC"), 2)
	wantCorrupt(t, err, "4 bytes")
}
