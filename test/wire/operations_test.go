package wire_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// kind is what the id in an operation's path names.
type kind int

const (
	noID kind = iota
	namespaceID
	tableID
	transactionID
)

// operation is one row of the specification: how it is called, and which error codes this suite must see from it.
type operation struct {
	name   string
	method string
	path   string // "{id}" and "{index_name}" stand for one segment each
	kind   kind
	json   bool // takes a JSON body
	arrow  bool // takes an Arrow stream
	// bareMap: the JSON body is a map of the caller's own keys, so it carries no id.
	bareMap bool
	// engine: made by the Lance library in a worker. A catalog without workers answers 406 with code 0.
	engine bool
	// sample is a body without the id that is valid in shape.
	sample obj
	// wrong holds, for each member, a value of a wrong type.
	wrong obj
	// codes are the error codes that the tests of this package must have seen from the operation at the end of a complete run.
	codes []int
}

const post, get = http.MethodPost, http.MethodGet

// operations is the whole specification, 54 rows.
func operations() []operation {
	return append(catalogOperations(), engineOperations()...)
}

// catalogOperations are those that the catalog performs by itself.
func catalogOperations() []operation {
	return slices.Concat(namespaceOperations(), tableOperations(), versionOperations(), referenceOperations(), metadataOperations())
}

func namespaceOperations() []operation {
	return []operation{
		{name: "CreateNamespace", method: post, path: "/v1/namespace/{id}/create", kind: namespaceID, json: true,
			sample: obj{"mode": "Create"}, wrong: obj{"mode": 1, "properties": list{}},
			codes: []int{namespaceNotFound, namespaceExists, invalidInput}},
		{name: "ListNamespaces", method: get, path: "/v1/namespace/{id}/list", kind: namespaceID,
			codes: []int{namespaceNotFound, invalidInput}},
		{name: "DescribeNamespace", method: post, path: "/v1/namespace/{id}/describe", kind: namespaceID, json: true,
			codes: []int{namespaceNotFound, invalidInput}},
		{name: "DropNamespace", method: post, path: "/v1/namespace/{id}/drop", kind: namespaceID, json: true,
			wrong: obj{"mode": true, "behavior": obj{}},
			codes: []int{namespaceNotFound, namespaceNotEmpty, invalidInput}},
		{name: "NamespaceExists", method: post, path: "/v1/namespace/{id}/exists", kind: namespaceID, json: true,
			codes: []int{namespaceNotFound, invalidInput}},
	}
}

func tableOperations() []operation {
	missing := []int{namespaceNotFound, tableNotFound, invalidInput}
	return []operation{
		{name: "ListTables", method: get, path: "/v1/namespace/{id}/table/list", kind: namespaceID,
			codes: []int{namespaceNotFound, invalidInput}},
		{name: "ListAllTables", method: get, path: "/v1/table", codes: []int{invalidInput}},
		{name: "RegisterTable", method: post, path: "/v1/table/{id}/register", kind: tableID, json: true,
			sample: obj{"location": "nothing_there.lance"}, wrong: obj{"location": 1, "mode": 1, "properties": "x"},
			codes: []int{namespaceNotFound, tableExists, invalidInput}},
		{name: "DeclareTable", method: post, path: "/v1/table/{id}/declare", kind: tableID, json: true,
			wrong: obj{"location": list{}, "vend_credentials": "yes", "properties": obj{"a": 1}},
			codes: []int{namespaceNotFound, tableExists, invalidInput}},
		{name: "DescribeTable", method: post, path: "/v1/table/{id}/describe", kind: tableID, json: true,
			wrong: obj{"version": "1", "check_declared": "true", "tag": 1, "branch": list{}},
			codes: missing},
		{name: "TableExists", method: post, path: "/v1/table/{id}/exists", kind: tableID, json: true,
			wrong: obj{"version": 1.5}, codes: missing},
		{name: "DropTable", method: post, path: "/v1/table/{id}/drop", kind: tableID, codes: missing},
		{name: "DeregisterTable", method: post, path: "/v1/table/{id}/deregister", kind: tableID, json: true, codes: missing},
		{name: "RenameTable", method: post, path: "/v1/table/{id}/rename", kind: tableID, json: true,
			sample: obj{"new_table_name": "other"}, wrong: obj{"new_table_name": 7, "new_namespace_id": "a"},
			codes: append([]int{tableExists}, missing...)},
	}
}

