package lance_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lancerest/lancerest/internal/lance"
	"google.golang.org/protobuf/encoding/protowire"
)

// Operations of a transaction, by the field that holds them.
const (
	opAppend    protowire.Number = 100
	opDelete    protowire.Number = 101
	opOverwrite protowire.Number = 102
	opMerge     protowire.Number = 105
	opUpdate    protowire.Number = 108
	opConfig    protowire.Number = 110
)

// inTheChain returns the detached manifests "<name>.<n>" of testdata/attach_last in the order in which they were made.
func inTheChain(t testing.TB, name string) [][]byte {
	t.Helper()
	files := readAll(t, "attach_last/"+name+".[0-9]")
	var chain [][]byte
	for i := range len(files) {
		chain = append(chain, files[fmt.Sprintf("%s.%d", name, i+1)])
	}
	return chain
}

// fieldsOf returns the fields of a message, in order.
func fieldsOf(t testing.TB, message []byte) (numbers []protowire.Number, values map[protowire.Number][]byte) {
	t.Helper()
	values = map[protowire.Number][]byte{}
	for len(message) > 0 {
		number, typ, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			t.Fatalf("malformed message %q", message)
		}
		length := protowire.ConsumeFieldValue(number, typ, message[tag:])
		if length < 0 {
			t.Fatalf("malformed message %q", message)
		}
		value := message[tag:][:length]
		if typ == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		numbers, values[number] = append(numbers, number), value
		message = message[tag+length:]
	}
	return numbers, values
}

// transactionIn returns the fields of a manifest file's copy of its transaction, nil for none, and the operation: the last field.
func transactionIn(t testing.TB, data []byte) (values map[protowire.Number][]byte, operation protowire.Number) {
	t.Helper()
	_, manifest := fieldsOf(t, manifestContent(data))
	pointer, found := manifest[23]
	if !found {
		return nil, 0
	}
	at, _ := protowire.ConsumeVarint(pointer)
	length := uint64(data[at]) | uint64(data[at+1])<<8 | uint64(data[at+2])<<16
	numbers, values := fieldsOf(t, data[at+4:][:length])
	return values, numbers[len(numbers)-1]
}

// TestAttachLast attaches the last of several detached manifests of pylance 14.0.2, and compares with what pylance has read,
// written to, and held against writers that had opened the version before: each of appends, deletes, updates, merge_inserts,
// overwrites, compactions, changes of columns, configuration and indices was done right or refused.
func TestAttachLast(t *testing.T) {
	t.Parallel()
	for name, operation := range map[string]protowire.Number{
		"appends": opAppend, "delete_append": opMerge, "append_update_delete": opMerge, "message": opMerge, "overwrite_append": opOverwrite, "append_config": 0,
	} {
		for _, name := range []string{name, name + "_sr"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				chain := inTheChain(t, name)
				last, between := chain[len(chain)-1], chain[:len(chain)-1]
				slices.Reverse(between)
				kept := bytes.Clone(last)
				got, err := lance.AttachLast(last, 2, between, nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(readFile(t, "attach_last/"+name+".want"), got); diff != "" {
					t.Errorf("AttachLast (-want +got):\n%s", diff)
				}
				if !bytes.Equal(last, kept) {
					t.Error("AttachLast changed its argument")
				}
				if _, op := transactionIn(t, got); op != operation {
					t.Errorf("its transaction has operation %d, want %d", op, operation)
				}
				if operation == opAppend {
					wantOnlyVersionChanged(t, last, got, 2)
				} else {
					wantOnlyTransactionReplaced(t, last, got, 2)
				}
			})
		}
	}
}

