package wire_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// batch sends entries in one commit.
func batch(t *testing.T, entries list, more ...option) answer {
	t.Helper()
	return suite.send(t, "BatchCreateTableVersions", nil, obj{"entries": entries}, more...)
}

// newTables declares count tables in a namespace of the test's own.
func newTables(t *testing.T, count int) []table {
	t.Helper()
	ns := newNamespace(t)
	tables := make([]table, count)
	for i := range tables {
		tables[i] = declare(t, child(ns, fmt.Sprintf("t%d", i)))
	}
	return tables
}

// allAt fails the test unless the head of every table is the version; 0 is none.
func allAt(t *testing.T, tables []table, version int64) {
	t.Helper()
	for _, tb := range tables {
		got := tb.versions(t, "")
		if len(got) == 0 && version == 0 {
			continue
		}
		if len(got) == 0 || got[0] != version {
			t.Errorf("%s has the versions %v, want the head %d", strings.Join(tb.id, "/"), got, version)
		}
	}
}

// TestBatchOfManyTables: one commit, answered in the order of the entries with all six fields of each version, kept as answered.
func TestBatchOfManyTables(t *testing.T) {
	t.Parallel()
	tables := newTables(t, 4)
	order := []int{2, 0, 3, 1}
	entries := list{}
	for _, i := range order {
		entries = append(entries, with(tables[i].entry(t, 1), obj{"metadata": obj{"table": fmt.Sprint(i)}, "e_tag": `"x"`}))
	}
	got := batch(t, entries).ok(t)
	if got.str(t, "transaction_id") == "" {
		t.Error("no transaction_id")
	}
	versions := got.items(t, "versions")
	if len(versions) != len(order) {
		t.Fatalf("%d versions for %d entries", len(versions), len(order))
	}
	for place, i := range order {
		v := asObject(t, versions[place])
		for _, member := range []string{"version", "manifest_path", "manifest_size", "e_tag", "timestamp_millis", "metadata"} {
			if _, ok := v[member]; !ok {
				t.Errorf("entry %d: no %s in %v", place, member, v)
			}
		}
		if path, want := v.str(t, "manifest_path"), tables[i].rel+"/_versions/"+finalName(1); path != want {
			t.Errorf("entry %d: manifest_path = %s, want %s", place, path, want)
		}
		if v.object(t, "metadata")["table"] != fmt.Sprint(i) {
			t.Errorf("entry %d: metadata = %v", place, v["metadata"])
		}
		if diff := cmp.Diff(v, tables[i].describeVersion(t, 1).ok(t).object(t, "version")); diff != "" {
			t.Errorf("entry %d: describe (-batch +describe):\n%s", place, diff)
		}
		if !exists(object(t, v.str(t, "manifest_path"))) {
			t.Errorf("entry %d: nothing at %s", place, v["manifest_path"])
		}
	}
}

// TestBatchWithoutMetadata still has all six fields, the map with nothing that a writer gave and not null.
func TestBatchWithoutMetadata(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	v := asObject(t, batch(t, list{tb.entry(t, 1)}).ok(t).items(t, "versions")[0])
	if len(given(v.object(t, "metadata"))) != 0 {
		t.Errorf("metadata = %v, want nothing that was given", v["metadata"])
	}
}

// TestBatchReplay: the same batch again is answered as the first time, with the same transaction.
func TestBatchReplay(t *testing.T) {
	t.Parallel()
	tables := newTables(t, 3)
	entries := list{tables[0].entry(t, 1), tables[1].entry(t, 1), tables[2].entry(t, 1)}
	first := batch(t, entries).ok(t)
	if diff := cmp.Diff(first, batch(t, entries).ok(t)); diff != "" {
		t.Errorf("second answer (-first +second):\n%s", diff)
	}
	tables[0].commit(t, 2, 2)
	if diff := cmp.Diff(first, batch(t, entries).ok(t)); diff != "" {
		t.Errorf("answer after a later version (-first +second):\n%s", diff)
	}
	half := list{entries[0], tables[1].entry(t, 2)}
	batch(t, half).fails(t, conflict) // part of it is there, part is not: no replay
	allAt(t, tables[1:], 1)
}

