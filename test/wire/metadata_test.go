package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// realTable returns a table with the three versions that pylance wrote: 3 rows, 3 more, and two of the six deleted. Their data files are not
// there, and nothing that is told of the table needs them.
func realTable(t *testing.T) table {
	t.Helper()
	tb := newTable(t)
	for v := int64(1); v <= 3; v++ {
		staged := tb.stage(t, "", finalName(v), realManifest(t, fmt.Sprintf("v%d.manifest", v)))
		suite.send(t, "CreateTableVersion", tb.id, obj{"version": v, "manifest_path": staged}).ok(t)
	}
	return tb
}

// TestDetailedDescription reads the schema, the counts and the version out of real manifests, at any version.
func TestDetailedDescription(t *testing.T) {
	t.Parallel()
	tb := realTable(t)
	suite.send(t, "CreateTableTag", tb.id, obj{"tag": "second", "version": 2}).ok(t)
	column := func(name, kind string) any {
		return map[string]any{"name": name, "nullable": true, "type": map[string]any{"type": kind}}
	}
	for _, tc := range []struct {
		ask               obj
		version           int64
		rows              string
		fragments, erased int64
	}{
		{nil, 3, "4", 2, 2}, {obj{"version": 1}, 1, "3", 1, 0}, {obj{"tag": "second"}, 2, "6", 2, 0}, {obj{"branch": "main"}, 3, "4", 2, 2},
	} {
		got := suite.send(t, "DescribeTable", tb.id, with(tc.ask, obj{"load_detailed_metadata": true})).ok(t)
		if v := got.num(t, "version"); v != tc.version {
			t.Errorf("%v: version %d, want %d", tc.ask, v, tc.version)
		}
		if diff := cmp.Diff([]any{column("id", "int64"), column("name", "utf8")}, got.object(t, "schema").items(t, "fields")); diff != "" {
			t.Errorf("%v: fields (-want +got):\n%s", tc.ask, diff)
		}
		stats := got.object(t, "stats")
		if f, d := stats.num(t, "num_fragments"), stats.num(t, "num_deleted_rows"); f != tc.fragments || d != tc.erased {
			t.Errorf("%v: %d fragments and %d deleted rows, want %d and %d", tc.ask, f, d, tc.fragments, tc.erased)
		}
		if rows := got.object(t, "metadata").str(t, "total_rows"); rows != tc.rows {
			t.Errorf("%v: %s rows, want %s", tc.ask, rows, tc.rows)
		}
		if got["context"] != nil {
			t.Errorf("%v: a note %v although nothing is left out", tc.ask, got["context"])
		}
	}
	plain := suite.send(t, "DescribeTable", tb.id, nil).ok(t)
	for _, member := range []string{"schema", "stats", "metadata", "version"} {
		if plain[member] != nil {
			t.Errorf("a plain description has %s %v", member, plain[member])
		}
	}
}

// TestDescriptionForTheSDK: LanceDB's remote SDK asks for nothing and gets the version and the schema in Lance's names, or learns that there
// is no such table to open (client contract, facts 91 and 92).
func TestDescriptionForTheSDK(t *testing.T) {
	t.Parallel()
	tb := realTable(t)
	sdk := header("User-Agent", "LanceDB-Python-Client/0.40.0")
	for name, opts := range map[string][]option{"without a body": {noBody()}, "with a version": {rawBody(`{"version":null}`)}} {
		got := suite.send(t, "DescribeTable", tb.id, nil, append(opts, sdk, query(""))...).ok(t)
		if got.num(t, "version") != 3 {
			t.Errorf("%s: version %v, want 3", name, got["version"])
		}
		fields := got.object(t, "schema").items(t, "fields")
		if kind := asObject(t, fields[1]).object(t, "type").str(t, "type"); kind != "string" {
			t.Errorf("%s: the type of name is %q, want string", name, kind)
		}
	}
	said := suite.send(t, "DescribeTable", newTable(t).id, nil, sdk, query("")).fails(t, tableNotFound)
	mentions(t, said, "only declared")
}