// wantOnlyTransactionReplaced fails the test unless two manifests say the same but for the version and the transaction. Of that there is
// at most the copy in the file.
func wantOnlyTransactionReplaced(t *testing.T, before, after []byte, v lance.VersionNumber) {
	t.Helper()
	want, err := lance.ReadManifest(before)
	if err != nil {
		t.Fatal(err)
	}
	got, err := lance.ReadManifest(after)
	if err != nil {
		t.Fatal(err)
	}
	want.Version, want.TransactionFile, want.TransactionUUID, want.ReadVersion, want.ReadVersionKnown = v, "", "", 0, false
	if transaction, _ := transactionIn(t, after); transaction != nil {
		want.TransactionUUID, want.ReadVersion, want.ReadVersionKnown = string(transaction[2]), v-1, true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
}

// TestStandInTellsWhatTheManifestHas looks into the transaction that replaces another.
func TestStandInTellsWhatTheManifestHas(t *testing.T) {
	t.Parallel()
	got, err := lance.AttachLast(inTheChain(t, "message")[1], 2, inTheChain(t, "message")[:1], nil)
	if err != nil {
		t.Fatal(err)
	}
	transaction, operation := transactionIn(t, got)
	if !bytes.Contains(transaction[4], []byte("hello")) {
		t.Errorf("its properties are %q, without the commit's message", transaction[4])
	}
	if uuid := string(transaction[2]); len(uuid) != 36 || uuid[14] != '8' || strings.Count(uuid, "-") != 4 {
		t.Errorf("its UUID is %q", uuid)
	}
	content, _ := fieldsOf(t, transaction[operation])
	manifest, _ := fieldsOf(t, manifestContent(got))
	count := func(numbers []protowire.Number, n protowire.Number) (count int) {
		for _, number := range numbers {
			if number == n {
				count++
			}
		}
		return count
	}
	if got, want := count(content, 1), count(manifest, 2); got != want {
		t.Errorf("it has %d fragments, want the manifest's %d", got, want)
	}
	if got, want := count(content, 2), count(manifest, 1); got != want {
		t.Errorf("it has %d fields, want the manifest's %d", got, want)
	}
}

// detachedManifest builds the manifest of a detached version made from another, with a transaction that has the given fields.
func detachedManifest(version, read lance.VersionNumber, pointer protowire.Number, transaction ...[]byte) []byte {
	sections := section(message(append([][]byte{number(1, uint64(read))}, transaction...)...))
	return manifestFile(sections, message(number(3, uint64(version)), content(12, fmt.Appendf(nil, "%d-x.txn", uint64(read))), number(pointer, 0)))
}

// TestAttachLastByOperation holds what stands in for a chain of an append and another transaction, in either order.
func TestAttachLastByOperation(t *testing.T) {
	t.Parallel()
	const first, last lance.VersionNumber = -10, -5
	appended := content(opAppend, content(1, nil))
	type fields = [][]byte
	for name, tc := range map[string]struct {
		transaction fields
		want        protowire.Number
	}{
		"append":                        {fields{appended}, opAppend},
		"append, with a tag":            {fields{content(3, []byte("tag")), appended}, opAppend},
		"append of an unknown kind":     {fields{content(opAppend, content(2, nil))}, opOverwrite},
		"delete":                        {fields{content(opDelete, message(content(1, nil), number(2, 1), content(3, nil)))}, opMerge},
		"delete of an unknown kind":     {fields{content(opDelete, content(4, nil))}, opOverwrite},
		"update of rows":                {fields{content(opUpdate, message(number(1, 1), content(2, nil), content(3, nil), content(6, nil), content(8, nil)))}, opMerge},
		"update of columns":             {fields{content(opUpdate, message(content(2, nil), number(4, 1), number(7, 1)))}, opOverwrite},
		"update that merges SSTables":   {fields{content(opUpdate, content(5, nil))}, opOverwrite},
		"overwrite":                     {fields{content(opOverwrite, message(content(1, nil), content(2, nil), content(3, nil)))}, opOverwrite},
		"overwrite with configuration":  {fields{content(opOverwrite, content(4, nil))}, 0},
		"index":                         {fields{content(103, nil)}, opOverwrite},
		"restore":                       {fields{content(106, nil)}, opOverwrite},
		"configuration":                 {fields{content(opConfig, nil)}, 0},
		"bases":                         {fields{content(114, nil)}, 0},
		"an operation of the future":    {fields{content(150, nil)}, 0},
		"an unknown field":              {fields{content(9, nil), appended}, 0},
		"two operations":                {fields{appended, appended}, 0},
		"no operation":                  {nil, 0},
		"an operation that is a number": {fields{number(opAppend, 1)}, opOverwrite},
		"a malformed operation":         {fields{content(opDelete, []byte{0xff})}, opOverwrite},
		"a malformed transaction":       {fields{{0xff}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for order, chain := range map[string][2][]byte{
				"before an append":                    {detachedManifest(first, 6, 23, tc.transaction...), detachedManifest(last, first, 23, appended)},
				"after an append":                     {detachedManifest(first, 6, 23, appended), detachedManifest(last, first, 23, tc.transaction...)},
				"after an append, in the old place":   {detachedManifest(first, 6, 21, appended), detachedManifest(last, first, 21, tc.transaction...)},
				"after an append of which is no copy": {detachedManifest(first, 6, 99, appended), detachedManifest(last, first, 23, tc.transaction...)},
			} {
				got, err := lance.AttachLast(chain[1], 7, [][]byte{chain[0]}, nil)
				if err != nil {
					t.Fatal(err)
				}
				want := tc.want
				if strings.HasSuffix(order, "no copy") {
					want = 0
				}
				_, operation := transactionIn(t, got)
				if strings.HasSuffix(order, "old place") && want == opAppend {
					want = 0 // kept where it is
				}
				if operation != want {
					t.Errorf("%s: its transaction has operation %d, want %d", order, operation, want)
				}
				if _, manifest := fieldsOf(t, manifestContent(got)); want != opAppend && tc.want != opAppend && (manifest[12] != nil || manifest[21] != nil) {
					t.Errorf("%s: its old transaction is still named", order)
				}
			}
		})
	}
}

func TestAttachLastUponAnAttachedOne(t *testing.T) {
	t.Parallel()
	chain := inTheChain(t, "appends_sr")
	first, err := lance.ReadManifest(chain[0])
	if err != nil {
		t.Fatal(err)
	}
	attached := map[lance.VersionNumber]lance.VersionNumber{first.Version: 2}
	got, err := lance.AttachLast(chain[2], 3, chain[1:2], attached)
	if err != nil {
		t.Fatal(err)
	}
	wantOnlyVersionChanged(t, chain[2], got, 3)
	// Alone, the second is what AttachAfter makes of it.
	got, err = lance.AttachLast(chain[1], 3, chain, attached)
	if err != nil {
		t.Fatal(err)
	}
	want, err := lance.AttachAfter(chain[1], 3, attached)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("AttachLast upon an attached one (-AttachAfter +AttachLast):\n%s", diff)
	}
}

