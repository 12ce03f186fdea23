package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// properties describes a namespace and returns its properties.
func properties(t *testing.T, id []string) obj {
	t.Helper()
	return suite.send(t, "DescribeNamespace", id, nil).ok(t).object(t, "properties")
}

// TestCreateNamespaceModes: Create refuses an existing one, ExistOk keeps it, Overwrite makes it anew; any case, either style.
func TestCreateNamespaceModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []any{nil, "Create", "create", "CREATE"} {
		ns := newNamespace(t)
		mentions(t, suite.send(t, "CreateNamespace", ns, with(obj{}, obj{"mode": mode})).fails(t, namespaceExists), ns[0])
	}
	for _, mode := range []string{"ExistOk", "exist_ok", "EXISTOK", "EXIST_OK", "existok", "Exist_Ok"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			ns := child(newNamespace(t), "x")
			suite.send(t, "CreateNamespace", ns, obj{"mode": mode, "properties": obj{"a": "first"}}).ok(t)
			got := suite.send(t, "CreateNamespace", ns, obj{"mode": mode, "properties": obj{"a": "second"}}).ok(t)
			if p := properties(t, ns); p["a"] != "first" || got.object(t, "properties")["a"] != "first" {
				t.Errorf("properties = %v, answered %v, want the first ones kept", p, got)
			}
		})
	}
	for _, mode := range []string{"Overwrite", "overwrite", "OVERWRITE"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			ns := child(newNamespace(t), "x")
			suite.send(t, "CreateNamespace", ns, obj{"properties": obj{"a": "first", "b": "gone"}}).ok(t)
			suite.send(t, "CreateNamespace", ns, obj{"mode": mode, "properties": obj{"a": "second"}}).ok(t)
			if diff := cmp.Diff(obj{"a": "second"}, properties(t, ns)); diff != "" {
				t.Errorf("properties (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("unknown mode", func(t *testing.T) {
		t.Parallel()
		id := []string{"wire_" + token()}
		for _, mode := range []string{"Append", "exist ok", "exist-ok", "x"} {
			mentions(t, suite.send(t, "CreateNamespace", id, obj{"mode": mode}).fails(t, invalidInput), mode)
		}
		suite.send(t, "NamespaceExists", id, nil).fails(t, namespaceNotFound)
	})
}

// TestNamespaceProperties: kept as given, {} where none were, strings only.
func TestNamespaceProperties(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	if got := properties(t, ns); len(got) != 0 {
		t.Errorf("properties = %v, want {}", got)
	}
	want := obj{"owner": "ann", "": "empty key", "日本": "語", "long": string(bigBody(4096))}
	id := child(ns, "with")
	answered := suite.send(t, "CreateNamespace", id, obj{"properties": want}).ok(t).object(t, "properties")
	for from, got := range map[string]obj{"create": answered, "describe": properties(t, id)} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: properties (-want +got):\n%s", from, diff)
		}
	}
	suite.send(t, "CreateNamespace", child(ns, "bad"), obj{"properties": obj{"n": 1}}).fails(t, invalidInput)
	suite.send(t, "NamespaceExists", child(ns, "bad"), nil).fails(t, namespaceNotFound)
}

// TestNestedNamespaces: any depth, each below a parent that exists; lists hold the names of direct children only.
func TestNestedNamespaces(t *testing.T) {
	t.Parallel()
	id := newNamespace(t)
	suite.send(t, "CreateNamespace", child(id, "no", "such"), nil).fails(t, namespaceNotFound)
	for range 12 {
		id = child(id, "deeper")
		suite.send(t, "CreateNamespace", id, nil).ok(t)
	}
	suite.send(t, "NamespaceExists", id, nil).empty(t)
	declare(t, child(id, "t"))
	parent := id[:len(id)-1]
	if got := suite.send(t, "ListNamespaces", parent, nil).ok(t).strings(t, "namespaces"); !cmp.Equal(got, []string{"deeper"}) {
		t.Errorf("namespaces = %q, want the leaf name", got)
	}
	if got := suite.send(t, "ListTables", parent, nil).ok(t).strings(t, "tables"); len(got) != 0 {
		t.Errorf("tables = %q, want none from deeper down", got)
	}
	if got := suite.send(t, "ListTables", id, nil).ok(t).strings(t, "tables"); !cmp.Equal(got, []string{"t"}) {
		t.Errorf("tables = %q, want t", got)
	}
}

// TestRootNamespace always exists, cannot be made or dropped.
func TestRootNamespace(t *testing.T) {
	t.Parallel()
	root := []string{}
	suite.send(t, "NamespaceExists", root, nil).empty(t)
	suite.send(t, "DescribeNamespace", root, nil).ok(t).object(t, "properties")
	suite.send(t, "CreateNamespace", root, nil).fails(t, namespaceExists)
	suite.send(t, "DropNamespace", root, obj{"behavior": "Cascade"}).fails(t, invalidInput)
	suite.send(t, "NamespaceExists", root, nil).empty(t)
	if p := suite.send(t, "CreateNamespace", root, obj{"mode": "ExistOk"}); p.status != 200 && p.code() != namespaceExists {
		t.Errorf("%s\n got %s\nwant success or code 2", p.call, p)
	}
}

