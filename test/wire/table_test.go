package wire_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDeclareAndDescribe: both give the location and managed_versioning; without them writers fail or go behind the catalog's back.
func TestDeclareAndDescribe(t *testing.T) {
	t.Parallel()
	id := child(newNamespace(t), "t")
	declared := suite.send(t, "DeclareTable", id, obj{"properties": obj{"owner": "ann"}}).ok(t)
	described := suite.send(t, "DescribeTable", id, nil).ok(t)
	for from, got := range map[string]obj{"declare": declared, "describe": described} {
		if got["managed_versioning"] != true {
			t.Errorf("%s: managed_versioning = %v, want true", from, got["managed_versioning"])
		}
		if diff := cmp.Diff(obj{"owner": "ann"}, got.object(t, "properties")); diff != "" {
			t.Errorf("%s: properties (-want +got):\n%s", from, diff)
		}
		if options, ok := got["storage_options"].(map[string]any); ok {
			for k, v := range options {
				if _, isString := v.(string); !isString {
					t.Errorf("%s: storage option %s = %v is not a string", from, k, v)
				}
			}
		}
	}
	if declared.str(t, "location") != described.str(t, "location") {
		t.Errorf("locations %v and %v differ", declared["location"], described["location"])
	}
	if got := suite.send(t, "DescribeTable", id, obj{"with_table_uri": true}, andQuery("with_table_uri=true")).ok(t).str(t, "table_uri"); !strings.Contains(got, "://") {
		t.Errorf("table_uri = %q, want a complete URI", got)
	}
	plain := newTable(t)
	if got := suite.send(t, "DescribeTable", plain.id, nil).ok(t).object(t, "properties"); len(got) != 0 {
		t.Errorf("properties = %v, want {}", got)
	}
}

// TestDescribeAsClientsSendIt: the options in query and body at once, as pylance sends them (client contract, fact 8).
func TestDescribeAsClientsSendIt(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	got := suite.send(t, "DescribeTable", tb.id, obj{"with_table_uri": false, "check_declared": false},
		andQuery("with_table_uri=false&check_declared=false")).ok(t)
	if got.str(t, "location") != tb.location {
		t.Errorf("location = %v, want %v", got["location"], tb.location)
	}
	suite.send(t, "DescribeTable", tb.id, obj{"vend_credentials": true}).ok(t)
}

// TestCheckDeclared tells a table that was only declared from one with data, asked in the query or in the body. A leftover
// staged manifest is no data.
func TestCheckDeclared(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	ask := map[string]func() obj{
		"query": func() obj { return suite.send(t, "DescribeTable", tb.id, nil, andQuery("check_declared=true")).ok(t) },
		"body":  func() obj { return suite.send(t, "DescribeTable", tb.id, obj{"check_declared": true}).ok(t) },
	}
	want := func(state bool) {
		t.Helper()
		for from, describe := range ask {
			if got := describe()["is_only_declared"]; got != state {
				t.Errorf("%s: is_only_declared = %v, want %v", from, got, state)
			}
		}
	}
	want(true)
	tb.stage(t, "", finalName(1), manifestBytes(manifestSpec{version: 1}))
	want(true)
	tb.commit(t, 1, 1)
	want(false)
}

// TestDeclaredOnly: such a table exists, is listed unless asked otherwise, has an empty list of versions, and cannot be declared again.
func TestDeclaredOnly(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	declared, filled := declare(t, child(ns, "declared")), declare(t, child(ns, "filled"))
	filled.commit(t, 1, 1)
	suite.send(t, "TableExists", declared.id, nil).empty(t)
	if got := declared.versions(t, ""); len(got) != 0 {
		t.Errorf("versions = %v, want []", got)
	}
	declared.describeVersion(t, 1).fails(t, versionNotFound)
	suite.send(t, "DescribeTableVersion", declared.id, nil).fails(t, versionNotFound)
	mentions(t, suite.send(t, "DeclareTable", declared.id, nil).fails(t, tableExists), "declared")
	for filter, want := range map[string][]string{"": {"declared", "filled"}, "&include_declared=true": {"declared", "filled"}, "&include_declared=false": {"filled"}} {
		got := suite.send(t, "ListTables", ns, nil, query(defaultDelimiterQuery+filter)).ok(t).strings(t, "tables")
		if !cmp.Equal(got, want) {
			t.Errorf("list%s = %q, want %q", filter, got, want)
		}
	}
	suite.send(t, "DeregisterTable", declared.id, nil).ok(t)
	suite.send(t, "DropTable", filled.id, nil).ok(t)
}