// TestBatchSeveralVersionsOfOneTable: consecutive ones in their order, on main and on branches, in one commit.
func TestBatchSeveralVersionsOfOneTable(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 1)
	onBranch := func(version int64) obj { return with(tb.stagedOn(t, "dev", version), obj{"id": tb.id}) }
	onOther := func(version int64) obj { return with(tb.stagedOn(t, "feature/x", version), obj{"id": tb.id}) }
	got := batch(t, list{tb.entry(t, 2), onBranch(1), tb.entry(t, 3), onBranch(2), onOther(1), tb.entry(t, 4)}).ok(t)
	if diff := cmp.Diff([]int64{2, 1, 3, 2, 1, 4}, numbers(t, got)); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if got := tb.versions(t, ""); !cmp.Equal(got, []int64{4, 3, 2, 1}) {
		t.Errorf("main = %v", got)
	}
	if got := tb.versions(t, "dev"); !cmp.Equal(got, []int64{2, 1}) {
		t.Errorf("dev = %v", got)
	}
	batch(t, list{tb.entry(t, 5), tb.entry(t, 7)}).fails(t, conflict)
	if got := tb.versions(t, ""); got[0] != 4 {
		t.Errorf("main = %v after a batch with a gap", got)
	}
}

// failing is a batch that must fail as a whole.
type failing struct {
	entries func(t *testing.T, tables []table) list
	code    int
	named   []string // what the error must name
}

// failingBatches are one good entry followed by one that is not.
func failingBatches() map[string]failing {
	second := func(build func(*testing.T, []table) any) func(*testing.T, []table) list {
		return func(t *testing.T, tables []table) list { return list{tables[0].entry(t, 1), build(t, tables)} }
	}
	changed := func(more obj) func(*testing.T, []table) list {
		return second(func(t *testing.T, tables []table) any { return with(tables[1].entry(t, 1), more) })
	}
	return map[string]failing{
		"a gap": {second(func(t *testing.T, tb []table) any { return tb[1].entry(t, 2) }), conflict, []string{"1", "t1", "2"}},
		"a missing table": {second(func(t *testing.T, tb []table) any {
			return with(tb[1].entry(t, 1), obj{"id": child(tb[1].id[:1], "none")})
		}), tableNotFound, []string{"1", "none"}},
		"no namespace":     {changed(obj{"id": list{"absent_ns", "t"}}), namespaceNotFound, []string{"1", "absent_ns"}},
		"a missing object": {changed(obj{"manifest_path": "nowhere/_versions/x"}), invalidInput, []string{"1", "t1"}},
		"not its table's": {second(func(t *testing.T, tb []table) any {
			return with(tb[1].entry(t, 1), obj{"manifest_path": tb[0].staged(t, 1)["manifest_path"]})
		}), invalidInput, []string{"1", "t1"}},
		"no manifest": {second(func(t *testing.T, tb []table) any {
			return obj{"id": tb[1].id, "version": 1, "manifest_path": tb[1].stage(t, "", finalName(1), []byte("text"))}
		}), invalidInput, []string{"1", "t1"}},
		"another version's": {second(func(t *testing.T, tb []table) any {
			return obj{"id": tb[1].id, "version": 1, "manifest_path": tb[1].stage(t, "", finalName(1), manifestBytes(manifestSpec{version: 7}))}
		}), invalidInput, []string{"1", "t1"}},
		"one version twice": {second(func(t *testing.T, tb []table) any { return tb[0].entry(t, 1) }), invalidInput, []string{"t0", "1"}},
		"the very entry twice": {func(t *testing.T, tb []table) list { e := tb[0].entry(t, 1); return list{e, e} },
			invalidInput, []string{"t0", "1"}},
		"no id":          {changed(obj{"id": nil}), invalidInput, []string{"1", "id"}},
		"an empty id":    {changed(obj{"id": list{}}), invalidInput, []string{"1"}},
		"an id of text":  {changed(obj{"id": "a$t1"}), invalidInput, []string{"id"}},
		"no version":     {changed(obj{"version": nil}), invalidInput, []string{"1", "version"}},
		"version 0":      {changed(obj{"version": 0}), invalidInput, []string{"1"}},
		"no path":        {changed(obj{"manifest_path": nil}), invalidInput, []string{"1", "manifest_path"}},
		"a scheme":       {changed(obj{"naming_scheme": "V9"}), invalidInput, []string{"V9"}},
		"a branch":       {changed(obj{"branch": "a..b"}), invalidInput, []string{"a..b"}},
		"null":           {second(func(*testing.T, []table) any { return nil }), invalidInput, []string{"1"}},
		"a number":       {second(func(*testing.T, []table) any { return 7 }), invalidInput, []string{"entries"}},
		"metadata of 1s": {changed(obj{"metadata": obj{"a": 1}}), invalidInput, []string{"metadata"}},
	}
}

