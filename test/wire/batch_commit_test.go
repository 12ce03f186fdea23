package wire_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// commitTables sends operations in one commit.
func commitTables(t *testing.T, operations list) answer {
	t.Helper()
	return suite.send(t, "BatchCommitTables", nil, obj{"operations": operations})
}

// The four kinds of operations.
func declareOp(id []string) obj    { return obj{"declare_table": obj{"id": id}} }
func createOp(entry obj) obj       { return obj{"create_table_version": entry} }
func deregisterOp(id []string) obj { return obj{"deregister_table": obj{"id": id}} }
func deleteOp(id []string, s, e int64) obj {
	return obj{"delete_table_versions": obj{"id": id, "ranges": list{obj{"start_version": s, "end_version": e}}}}
}

// TestBatchCommitOfAllKinds: results in the order of the operations, each with exactly the member of its kind.
func TestBatchCommitOfAllKinds(t *testing.T) {
	t.Parallel()
	tables := newTables(t, 3)
	tables[1].commit(t, 1, 3)
	fresh := child(tables[0].id[:1], "fresh")
	got := commitTables(t, list{
		deregisterOp(tables[2].id), createOp(tables[0].entry(t, 1)), declareOp(fresh), deleteOp(tables[1].id, 1, 3), createOp(tables[0].entry(t, 2)),
	}).ok(t)
	if got.str(t, "transaction_id") == "" {
		t.Error("no transaction_id")
	}
	want := []string{"deregister_table", "create_table_version", "declare_table", "delete_table_versions", "create_table_version"}
	results := got.items(t, "results")
	if len(results) != len(want) {
		t.Fatalf("%d results for %d operations", len(results), len(want))
	}
	for i, kind := range want {
		r := asObject(t, results[i])
		members := []string{}
		for name, value := range r {
			if value != nil {
				members = append(members, name)
			}
		}
		if !cmp.Equal(members, []string{kind}) {
			t.Errorf("result %d has %v, want %s alone", i, members, kind)
		}
	}
	version := asObject(t, results[4]).object(t, "create_table_version").object(t, "version")
	if diff := cmp.Diff(version, tables[0].describeVersion(t, 2).ok(t).object(t, "version")); diff != "" {
		t.Errorf("describe (-batch +describe):\n%s", diff)
	}
	declared := asObject(t, results[2]).object(t, "declare_table")
	if declared["managed_versioning"] != true || declared.str(t, "location") == "" {
		t.Errorf("declared %v, want a location and managed versioning", declared)
	}
	if n := asObject(t, results[3]).object(t, "delete_table_versions").num(t, "deleted_count"); n != 2 {
		t.Errorf("deleted_count = %d, want 2", n)
	}
	if l := asObject(t, results[0]).object(t, "deregister_table").str(t, "location"); l != tables[2].location {
		t.Errorf("deregistered location = %s, want %s", l, tables[2].location)
	}
	suite.send(t, "TableExists", tables[2].id, nil).fails(t, tableNotFound)
	suite.send(t, "TableExists", fresh, nil).empty(t)
	allAt(t, tables[:1], 2)
	allAt(t, tables[1:2], 3)
}

// TestBatchCommitSeesEarlierOperations: a later operation works on what an earlier one left.
func TestBatchCommitSeesEarlierOperations(t *testing.T) {
	t.Parallel()
	t.Run("deregister and declare the same name", func(t *testing.T) {
		t.Parallel()
		tb := newTable(t)
		tb.commit(t, 1, 1)
		results := commitTables(t, list{deregisterOp(tb.id), declareOp(tb.id)}).ok(t).items(t, "results")
		again := located(t, tb.id, asObject(t, results[1]).object(t, "declare_table"))
		if again.location == tb.location {
			t.Errorf("the new table lives where the old one does: %s", tb.location)
		}
		if got := again.versions(t, ""); len(got) != 0 {
			t.Errorf("the new table has the versions %v", got)
		}
	})
	t.Run("declare at a location and commit its first versions", func(t *testing.T) {
		t.Parallel()
		sibling := newTable(t)
		dir := filepath.Join(filepath.Dir(sibling.dir), "wanted_"+token()+".lance")
		tb := table{id: child(sibling.id[:1], "wanted"), dir: dir, rel: dir[1:], location: fileURI(dir)}
		first := obj{"declare_table": obj{"id": tb.id, "location": tb.location}}
		commitTables(t, list{first, createOp(tb.entry(t, 1)), createOp(tb.entry(t, 2))}).ok(t)
		if got := tb.versions(t, ""); !cmp.Equal(got, []int64{2, 1}) {
			t.Errorf("versions = %v, want 2 and 1", got)
		}
	})
	t.Run("declare and deregister", func(t *testing.T) {
		t.Parallel()
		id := child(newNamespace(t), "brief")
		commitTables(t, list{declareOp(id), deregisterOp(id)}).ok(t)
		suite.send(t, "TableExists", id, nil).fails(t, tableNotFound)
	})
	t.Run("commit a version and delete older ones", func(t *testing.T) {
		t.Parallel()
		tb := newTable(t)
		tb.commit(t, 1, 2)
		commitTables(t, list{createOp(tb.entry(t, 3)), deleteOp(tb.id, 0, 3)}).ok(t)
		if got := tb.versions(t, ""); !cmp.Equal(got, []int64{3}) {
			t.Errorf("versions = %v, want 3 alone", got)
		}
	})
	t.Run("declare one name twice", func(t *testing.T) {
		t.Parallel()
		id := child(newNamespace(t), "twice")
		mentions(t, commitTables(t, list{declareOp(id), declareOp(id)}).fails(t, tableExists), "1", "twice")
		suite.send(t, "TableExists", id, nil).fails(t, tableNotFound)
	})
	t.Run("deregister and commit", func(t *testing.T) {
		t.Parallel()
		tb := newTable(t)
		mentions(t, commitTables(t, list{deregisterOp(tb.id), createOp(tb.entry(t, 1))}).fails(t, tableNotFound), "1", "t")
		suite.send(t, "TableExists", tb.id, nil).empty(t)
	})
	t.Run("one version twice", func(t *testing.T) {
		t.Parallel()
		tb := newTable(t)
		commitTables(t, list{createOp(tb.entry(t, 1)), createOp(tb.entry(t, 1))}).fails(t, invalidInput)
		allAt(t, []table{tb}, 0)
	})
}