// TestCounts counts rows, fragments and indices without reading data.
func TestCounts(t *testing.T) {
	t.Parallel()
	tb := realTable(t)
	for body, want := range map[string]string{`{}`: "4", `{"version":1}`: "3", `{"version":2}`: "6", `{"branch":"main"}`: "4"} {
		if a := suite.send(t, "CountTableRows", tb.id, nil, rawBody(body)); strings.TrimSpace(string(a.body)) != want || a.status != 200 {
			t.Errorf("count of %s: %s, want %s", body, a, want)
		}
	}
	if a := suite.send(t, "CountTableRows", tb.id, nil, method(get), noBody()); strings.TrimSpace(string(a.body)) != "4" {
		t.Errorf("count by GET, as older clients send it: %s, want 4", a)
	}
	got := suite.send(t, "GetTableStats", tb.id, nil).ok(t)
	if got.num(t, "num_rows") != 4 || got.num(t, "num_indices") != 0 || got.num(t, "total_bytes") == 0 {
		t.Errorf("stats %v", got)
	}
	fragments := got.object(t, "fragment_stats")
	lengths := fragments.object(t, "lengths")
	if fragments.num(t, "num_fragments") != 2 || fragments.num(t, "num_small_fragments") != 2 || lengths.num(t, "max") != 3 || lengths.num(t, "min") != 3 {
		t.Errorf("fragment stats %v", fragments)
	}
	if n := len(suite.send(t, "ListTableIndices", tb.id, nil).ok(t).items(t, "indexes")); n != 0 {
		t.Errorf("%d indices, want none", n)
	}
	empty := newTable(t)
	if a := suite.send(t, "CountTableRows", empty.id, nil); strings.TrimSpace(string(a.body)) != "0" {
		t.Errorf("count of a declared table: %s, want 0", a)
	}
	suite.send(t, "GetTableStats", empty.id, nil).ok(t)
}

// TestIndices lists an index that pylance made, and what it covers.
func TestIndices(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 2)
	staged := tb.stage(t, "", finalName(3), realManifest(t, "index.manifest"))
	suite.send(t, "CreateTableVersion", tb.id, obj{"version": 3, "manifest_path": staged}).ok(t)
	list := suite.send(t, "ListTableIndices", tb.id, nil).ok(t).items(t, "indexes")
	if len(list) != 1 {
		t.Fatalf("indices %v, want one", list)
	}
	x := asObject(t, list[0])
	if x.str(t, "index_name") != "id_idx" || x.str(t, "index_type") != "BTree" || x.strings(t, "columns")[0] != "id" || x.str(t, "status") == "" {
		t.Errorf("index %v", x)
	}
	stats := suite.send(t, "DescribeTableIndexStats", tb.id, nil).ok(t)
	for _, got := range []obj{x, stats} {
		if got.num(t, "num_indexed_rows") != 300 || got.num(t, "num_unindexed_rows") != 10 {
			t.Errorf("%v, want 300 rows in the index and 10 that it lacks", got)
		}
	}
	if n := len(suite.send(t, "ListTableIndices", tb.id, obj{"version": 2}).ok(t).items(t, "indexes")); n != 0 {
		t.Errorf("%d indices of version 2, want none", n)
	}
}