// TestDescribeTableAtVersion: a version that is not there is said so, never ignored.
func TestDescribeTableAtVersion(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 2)
	suite.send(t, "DescribeTable", tb.id, obj{"version": 1}).ok(t)
	mentions(t, suite.send(t, "DescribeTable", tb.id, obj{"version": 99}).fails(t, versionNotFound), "99")
	suite.send(t, "DescribeTable", tb.id, obj{"version": 1, "tag": "x"}).fails(t, invalidInput)
	suite.send(t, "DescribeTable", tb.id, obj{"branch": "dev", "tag": "x"}).fails(t, invalidInput)
	suite.send(t, "TableExists", tb.id, obj{"version": 2}).empty(t)
	suite.send(t, "TableExists", tb.id, obj{"version": 99}).fails(t, versionNotFound)
}

// TestDrop: the name is free at once, the answer says what was dropped and where it was.
func TestDrop(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 1)
	got := suite.send(t, "DropTable", tb.id, nil).ok(t)
	if got.str(t, "location") != tb.location || !cmp.Equal(got.strings(t, "id"), tb.id) || len(got.object(t, "properties")) != 0 {
		t.Errorf("answer %v, want the id %q, the location %s and no properties", got, tb.id, tb.location)
	}
	suite.send(t, "TableExists", tb.id, nil).fails(t, tableNotFound)
	suite.send(t, "DropTable", tb.id, nil).fails(t, tableNotFound)
	tb.describeVersion(t, 1).fails(t, tableNotFound)
	again := declare(t, tb.id)
	if again.location == tb.location {
		t.Errorf("the new table lives where the dropped one did: %s", again.location)
	}
	if got := again.versions(t, ""); len(got) != 0 {
		t.Errorf("the new table has the dropped one's versions %v", got)
	}
}

// TestWriterOfADroppedTable: what a writer staged in a dropped table can never become a version of the table that took its name.
func TestWriterOfADroppedTable(t *testing.T) {
	t.Parallel()
	old := newTable(t)
	stale := old.staged(t, 1)
	suite.send(t, "DropTable", old.id, nil).ok(t)
	suite.send(t, "CreateTableVersion", old.id, stale).fails(t, tableNotFound)
	fresh := declare(t, old.id)
	suite.send(t, "CreateTableVersion", old.id, stale).fails(t, invalidInput)
	fresh.commit(t, 1, 1)
	suite.send(t, "CreateTableVersion", old.id, stale).fails(t, invalidInput)
}

// TestDeregister forgets the table and leaves every file.
func TestDeregister(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 1)
	got := suite.send(t, "DeregisterTable", tb.id, nil).ok(t)
	if got.str(t, "location") != tb.location || !cmp.Equal(got.strings(t, "id"), tb.id) {
		t.Errorf("answer %v, want the id %q and the location %s", got, tb.id, tb.location)
	}
	suite.send(t, "DeregisterTable", tb.id, nil).fails(t, tableNotFound)
	suite.send(t, "TableExists", tb.id, nil).fails(t, tableNotFound)
	if !exists(filepath.Join(tb.dir, "_versions", finalName(1))) {
		t.Error("deregistering removed the manifest of version 1")
	}
	suite.send(t, "RegisterTable", tb.id, obj{"location": tb.location}).ok(t)
	if got := tb.versions(t, ""); !cmp.Equal(got, []int64{1}) {
		t.Errorf("versions after registering again = %v, want 1", got)
	}
}