func versionOperations() []operation {
	missing := []int{namespaceNotFound, tableNotFound, invalidInput}
	return []operation{
		{name: "ListTableVersions", method: post, path: "/v1/table/{id}/version/list", kind: tableID, codes: missing},
		{name: "CreateTableVersion", method: post, path: "/v1/table/{id}/version/create", kind: tableID, json: true,
			sample: obj{"version": 1, "manifest_path": "a/_versions/" + finalName(1) + "-x"},
			wrong:  obj{"version": "1", "manifest_path": 1, "manifest_size": "9", "metadata": obj{"a": 1}, "naming_scheme": 2, "branch": 1},
			codes:  append([]int{conflict, invalidTableState}, missing...)},
		{name: "DescribeTableVersion", method: post, path: "/v1/table/{id}/version/describe", kind: tableID, json: true,
			sample: obj{"version": 1}, wrong: obj{"version": "1", "branch": list{}},
			codes: append([]int{versionNotFound}, missing...)},
		{name: "BatchDeleteTableVersions", method: post, path: "/v1/table/{id}/version/delete", kind: tableID, json: true,
			sample: obj{"ranges": list{obj{"start_version": 1, "end_version": 2}}}, wrong: obj{"ranges": obj{}, "branch": 1},
			codes: missing},
		{name: "BatchCreateTableVersions", method: post, path: "/v1/table/version/batch-create", json: true,
			sample: obj{"entries": list{}}, wrong: obj{"entries": obj{}},
			codes: append([]int{conflict, invalidTableState}, missing...)},
		{name: "BatchCommitTables", method: post, path: "/v1/table/batch-commit", json: true,
			sample: obj{"operations": list{}}, wrong: obj{"operations": "none"},
			codes: append([]int{tableExists, conflict}, missing...)},
		{name: "DescribeTransaction", method: post, path: "/v1/transaction/{id}/describe", kind: transactionID, json: true,
			codes: []int{transactionNotFound, invalidInput}},
		{name: "AlterTransaction", method: post, path: "/v1/transaction/{id}/alter", kind: transactionID, json: true,
			sample: obj{"actions": list{obj{"setStatusAction": obj{"status": "Canceled"}}}}, wrong: obj{"actions": obj{}},
			codes: []int{transactionNotFound, invalidInput, conflict}},
	}
}

// referenceOperations are those on tags and branches, which live in a table's _refs directory.
func referenceOperations() []operation {
	missing := []int{namespaceNotFound, tableNotFound, invalidInput}
	tag := obj{"tag": "stable"}
	target := obj{"tag": "stable", "version": 1}
	return []operation{
		{name: "ListTableTags", method: post, path: "/v1/table/{id}/tags/list", kind: tableID, codes: missing},
		{name: "GetTableTagVersion", method: post, path: "/v1/table/{id}/tags/version", kind: tableID, json: true,
			sample: tag, wrong: obj{"tag": 1}, codes: append([]int{tagNotFound}, missing...)},
		{name: "CreateTableTag", method: post, path: "/v1/table/{id}/tags/create", kind: tableID, json: true,
			sample: target, wrong: obj{"tag": 1, "version": "1", "branch": 1}, codes: append([]int{tagExists, versionNotFound}, missing...)},
		{name: "UpdateTableTag", method: post, path: "/v1/table/{id}/tags/update", kind: tableID, json: true,
			sample: target, wrong: obj{"tag": 1, "version": "1", "branch": 1}, codes: append([]int{tagNotFound, versionNotFound}, missing...)},
		{name: "DeleteTableTag", method: post, path: "/v1/table/{id}/tags/delete", kind: tableID, json: true,
			sample: tag, wrong: obj{"tag": list{}}, codes: append([]int{tagNotFound}, missing...)},
		{name: "ListTableBranches", method: post, path: "/v1/table/{id}/branches/list", kind: tableID, codes: missing},
	}
}