// TestDropNamespace: Restrict (the default) refuses one with children, Cascade drops them; Fail (the default) refuses a missing
// one, Skip answers 200.
func TestDropNamespace(t *testing.T) {
	t.Parallel()
	full := func(t *testing.T) []string {
		t.Helper()
		ns := newNamespace(t)
		suite.send(t, "CreateNamespace", child(ns, "a"), nil).ok(t)
		suite.send(t, "CreateNamespace", child(ns, "a", "b"), nil).ok(t)
		declare(t, child(ns, "a", "b", "t"))
		declare(t, child(ns, "t"))
		return ns
	}
	for _, behavior := range []any{nil, "Restrict", "restrict", "RESTRICT"} {
		ns := full(t)
		mentions(t, suite.send(t, "DropNamespace", ns, with(obj{}, obj{"behavior": behavior})).fails(t, namespaceNotEmpty), ns[0])
		suite.send(t, "TableExists", child(ns, "a", "b", "t"), nil).empty(t)
	}
	for _, behavior := range []string{"Cascade", "cascade", "CASCADE"} {
		ns := full(t)
		suite.send(t, "DropNamespace", ns, obj{"behavior": behavior}).ok(t)
		suite.send(t, "NamespaceExists", ns, nil).fails(t, namespaceNotFound)
		suite.send(t, "TableExists", child(ns, "a", "b", "t"), nil).fails(t, namespaceNotFound)
		suite.send(t, "CreateNamespace", ns, nil).ok(t)
		if got := suite.send(t, "ListTables", ns, nil).ok(t).strings(t, "tables"); len(got) != 0 {
			t.Errorf("the new namespace has the old one's tables %q", got)
		}
	}
	missing := []string{"wire_" + token()}
	for _, mode := range []any{nil, "Fail", "fail", "FAIL"} {
		suite.send(t, "DropNamespace", missing, with(obj{}, obj{"mode": mode})).fails(t, namespaceNotFound)
	}
	for _, mode := range []string{"Skip", "skip", "SKIP"} {
		suite.send(t, "DropNamespace", missing, obj{"mode": mode}).ok(t)
	}
	ns := newNamespace(t)
	for _, body := range []obj{{"mode": "Ignore"}, {"behavior": "Force"}} {
		suite.send(t, "DropNamespace", ns, body).fails(t, invalidInput)
		suite.send(t, "NamespaceExists", ns, nil).empty(t)
	}
	empty := child(ns, "empty")
	suite.send(t, "CreateNamespace", empty, obj{"properties": obj{"k": "v"}}).ok(t)
	suite.send(t, "DropNamespace", empty, nil).ok(t)
	suite.send(t, "NamespaceExists", empty, nil).fails(t, namespaceNotFound)
}

// TestDroppedWhileListed: a namespace dropped during a walk fails only where it is asked for by itself.
func TestDroppedWhileListed(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	for _, name := range []string{"a", "b", "c"} {
		suite.send(t, "CreateNamespace", child(ns, name), nil).ok(t)
	}
	suite.send(t, "DropNamespace", child(ns, "b"), nil).ok(t)
	if got := suite.send(t, "ListNamespaces", ns, nil).ok(t).strings(t, "namespaces"); !cmp.Equal(got, []string{"a", "c"}) {
		t.Errorf("namespaces = %q, want a and c", got)
	}
	suite.send(t, "ListNamespaces", child(ns, "b"), nil).fails(t, namespaceNotFound)
	suite.send(t, "ListTables", child(ns, "b"), nil).fails(t, namespaceNotFound)
}

// TestNamesAreSharedAcrossKinds: a table and a namespace of one parent cannot have one name.
func TestNamesAreSharedAcrossKinds(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	suite.send(t, "CreateNamespace", child(ns, "space"), nil).ok(t)
	tb := declare(t, child(ns, "table"))
	suite.send(t, "DeclareTable", child(ns, "space"), nil).fails(t, tableExists)
	suite.send(t, "RegisterTable", child(ns, "space"), obj{"location": fileURI(existingDataset(t, 1))}).fails(t, tableExists)
	suite.send(t, "RenameTable", tb.id, obj{"new_table_name": "space"}).fails(t, tableExists)
	suite.send(t, "BatchCommitTables", nil, obj{"operations": list{obj{"declare_table": obj{"id": child(ns, "space")}}}}).fails(t, tableExists)
	for _, mode := range []string{"Create", "ExistOk", "Overwrite"} {
		suite.send(t, "CreateNamespace", tb.id, obj{"mode": mode}).fails(t, namespaceExists)
	}
	suite.send(t, "NamespaceExists", tb.id, nil).fails(t, namespaceNotFound)
	suite.send(t, "TableExists", child(ns, "space"), nil).fails(t, tableNotFound)
	suite.send(t, "CreateNamespace", child(tb.id, "below"), nil).fails(t, namespaceNotFound)
	suite.send(t, "DeclareTable", child(tb.id, "below"), nil).fails(t, namespaceNotFound)
	suite.send(t, "DropTable", tb.id, nil).ok(t)
	suite.send(t, "CreateNamespace", tb.id, nil).ok(t)
}