// TestRename: one row changes; location, versions and properties follow the table.
func TestRename(t *testing.T) {
	t.Parallel()
	setUp := func(t *testing.T) (ns []string, tb table) {
		t.Helper()
		ns = newNamespace(t)
		tb = declare(t, child(ns, "a"))
		tb.commit(t, 1, 2)
		suite.send(t, "CreateNamespace", child(ns, "other"), nil).ok(t)
		return ns, tb
	}
	moved := func(t *testing.T, tb table, to []string) {
		t.Helper()
		suite.send(t, "TableExists", tb.id, nil).fails(t, tableNotFound)
		tb.id = to
		if got := suite.send(t, "DescribeTable", to, nil).ok(t).str(t, "location"); got != tb.location {
			t.Errorf("location = %s, want it unchanged: %s", got, tb.location)
		}
		if got := tb.versions(t, ""); !cmp.Equal(got, []int64{2, 1}) {
			t.Errorf("versions = %v, want both", got)
		}
		tb.commit(t, 3, 3)
	}
	t.Run("stays in its namespace", func(t *testing.T) {
		t.Parallel()
		ns, tb := setUp(t)
		suite.send(t, "RenameTable", tb.id, obj{"new_table_name": "b"}).ok(t)
		moved(t, tb, child(ns, "b"))
	})
	for _, member := range []string{"new_namespace_id", "new_namespace"} {
		t.Run("by "+member, func(t *testing.T) {
			t.Parallel()
			ns, tb := setUp(t)
			suite.send(t, "RenameTable", tb.id, obj{"new_table_name": "b", member: child(ns, "other")}).ok(t)
			moved(t, tb, child(ns, "other", "b"))
		})
	}
	t.Run("to the root", func(t *testing.T) {
		t.Parallel()
		_, tb := setUp(t)
		to := []string{"wire_" + token()}
		suite.send(t, "RenameTable", tb.id, obj{"new_table_name": to[0], "new_namespace_id": list{}}).ok(t)
		moved(t, tb, to)
		suite.send(t, "DropTable", to, nil).ok(t)
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		ns, tb := setUp(t)
		declare(t, child(ns, "taken"))
		mentions(t, suite.send(t, "RenameTable", tb.id, obj{"new_table_name": "taken"}).fails(t, tableExists), "taken")
		suite.send(t, "RenameTable", tb.id, obj{"new_table_name": "b", "new_namespace_id": list{"absent_" + token()}}).fails(t, namespaceNotFound)
		suite.send(t, "RenameTable", tb.id, obj{"new_table_name": "b", "new_namespace_id": list{""}}).fails(t, invalidInput)
		suite.send(t, "RenameTable", tb.id, nil).fails(t, invalidInput)
		suite.send(t, "TableExists", tb.id, nil).empty(t)
	})
}

// TestRegister: an existing dataset inside an allowed root comes in with all its versions.
func TestRegister(t *testing.T) {
	t.Parallel()
	dir := existingDataset(t, 3)
	writeFile(t, filepath.Join(dir, "_versions", finalName(-5)), manifestBytes(manifestSpec{version: -5}))
	id := child(newNamespace(t), "t")
	got := suite.send(t, "RegisterTable", id, obj{"location": fileURI(dir), "properties": obj{"a": "b"}}).ok(t)
	if p := got.object(t, "properties"); p["a"] != "b" {
		t.Errorf("properties = %v, want those given", p)
	}
	tb := located(t, id, suite.send(t, "DescribeTable", id, nil).ok(t))
	if tb.dir != dir {
		t.Errorf("location = %s, want %s", tb.dir, dir)
	}
	if got := tb.versions(t, ""); !cmp.Equal(got, []int64{3, 2, 1}) {
		t.Errorf("versions = %v, want the three that were there and not the detached one", got)
	}
	tb.commit(t, 4, 4)
	t.Run("real manifests with names of version 1", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(filepath.Dir(dir), "existing_"+token()+".lance")
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		for v, name := range map[int64]string{1: "v1.manifest", 2: "v2.manifest"} {
			writeFile(t, filepath.Join(dir, "_versions", finalNameV1(v)), realManifest(t, name))
		}
		id := child(id[:1], "v1names")
		if p := suite.send(t, "RegisterTable", id, obj{"location": fileURI(dir)}).ok(t).object(t, "properties"); len(p) != 0 {
			t.Errorf("properties = %v, want {}", p)
		}
		tb := table{id: id, dir: dir, rel: strings.TrimPrefix(dir, "/")}
		if got := tb.versions(t, ""); !cmp.Equal(got, []int64{2, 1}) {
			t.Errorf("versions = %v, want 2 and 1", got)
		}
		path := tb.describeVersion(t, 1).ok(t).object(t, "version").str(t, "manifest_path")
		if want := tb.rel + "/_versions/1.manifest"; path != want {
			t.Errorf("manifest_path = %s, want %s", path, want)
		}
	})
}

