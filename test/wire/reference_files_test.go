package wire_test

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeTag writes a tag file the way pylance does, behind the catalog's back (client contract, fact 65).
func (tb table) writeTag(t *testing.T, name string, version int64) {
	t.Helper()
	content := marshal(t, obj{"branch": nil, "version": version, "createdAt": "2026-08-01T00:00:00Z", "updatedAt": "2026-08-01T00:00:00Z",
		"manifestSize": 462, "metadata": obj{}})
	writeFile(t, filepath.Join(tb.dir, "_refs", "tags", name+".json"), content)
}

// writeBranch writes a branch's reference file the way pylance does (fact 66).
func (tb table) writeBranch(t *testing.T, name string, parentVersion int64) {
	t.Helper()
	content := marshal(t, obj{"parentBranch": nil, "identifier": obj{"version_mapping": list{list{parentVersion, strings.ReplaceAll(uuid4(), "-", "")}}},
		"parentVersion": parentVersion, "createAt": 1795959223, "manifestSize": 462, "metadata": obj{}})
	writeFile(t, filepath.Join(tb.dir, "_refs", "branches", url.PathEscape(name)+".json"), content)
}

// tags lists a table's tags.
func (tb table) tags(t *testing.T) obj {
	t.Helper()
	return suite.send(t, "ListTableTags", tb.id, nil).ok(t).object(t, "tags")
}

// TestTags: the five operations on one tag's life, stored where clients look for it.
func TestTags(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 3)
	suite.send(t, "CreateTableTag", tb.id, obj{"tag": "stable", "version": 1}).ok(t)
	file, err := os.ReadFile(filepath.Join(tb.dir, "_refs", "tags", "stable.json"))
	if err != nil {
		t.Fatalf("the tag is not where clients read it: %v", err)
	}
	var stored struct {
		Branch       *string
		Version      int64
		ManifestSize int64
	}
	if err := json.Unmarshal(file, &stored); err != nil || stored.Version != 1 || stored.Branch != nil || stored.ManifestSize <= 0 {
		t.Errorf("tag file %s (%v), want version 1 of main with its manifest's size", file, err)
	}
	version := func(tag string) int64 {
		t.Helper()
		return suite.send(t, "GetTableTagVersion", tb.id, obj{"tag": tag}).ok(t).num(t, "version")
	}
	if got := version("stable"); got != 1 {
		t.Errorf("stable = %d, want 1", got)
	}
	mentions(t, suite.send(t, "CreateTableTag", tb.id, obj{"tag": "stable", "version": 2}).fails(t, tagExists), "stable")
	suite.send(t, "UpdateTableTag", tb.id, obj{"tag": "stable", "version": 3}).ok(t)
	if got := version("stable"); got != 3 {
		t.Errorf("stable = %d, want 3", got)
	}
	contents := tb.tags(t).object(t, "stable")
	if contents.num(t, "version") != 3 || contents.num(t, "manifestSize") <= 0 {
		t.Errorf("listed as %v, want version 3 with its manifest's size", contents)
	}
	suite.send(t, "DeleteTableTag", tb.id, obj{"tag": "stable"}).ok(t)
	mentions(t, suite.send(t, "DeleteTableTag", tb.id, obj{"tag": "stable"}).fails(t, tagNotFound), "stable")
	suite.send(t, "GetTableTagVersion", tb.id, obj{"tag": "stable"}).fails(t, tagNotFound)
	if got := tb.tags(t); len(got) != 0 {
		t.Errorf("tags = %v, want none", got)
	}
}

// TestTagsThatClientsMade are seen at once.
func TestTagsThatClientsMade(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 2)
	tb.writeTag(t, "v1.0", 2)
	if got := suite.send(t, "GetTableTagVersion", tb.id, obj{"tag": "v1.0"}).ok(t).num(t, "version"); got != 2 {
		t.Errorf("version = %d, want 2", got)
	}
	if got := tb.tags(t).object(t, "v1.0").num(t, "version"); got != 2 {
		t.Errorf("listed version = %d, want 2", got)
	}
	suite.send(t, "CreateTableTag", tb.id, obj{"tag": "v1.0", "version": 1}).fails(t, tagExists)
	suite.send(t, "ListTableTags", tb.id, nil, method(get), noBody()).ok(t).object(t, "tags") // older clients
}