func TestAttachLastRefuses(t *testing.T) {
	t.Parallel()
	chain := inTheChain(t, "append_update_delete")
	last := chain[2]
	appended := content(opAppend, content(1, nil))
	circle := [][]byte{detachedManifest(-10, -5, 23, appended), detachedManifest(-5, -10, 23, appended)}
	elsewhere := manifestFile(nil, message(number(3, 1<<63+5), content(12, []byte("6-x.txn")), content(20, []byte("dev"))))
	unsaid := manifestFile(nil, number(3, 1<<63+5))
	upon := func(read lance.VersionNumber) []byte { return detachedManifest(-7, read, 23, appended) }
	const given = -1<<63 + 5
	for name, tc := range map[string]struct {
		data    []byte
		v       lance.VersionNumber
		between [][]byte
		want    error
		text    string
	}{
		"none is given":            {last, 2, nil, lance.ErrUnsupportedManifest, "give its manifest"},
		"the first is missing":     {last, 2, chain[1:2], lance.ErrUnsupportedManifest, "give its manifest"},
		"the second is missing":    {last, 2, chain[:1], lance.ErrUnsupportedManifest, "give its manifest"},
		"the first is stale":       {last, 3, chain[:2], lance.ErrStaleManifest, "from 1, so it cannot follow version 2"},
		"a circle":                 {circle[0], 2, circle, lance.ErrUnsupportedManifest, "give its manifest"},
		"another branch":           {upon(given), 7, [][]byte{elsewhere}, lance.ErrUnsupportedManifest, "another branch"},
		"the first does not tell":  {upon(given), 7, [][]byte{unsaid}, lance.ErrUnsupportedManifest, "does not tell"},
		"an index of one between":  {readFile(t, "attach/ixd.3.before"), 3, nil, lance.ErrUnsupportedManifest, "give its manifest"},
		"rows upon an unknown one": {manifestFile(nil, message(content(2, content(7, content(1, number(2, 1<<63+10)))), number(3, 1<<63), content(12, []byte("9223372036854775813-x.txn")))), 7, [][]byte{manifestFile(nil, message(number(3, 1<<63+5), content(12, []byte("6-x.txn"))))}, lance.ErrUnsupportedManifest, "not attached"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := lance.AttachLast(tc.data, tc.v, tc.between, nil)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got error %v, want %v about %q", err, tc.want, tc.text)
			}
		})
	}
	_, err := lance.AttachLast(last, 2, [][]byte{[]byte("LANC")}, nil)
	wantCorrupt(t, err, "4 bytes")
	_, err = lance.AttachLast([]byte("LANC"), 2, chain[:2], nil)
	wantCorrupt(t, err, "4 bytes")
	_, err = lance.AttachLast(readFile(t, "manifests/index.manifest"), 4, nil, nil)
	wantInvalid(t, err, "version 3: is not a detached version")
}