// TestRegisterRefusals: no dataset there, a place outside the allowed roots, a place that is another table's, a name that is taken.
func TestRegisterRefusals(t *testing.T) {
	t.Parallel()
	dir := existingDataset(t, 1)
	ns := newNamespace(t)
	root := filepath.Dir(dir)
	empty := filepath.Join(root, "empty_"+token()+".lance")
	t.Cleanup(func() { _ = os.RemoveAll(empty) })
	writeFile(t, filepath.Join(empty, "data", "x.lance"), []byte("data"))
	outside := filepath.Join(t.TempDir(), "t.lance")
	writeFile(t, filepath.Join(outside, "_versions", finalName(1)), manifestBytes(manifestSpec{version: 1}))
	escape := root + "/../" + filepath.Base(filepath.Dir(dir)) + "/../../" + strings.TrimPrefix(outside, "/")
	for label, location := range map[string]any{
		"no dataset": fileURI(empty), "nothing there": fileURI(filepath.Join(root, "none_"+token())), "outside": fileURI(outside),
		"outside by dots": "file://" + escape, "root itself": fileURI(root), "another scheme": "s3://bucket/t.lance", "not a place": "::::",
		"a NUL": fileURI(dir) + "\x00", "empty": "", "a query": fileURI(dir) + "?x=1", "absent": nil,
	} {
		a := suite.send(t, "RegisterTable", child(ns, "t"), with(obj{}, obj{"location": location}))
		if a.code() != invalidInput {
			t.Errorf("%s: %s\n got %s\nwant code 13", label, a.call, a)
			continue
		}
		a.fails(t, invalidInput)
	}
	suite.send(t, "TableExists", child(ns, "t"), nil).fails(t, tableNotFound)
	suite.send(t, "RegisterTable", child(ns, "t"), obj{"location": fileURI(dir), "mode": "Merge"}).fails(t, invalidInput)
	suite.send(t, "RegisterTable", child(ns, "t"), obj{"location": fileURI(dir)}).ok(t)
	suite.send(t, "RegisterTable", child(ns, "t"), obj{"location": fileURI(existingDataset(t, 1))}).fails(t, tableExists)
	for label, location := range map[string]string{"same": fileURI(dir), "trailing slash": fileURI(dir) + "/", "doubled slash": fileURI(root + "//" + filepath.Base(dir)),
		"plain path": dir, "upper-case scheme": "FILE://" + dir, "inside": fileURI(dir + "/data"), "localhost": "file://localhost" + dir} {
		a := suite.send(t, "RegisterTable", child(ns, "second"), obj{"location": location})
		if a.status != http.StatusConflict && a.status != http.StatusBadRequest {
			t.Errorf("%s: %s\n got %s\nwant 409", label, a.call, a)
		}
		if label == "same" && a.status != http.StatusConflict {
			t.Errorf("%s: %s\n got %s\nwant 409", label, a.call, a)
		}
	}
	suite.send(t, "TableExists", child(ns, "second"), nil).fails(t, tableNotFound)
}

// TestDeclareAtALocation: a wanted location is honoured inside an allowed root or refused, never replaced in silence.
func TestDeclareAtALocation(t *testing.T) {
	t.Parallel()
	sibling := newTable(t)
	ns := sibling.id[:1]
	wanted := fileURI(filepath.Join(filepath.Dir(sibling.dir), "wanted_"+token()+".lance"))
	if a := suite.send(t, "DeclareTable", child(ns, "wanted"), obj{"location": wanted}); a.code() == success {
		if got := a.ok(t).str(t, "location"); got != wanted {
			t.Errorf("location = %s, want %s", got, wanted)
		}
	} else {
		a.fails(t, invalidInput)
	}
	for _, location := range []string{fileURI(t.TempDir()), "s3://elsewhere/t", sibling.location, sibling.location + "/", sibling.location + "/data", "../t.lance"} {
		a := suite.send(t, "DeclareTable", child(ns, "refused"), obj{"location": location})
		if a.code() != invalidInput && a.status != http.StatusConflict {
			t.Errorf("%s\n got %s\nwant 400 or 409", a.call, a)
		}
	}
	suite.send(t, "TableExists", child(ns, "refused"), nil).fails(t, tableNotFound)
}

// TestOneDeclareWins: of a hundred callers that declare one name at once exactly one succeeds and all others learn that it exists.
func TestOneDeclareWins(t *testing.T) {
	t.Parallel()
	id := child(newNamespace(t), "t")
	answers := make([]answer, 100)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() { answers[i] = suite.send(t, "DeclareTable", id, nil) })
	}
	group.Wait()
	count := map[string]int{}
	for _, a := range answers {
		count[fmt.Sprintf("status %d code %d", a.status, a.code())]++
	}
	want := map[string]int{"status 200 code -1": 1, "status 409 code 5": 99}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}