// TestTagRefusals: versions and tags that are not there, names that Lance forbids.
func TestTagRefusals(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 1)
	suite.send(t, "CreateTableTag", tb.id, obj{"tag": "x", "version": 9}).fails(t, versionNotFound)
	suite.send(t, "UpdateTableTag", tb.id, obj{"tag": "x", "version": 1}).fails(t, tagNotFound)
	suite.send(t, "CreateTableTag", tb.id, obj{"tag": "x", "version": 1}).ok(t)
	suite.send(t, "UpdateTableTag", tb.id, obj{"tag": "x", "version": 9}).fails(t, versionNotFound)
	for _, name := range []string{"", ".x", "x.", "a..b", "x.lock", "a/b", "../x", "a b", "é", "a\\b", "x\x00", "a%2Fb"} {
		for _, op := range []string{"CreateTableTag", "UpdateTableTag"} {
			suite.send(t, op, tb.id, obj{"tag": name, "version": 1}).fails(t, invalidInput)
		}
		for _, op := range []string{"GetTableTagVersion", "DeleteTableTag"} {
			suite.send(t, op, tb.id, obj{"tag": name}).failsWith(t, invalidInput, tagNotFound)
		}
	}
	for _, version := range []any{0, nil} {
		suite.send(t, "CreateTableTag", tb.id, with(obj{"tag": "y"}, obj{"version": version})).fails(t, invalidInput)
	}
	for _, op := range []string{"GetTableTagVersion", "CreateTableTag", "UpdateTableTag", "DeleteTableTag"} {
		suite.send(t, op, tb.id, obj{"version": 1}).fails(t, invalidInput)
	}
	if got := tb.tags(t); len(got) != 1 {
		t.Errorf("tags = %v, want x alone", got)
	}
}

// TestTagOnABranch points into the branch's chain.
func TestTagOnABranch(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 2)
	suite.send(t, "CreateTableVersion", tb.id, tb.stagedOn(t, "dev", 2)).ok(t)
	tb.writeBranch(t, "dev", 2)
	suite.send(t, "CreateTableVersion", tb.id, tb.stagedOn(t, "dev", 3)).ok(t)
	suite.send(t, "CreateTableTag", tb.id, obj{"tag": "ondev", "version": 3, "branch": "dev"}).ok(t)
	got := suite.send(t, "GetTableTagVersion", tb.id, obj{"tag": "ondev"}).ok(t)
	if got.num(t, "version") != 3 || got["branch"] != "dev" {
		t.Errorf("tag = %v, want version 3 of dev", got)
	}
	suite.send(t, "CreateTableTag", tb.id, obj{"tag": "onmain", "version": 3}).fails(t, versionNotFound)
}

// TestBranchesThatClientsMade are listed as their files say.
func TestBranchesThatClientsMade(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 2)
	for _, name := range []string{"dev", "feature/x"} {
		tb.writeBranch(t, name, 2)
	}
	branches := suite.send(t, "ListTableBranches", tb.id, nil).ok(t).object(t, "branches")
	for _, name := range []string{"dev", "feature/x"} {
		b := branches.object(t, name)
		got := []int64{b.num(t, "parentVersion"), b.num(t, "createAt"), b.num(t, "manifestSize")}
		if !cmp.Equal(got, []int64{2, 1795959223, 462}) {
			t.Errorf("branch %s = %v, want the facts of its file", name, b)
		}
	}
	if len(branches) != 2 {
		t.Errorf("branches = %v, want two", branches)
	}
}

// TestBrokenTagAndBranchFiles: a reference file that cannot be read is a state of the table that no retry mends; the error names it.
func TestBrokenTagAndBranchFiles(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 1)
	for _, kind := range []string{"tags", "branches"} {
		writeFile(t, filepath.Join(tb.dir, "_refs", kind, "broken.json"), []byte(`{"version":`))
	}
	for _, a := range []answer{
		suite.send(t, "GetTableTagVersion", tb.id, obj{"tag": "broken"}),
		suite.send(t, "CreateTableVersion", tb.id, tb.stagedOn(t, "broken", 1)),
		suite.send(t, "ListTableTags", tb.id, nil),
		suite.send(t, "ListTableBranches", tb.id, nil),
	} {
		mentions(t, a.fails(t, invalidTableState), "broken")
	}
	suite.send(t, "CreateTableVersion", tb.id, tb.stagedOn(t, "fine", 1)).ok(t)
	tb.commit(t, 2, 2)
}