// metadataOperations are answered from manifests.
func metadataOperations() []operation {
	missing := []int{namespaceNotFound, tableNotFound, invalidInput}
	at := obj{"version": "1", "branch": list{}}
	return []operation{
		{name: "GetTableStats", method: post, path: "/v1/table/{id}/stats", kind: tableID, json: true,
			wrong: obj{"branch": list{}}, codes: append([]int{branchNotFound}, missing...)},
		{name: "CountTableRows", method: post, path: "/v1/table/{id}/count_rows", kind: tableID, json: true,
			wrong: at, codes: append([]int{unsupported, versionNotFound, branchNotFound}, missing...)},
		{name: "ListTableIndices", method: post, path: "/v1/table/{id}/index/list", kind: tableID, json: true,
			wrong: at, codes: append([]int{versionNotFound, branchNotFound}, missing...)},
		{name: "DescribeTableIndexStats", method: post, path: "/v1/table/{id}/index/{index_name}/stats", kind: tableID, json: true,
			wrong: at, codes: append([]int{indexNotFound, versionNotFound, branchNotFound}, missing...)},
	}
}

// engineOperations need the Lance library; without a worker they are not offered.
func engineOperations() []operation {
	search := obj{"k": 1, "vector": obj{}}
	index := obj{"column": "id", "index_type": "BTREE"}
	view := obj{"kind": "query", "source_query": "q", "output_schema": "s"}
	row := func(name, path string, sample obj) operation {
		return operation{name: name, method: post, path: path, kind: tableID, json: true, engine: true, sample: sample, codes: []int{unsupported}}
	}
	bodiless := row("DropTableIndex", "/v1/table/{id}/index/{index_name}/drop", nil)
	bodiless.json = false
	stream := func(name, path string) operation {
		o := row(name, path, nil)
		o.json, o.arrow = false, true
		return o
	}
	bare := row("UpdateTableSchemaMetadata", "/v1/table/{id}/schema_metadata/update", obj{"a": "b"})
	bare.bareMap = true
	return []operation{
		row("RestoreTable", "/v1/table/{id}/restore", obj{"version": 1}),
		bare,
		row("AlterTableAlterColumns", "/v1/table/{id}/alter_columns", obj{"alterations": list{obj{"path": "id", "rename": "key"}}}),
		row("UpdateFieldMetadata", "/v1/table/{id}/update_field_metadata", obj{"updates": list{obj{"path": "id", "metadata": obj{"a": "b"}}}}),
		row("AlterTableDropColumns", "/v1/table/{id}/drop_columns", obj{"columns": list{"id"}}),
		stream("InsertIntoTable", "/v1/table/{id}/insert"),
		stream("MergeInsertIntoTable", "/v1/table/{id}/merge_insert"),
		row("UpdateTable", "/v1/table/{id}/update", obj{"updates": list{list{"id", "id + 1"}}}),
		row("DeleteFromTable", "/v1/table/{id}/delete", obj{"predicate": "id = 1"}),
		row("QueryTable", "/v1/table/{id}/query", search),
		stream("CreateTable", "/v1/table/{id}/create"),
		row("ExplainTableQueryPlan", "/v1/table/{id}/explain_plan", obj{"query": search}),
		row("AnalyzeTableQueryPlan", "/v1/table/{id}/analyze_plan", search),
		row("AlterTableAddColumns", "/v1/table/{id}/add_columns", obj{"new_columns": list{obj{"name": "twice", "expression": "id * 2"}}}),
		row("AlterTableBackfillColumns", "/v1/table/{id}/backfill_column", obj{"column": "id"}),
		row("RefreshMaterializedView", "/v1/materialized_view/{id}/refresh", nil),
		row("CreateMaterializedView", "/v1/materialized_view/{id}/create", view),
		row("CreateTableIndex", "/v1/table/{id}/create_index", index),
		row("CreateTableScalarIndex", "/v1/table/{id}/create_scalar_index", index),
		bodiless,
		row("CreateTableBranch", "/v1/table/{id}/branches/create", obj{"name": "dev"}),
		row("DeleteTableBranch", "/v1/table/{id}/branches/delete", obj{"name": "dev"}),
	}
}