// TestVersionsShowTheirNumbers: lists and descriptions of versions have the numbers that pylance shows with them, and what the writer gave.
func TestVersionsShowTheirNumbers(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	staged := tb.stage(t, "", finalName(1), realManifest(t, "v1.manifest"))
	given := obj{"job": "nightly", "total_rows": "many"}
	suite.send(t, "CreateTableVersion", tb.id, obj{"version": 1, "manifest_path": staged, "metadata": given}).ok(t)
	want := obj{
		"job": "nightly", "total_rows": "many", "total_fragments": "1", "total_data_files": "1", "total_data_file_rows": "3",
		"total_deletion_files": "0", "total_deletion_file_rows": "0",
	}
	for name, version := range map[string]obj{
		"answered":  suite.send(t, "CreateTableVersion", tb.id, obj{"version": 1, "manifest_path": staged, "metadata": given}).ok(t).object(t, "version"),
		"described": tb.describeVersion(t, 1).ok(t).object(t, "version"),
		"listed":    asObject(t, suite.send(t, "ListTableVersions", tb.id, nil).ok(t).items(t, "versions")[0]),
	} {
		got := version.object(t, "metadata")
		delete(got, "total_files_size")
		if diff := cmp.Diff(map[string]any(want), map[string]any(got)); diff != "" {
			t.Errorf("metadata as %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestUnknownFeatures: a manifest with reader flags that this server does not know is described without what they may change, and a sentence
// says so; nothing is counted.
func TestUnknownFeatures(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	content := manifestBytes(manifestSpec{version: 1, readerFlags: 1 << 40})
	suite.send(t, "CreateTableVersion", tb.id, obj{"version": 1, "manifest_path": tb.stage(t, "", finalName(1), content)}).ok(t)
	got := suite.send(t, "DescribeTable", tb.id, obj{"load_detailed_metadata": true}).ok(t)
	if got.num(t, "version") != 1 || got["schema"] != nil || got["stats"] != nil || got["metadata"] != nil {
		t.Errorf("described as %v", got)
	}
	mentions(t, got.object(t, "context").str(t, "note"), "bits 40")
	for _, op := range []string{"CountTableRows", "GetTableStats", "ListTableIndices", "DescribeTableIndexStats"} {
		mentions(t, suite.send(t, op, tb.id, nil).fails(t, unsupported), "bits 40")
	}
	if m := tb.describeVersion(t, 1).ok(t).object(t, "version").object(t, "metadata"); m["total_rows"] != nil {
		t.Errorf("the version is shown with %v", m)
	}
}

// TestMetadataOfNothing: what is not there is said with its own code.
func TestMetadataOfNothing(t *testing.T) {
	t.Parallel()
	tb := realTable(t)
	for _, op := range []string{"CountTableRows", "ListTableIndices", "DescribeTableIndexStats"} {
		suite.send(t, op, tb.id, obj{"version": 9}).fails(t, versionNotFound)
	}
	for _, op := range []string{"CountTableRows", "GetTableStats", "ListTableIndices", "DescribeTableIndexStats"} {
		mentions(t, suite.send(t, op, tb.id, obj{"branch": "nowhere"}).fails(t, branchNotFound), "nowhere")
	}
	mentions(t, suite.send(t, "DescribeTableIndexStats", tb.id, nil).fails(t, indexNotFound), "has no index")
}

// TestChangesOfATable: the transactions that a writer noted in the manifests of a table, by version and by uuid.
func TestChangesOfATable(t *testing.T) {
	t.Parallel()
	tb := realTable(t)
	of := func(name string) []string { return child(tb.id, name) }
	for version, operation := range map[string]string{"1": "Overwrite", "2": "Append", "3": "Delete"} {
		got := suite.send(t, "DescribeTransaction", of(version), nil).ok(t)
		p := got.object(t, "properties")
		if got.str(t, "status") != "Succeeded" || p.str(t, "operation") != operation || p.str(t, "version") != version {
			t.Errorf("version %s: %v, want operation %s", version, got, operation)
		}
		again := suite.send(t, "DescribeTransaction", of(strings.ToUpper(p.str(t, "uuid"))), nil).ok(t)
		if diff := cmp.Diff(map[string]any(got), map[string]any(again)); diff != "" {
			t.Errorf("version %s by its uuid (-by number +by uuid):\n%s", version, diff)
		}
		suite.send(t, "DescribeTransaction", []string{p.str(t, "transaction_id")}, nil).ok(t)
	}
	for _, name := range []string{"0", "4", "-1", "x", uuid4()} {
		suite.send(t, "DescribeTransaction", of(name), nil).fails(t, transactionNotFound)
	}
	suite.send(t, "DescribeTransaction", child(newTable(t).id, "1"), nil).fails(t, transactionNotFound)
	suite.send(t, "DescribeTransaction", append(newNamespace(t), "t", "1"), nil).fails(t, transactionNotFound)

	actions := func(list ...any) obj { return obj{"actions": list} }
	set := func(key, value string) any {
		return obj{"setPropertyAction": obj{"key": key, "value": value, "mode": "Fail"}}
	}
	suite.send(t, "AlterTransaction", of("2"), actions(set("reviewed", "yes"), obj{"setStatusAction": obj{"status": "Canceled"}})).ok(t)
	suite.send(t, "AlterTransaction", of("2"), actions(set("reviewed", "no"))).fails(t, conflict)
	suite.send(t, "AlterTransaction", of("2"), actions(set("more", "x"), set("operation", "none"))).fails(t, invalidInput)
	suite.send(t, "AlterTransaction", of("9"), actions(set("more", "x"))).fails(t, transactionNotFound)
	got := suite.send(t, "DescribeTransaction", of("2"), nil).ok(t)
	if p := got.object(t, "properties"); got.str(t, "status") != "Canceled" || p["reviewed"] != "yes" || p["more"] != nil || p["operation"] != "Append" {
		t.Errorf("after the changes: %v", got)
	}
	if other := suite.send(t, "DescribeTransaction", of("3"), nil).ok(t); other.str(t, "status") != "Succeeded" {
		t.Errorf("another change became %v", other)
	}
}

// given returns the metadata of a version without the numbers that the server adds.
func given(metadata obj) obj {
	kept := obj{}
	for key, value := range metadata {
		if !strings.HasPrefix(key, "total_") {
			kept[key] = value
		}
	}
	return kept
}