// FuzzAttachLast holds that whatever can be attached upon another is, afterwards, the same manifest with another version and
// transaction. Its inputs are the messages of the two manifests, behind sections with an index and a transaction.
func FuzzAttachLast(f *testing.F) {
	sections := message(section(content(1, message(content(3, []byte("ix")), number(4, 1)))), section(message(number(1, 1), content(opDelete, nil))))
	for _, name := range []string{"appends_sr", "delete_append", "append_update_delete_sr", "overwrite_append", "append_config"} {
		chain := inTheChain(f, name)
		f.Add(manifestContent(chain[1]), manifestContent(chain[0]), int64(2))
	}
	f.Fuzz(func(t *testing.T, last, first []byte, v int64) {
		data, between := manifestFile(sections, last), manifestFile(sections, first)
		got, err := lance.AttachLast(data, lance.VersionNumber(v), [][]byte{between}, nil)
		if err != nil {
			return
		}
		again, err := lance.AttachLast(data, lance.VersionNumber(v), [][]byte{between}, nil)
		if err != nil || !bytes.Equal(got, again) {
			t.Errorf("a second call returns %q and error %v, the first %q", again, err, got)
		}
		if len(got) >= len(sections) && !bytes.Equal(got[:len(sections)], sections) {
			t.Errorf("the sections became %q", got[:len(sections)])
		}
		want, err := lance.ReadManifest(data)
		if err != nil {
			t.Fatal(err)
		}
		m, err := lance.ReadManifest(got)
		if err != nil {
			t.Fatal(err)
		}
		want.Version, want.TransactionFile, want.TransactionUUID = m.Version, m.TransactionFile, m.TransactionUUID
		want.ReadVersion, want.ReadVersionKnown = m.ReadVersion, m.ReadVersionKnown
		if diff := cmp.Diff(want, m); diff != "" || m.Version != lance.VersionNumber(v) {
			t.Errorf("as version %d (-want +got):\n%s", v, diff)
		}
	})
}