// operationNamed finds a row of the table.
func operationNamed(t *testing.T, name string) operation {
	t.Helper()
	for _, op := range operations() {
		if op.name == name {
			return op
		}
	}
	t.Fatalf("no operation %q in the table", name)
	return operation{}
}

// pathFor fills the path with an id joined by the default delimiter and encoded as the namespace client encodes it; the
// empty id is the root.
func (op operation) pathFor(id []string) string {
	joined := "$"
	if len(id) > 0 {
		joined = strings.Join(id, "$")
	}
	p := strings.ReplaceAll(op.path, "{id}", url.QueryEscape(joined))
	return strings.ReplaceAll(p, "{index_name}", "id_idx")
}

// absentID is a well-formed id of the operation's kind that names nothing, below a namespace that does not exist either.
func (op operation) absentID() []string {
	switch op.kind {
	case namespaceID, tableID:
		return []string{"absent_" + token(), "x"}
	case transactionID:
		return []string{uuid4()}
	}
	return nil
}

// absentCode is what an operation of the catalog answers for absentID: a missing namespace is named before a missing table.
func (op operation) absentCode() int {
	switch op.kind {
	case transactionID:
		return transactionNotFound
	case noID:
		if op.method == get {
			return success
		}
		return invalidInput // an empty batch
	}
	return namespaceNotFound
}

// TestSpecificationHas54Operations holds the table to the number in the specification and to the document that the server
// publishes about itself, both ways.
func TestSpecificationHas54Operations(t *testing.T) {
	t.Parallel()
	if got := len(operations()); got != 54 {
		t.Fatalf("the table has %d operations, want 54", got)
	}
	doc := suite.do(t, call{method: get, path: "/openapi.json"}).ok(t)
	if v := doc.str(t, "openapi"); !strings.HasPrefix(v, "3.1") {
		t.Errorf("openapi = %q, want 3.1.x", v)
	}
	published := map[string]string{}
	for p, item := range doc.object(t, "paths") {
		for verb, detail := range asObject(t, item) {
			if o, ok := detail.(map[string]any); ok && strings.HasPrefix(p, "/v1/") {
				name, _ := o["operationId"].(string)
				published[name] = strings.ToUpper(verb) + " " + p
			}
		}
	}
	for _, op := range operations() {
		if got, want := published[op.name], op.method+" "+op.path; got != want {
			t.Errorf("openapi.json has %q for %s, want %q", got, op.name, want)
		}
		delete(published, op.name)
	}
	for name, route := range published {
		t.Errorf("openapi.json has an operation %q at %s that the specification does not know", name, route)
	}
}

// TestEngineOperations: without an engine they are refused with 406 and code 0, and say in a sentence what is missing.
// Never 404, which some clients read as "no such table" (client contract, trap T30).
func TestEngineOperations(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 1)
	for _, op := range engineOperations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			said := suite.send(t, op.name, tb.id, op.sample).fails(t, unsupported)
			if len(strings.Fields(said)) < 5 {
				t.Errorf("%q does not say what the operation needs", said)
			}
		})
	}
	t.Run("CountTableRows with a predicate", func(t *testing.T) {
		t.Parallel()
		suite.send(t, "CountTableRows", tb.id, obj{"predicate": "id = 1"}).fails(t, unsupported)
	})
}