// TestBatchCommitAllOrNothing: whatever fails, and wherever, nothing of the rest is to be seen.
func TestBatchCommitAllOrNothing(t *testing.T) {
	t.Parallel()
	type bad struct {
		operation func(t *testing.T, tables []table) any
		code      int
	}
	cases := map[string]bad{
		"stale version":     {func(t *testing.T, tb []table) any { return createOp(tb[2].entry(t, 1)) }, conflict},
		"name taken":        {func(t *testing.T, tb []table) any { return declareOp(tb[2].id) }, tableExists},
		"no such table":     {func(t *testing.T, tb []table) any { return deregisterOp(child(tb[0].id[:1], "none")) }, tableNotFound},
		"no such namespace": {func(t *testing.T, tb []table) any { return declareOp([]string{"absent_" + token(), "t"}) }, namespaceNotFound},
		"no kind":           {func(*testing.T, []table) any { return obj{} }, invalidInput},
		"an unknown kind":   {func(*testing.T, []table) any { return obj{"create_index": obj{}} }, invalidInput},
		"two kinds": {func(t *testing.T, tb []table) any {
			return obj{"declare_table": obj{"id": child(tb[0].id[:1], "n")}, "deregister_table": obj{"id": tb[2].id}}
		}, invalidInput},
		"null":                {func(*testing.T, []table) any { return nil }, invalidInput},
		"a kind without id":   {func(*testing.T, []table) any { return obj{"declare_table": obj{}} }, invalidInput},
		"ranges turned round": {func(t *testing.T, tb []table) any { return deleteOp(tb[2].id, 9, 1) }, invalidInput},
		"another's path": {func(t *testing.T, tb []table) any {
			return createOp(with(tb[2].entry(t, 2), obj{"manifest_path": tb[0].staged(t, 2)["manifest_path"]}))
		}, invalidInput},
	}
	for label, c := range cases {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			tables := newTables(t, 4)
			tables[2].commit(t, 1, 1)
			fresh := child(tables[0].id[:1], "fresh")
			said := commitTables(t, list{
				declareOp(fresh), createOp(tables[0].entry(t, 1)), deregisterOp(tables[1].id), c.operation(t, tables), declareOp(child(tables[0].id[:1], "later")),
			}).fails(t, c.code)
			mentions(t, said, "3")
			suite.send(t, "TableExists", fresh, nil).fails(t, tableNotFound)
			suite.send(t, "TableExists", tables[1].id, nil).empty(t)
			allAt(t, tables[:2], 0)
			allAt(t, tables[2:3], 1)
		})
	}
	mentions(t, commitTables(t, list{}).fails(t, invalidInput), "operations")
	suite.send(t, "BatchCommitTables", nil, nil).fails(t, invalidInput)
}

// TestBatchCommitReplay: the same batch again is answered as the first time.
func TestBatchCommitReplay(t *testing.T) {
	t.Parallel()
	tables := newTables(t, 3)
	tables[2].commit(t, 1, 2)
	operations := list{}
	for _, tb := range tables[:2] {
		operations = append(operations, createOp(tb.entry(t, 1)))
	}
	for label, operations := range map[string]list{
		"versions alone": operations,
		"with others":    {createOp(tables[2].entry(t, 3)), deleteOp(tables[2].id, 1, 2), declareOp(child(tables[0].id[:1], "fresh"))},
	} {
		first := commitTables(t, operations).ok(t)
		if diff := cmp.Diff(first, commitTables(t, operations).ok(t)); diff != "" {
			t.Errorf("%s: second answer (-first +second):\n%s", label, diff)
		}
	}
}

// TestBatchCommitOnBranches: main and a branch of one table move together.
func TestBatchCommitOnBranches(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 1)
	operations := list{}
	for v := int64(1); v <= 3; v++ {
		operations = append(operations, createOp(with(tb.stagedOn(t, "dev", v), obj{"id": tb.id})), createOp(tb.entry(t, v+1)))
	}
	results := commitTables(t, operations).ok(t).items(t, "results")
	for i, want := range []int64{1, 2, 2, 3, 3, 4} {
		v := asObject(t, results[i]).object(t, "create_table_version").object(t, "version")
		if got := v.num(t, "version"); got != want {
			t.Errorf("result %d is version %d, want %d", i, got, want)
		}
	}
	if got := fmt.Sprint(tb.versions(t, "dev"), tb.versions(t, "")); got != "[3 2 1] [4 3 2 1]" {
		t.Errorf("versions = %s", got)
	}
}