// TestBatchAllOrNothing: when one entry fails, the error says which and why, and no table has moved.
func TestBatchAllOrNothing(t *testing.T) {
	t.Parallel()
	for label, f := range failingBatches() {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			tables := newTables(t, 2)
			entries := f.entries(t, tables)
			said := batch(t, entries).fails(t, f.code)
			mentions(t, said, f.named...)
			allAt(t, tables, 0)
			if exists(filepath.Join(tables[0].dir, "_versions", finalName(1))) {
				t.Error("the good entry was published")
			}
			batch(t, list{tables[1].entry(t, 1), tables[0].entry(t, 1)}).ok(t)
		})
	}
	t.Run("a stale version names the entry", func(t *testing.T) {
		t.Parallel()
		tables := newTables(t, 3)
		tables[2].commit(t, 1, 1)
		entries := list{tables[0].entry(t, 1), tables[1].entry(t, 1), tables[2].entry(t, 1)}
		mentions(t, batch(t, entries).fails(t, conflict), "2", "t2", "version 1")
		allAt(t, tables[:2], 0)
		tables[2].describeVersion(t, 1).ok(t)
	})
}

// TestEmptyBatch and a body without entries are refused.
func TestEmptyBatch(t *testing.T) {
	t.Parallel()
	mentions(t, batch(t, list{}).fails(t, invalidInput), "entries")
	mentions(t, suite.send(t, "BatchCreateTableVersions", nil, nil).fails(t, invalidInput), "entries")
	suite.send(t, "BatchCreateTableVersions", nil, nil, rawBody(`{"entries":null}`)).fails(t, invalidInput)
}

// TestBatchWithoutDelimiter: ids are lists, so the delimiter has nothing to act on, whatever it is.
func TestBatchWithoutDelimiter(t *testing.T) {
	t.Parallel()
	for _, q := range []string{"", "delimiter=%24", "delimiter=.", "delimiter=%3A%3A"} {
		tables := newTables(t, 2)
		batch(t, list{tables[0].entry(t, 1), tables[1].entry(t, 1)}, query(q)).ok(t)
	}
}

// TestRacingBatches: batches over the same tables in different orders; each either moves every table of its own or none, and
// nobody is told a conflict that cannot be read.
func TestRacingBatches(t *testing.T) {
	t.Parallel()
	tables := newTables(t, 6)
	const writers = 8
	entries := make([]list, writers)
	for w := range entries {
		for i := range tables {
			entries[w] = append(entries[w], with(tables[(i+w)%len(tables)].entry(t, 1), obj{"metadata": obj{"writer": fmt.Sprint(w)}}))
		}
	}
	answers := make([]answer, writers)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() { answers[w] = batch(t, entries[w]) })
	}
	group.Wait()
	winner := ""
	for w, a := range answers {
		if a.code() == success {
			if winner != "" {
				t.Errorf("writers %s and %d both won", winner, w)
			}
			winner = fmt.Sprint(w)
			continue
		}
		a.fails(t, conflict)
	}
	if winner == "" {
		t.Fatal("nobody won")
	}
	for _, tb := range tables {
		v := tb.describeVersion(t, 1).ok(t).object(t, "version")
		if got := v.object(t, "metadata")["writer"]; got != winner {
			t.Errorf("%s is at writer %v's version, want %s's", tb.id[1], got, winner)
		}
	}
}

// TestBatchOfAThousandTables: more than a thousand tables move in one commit, declared in one before.
func TestBatchOfAThousandTables(t *testing.T) {
	t.Parallel()
	const count = 1050
	ns := newNamespace(t)
	declares := list{}
	for i := range count {
		declares = append(declares, obj{"declare_table": obj{"id": child(ns, fmt.Sprintf("t%04d", i))}})
	}
	results := commitTables(t, declares).ok(t).items(t, "results")
	tables, entries := make([]table, count), list{}
	for i := range tables {
		tables[i] = located(t, child(ns, fmt.Sprintf("t%04d", i)), asObject(t, results[i]).object(t, "declare_table"))
		entries = append(entries, tables[i].entry(t, 1))
	}
	got := batch(t, entries).ok(t)
	for i, v := range got.items(t, "versions") {
		if path, want := asObject(t, v).str(t, "manifest_path"), tables[i].rel+"/_versions/"+finalName(1); path != want {
			t.Fatalf("entry %d: manifest_path = %s, want %s", i, path, want)
		}
	}
	last := asObject(t, got.items(t, "versions")[count-1])
	if diff := cmp.Diff(last, tables[count-1].describeVersion(t, 1).ok(t).object(t, "version")); diff != "" {
		t.Errorf("describe (-batch +describe):\n%s", diff)
	}
	mentions(t, batch(t, entries[:count-1:count-1]).ok(t).str(t, "transaction_id"), "-")
	broken := append(append(list{}, tables[0].entry(t, 2)), with(tables[count-1].entry(t, 2), obj{"version": 3}))
	batch(t, broken).failsWith(t, conflict, invalidInput)
	allAt(t, tables[:1], 1)
}
