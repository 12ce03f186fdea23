package wire_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// detached is the number of a detached version as it travels: a u64 with its top bit set, read as int64 (client contract, fact 63).
func detached(n uint64) int64 { return int64(n | 1<<63) }

// TestFirstCommitOfABranch arrives before its reference file, with the number of the version that it forks from (fact 66).
func TestFirstCommitOfABranch(t *testing.T) {
	t.Parallel()
	for _, branch := range []string{"dev", "feature/x", "a.b-c_1"} {
		t.Run(branch, func(t *testing.T) {
			t.Parallel()
			tb := newTable(t)
			tb.commit(t, 1, 3)
			a := suite.send(t, "ListTableVersions", tb.id, nil, andQuery("limit=1&descending=true&branch="+url.QueryEscape(branch)))
			if a.code() != branchNotFound && a.code() != tableNotFound {
				if got := numbers(t, a.ok(t)); len(got) != 0 {
					t.Errorf("versions of an unknown branch = %v", got)
				}
			}
			got := suite.send(t, "CreateTableVersion", tb.id, tb.stagedOn(t, branch, 2)).ok(t).object(t, "version")
			if path, want := got.str(t, "manifest_path"), tb.rel+"/tree/"+branch+"/_versions/"+finalName(2); path != want {
				t.Errorf("manifest_path = %s, want %s", path, want)
			}
			described := suite.send(t, "DescribeTableVersion", tb.id, obj{"version": 2, "branch": branch}).ok(t).object(t, "version")
			if diff := cmp.Diff(got, described); diff != "" {
				t.Errorf("describe (-create +describe):\n%s", diff)
			}
			tb.writeBranch(t, branch, 2)
			suite.send(t, "CreateTableVersion", tb.id, tb.stagedOn(t, branch, 3)).ok(t)
			suite.send(t, "CreateTableVersion", tb.id, tb.stagedOn(t, branch, 9)).fails(t, conflict)
			if got := tb.versions(t, branch); !cmp.Equal(got, []int64{3, 2}) {
				t.Errorf("versions of the branch = %v, want 3 and 2", got)
			}
			if got := tb.versions(t, ""); !cmp.Equal(got, []int64{3, 2, 1}) {
				t.Errorf("versions of main = %v, want 3, 2, 1", got)
			}
			if main := tb.describeVersion(t, 3).ok(t).object(t, "version").str(t, "manifest_path"); strings.Contains(main, "/tree/") {
				t.Errorf("main's version 3 is at %s", main)
			}
		})
	}
}

// TestBranchWithItsFile starts at the version that the file names, or the one after.
func TestBranchWithItsFile(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 3)
	tb.writeBranch(t, "dev", 2)
	for _, wrong := range []int64{1, 4} {
		suite.send(t, "CreateTableVersion", tb.id, tb.stagedOn(t, "dev", wrong)).fails(t, conflict)
	}
	suite.send(t, "CreateTableVersion", tb.id, tb.stagedOn(t, "dev", 2)).ok(t)
}

// TestDeletedBranch: a chain that has versions and no reference file is what a deleted branch leaves; nothing is added to it.
func TestDeletedBranch(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 2)
	suite.send(t, "CreateTableVersion", tb.id, tb.stagedOn(t, "dev", 2)).ok(t)
	mentions(t, suite.send(t, "CreateTableVersion", tb.id, tb.stagedOn(t, "dev", 3)).fails(t, branchNotFound), "dev")
}

// TestBranchNames: what Lance forbids is refused; absent, "" and "main" are main.
func TestBranchNames(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	for v, branch := range []any{nil, "", "main"} {
		body := with(tb.staged(t, int64(v)+1), obj{})
		if branch != nil {
			body["branch"] = branch
		}
		suite.send(t, "CreateTableVersion", tb.id, body).ok(t)
	}
	if got := numbers(t, suite.send(t, "ListTableVersions", tb.id, nil, andQuery("branch=main")).ok(t)); len(got) != 3 {
		t.Errorf("versions of main = %v, want three", got)
	}
	for _, branch := range []string{"..", "../x", "a/../b", "/a", "a/", "a//b", "a b", "x.lock", "a\\b", "a\x00"} {
		body := obj{"version": 1, "branch": branch, "manifest_path": tb.rel + "/tree/" + branch + "/_versions/" + finalName(1) + "-" + uuid4()}
		suite.send(t, "CreateTableVersion", tb.id, body).fails(t, invalidInput)
		for _, op := range []string{"DescribeTableVersion", "BatchDeleteTableVersions"} {
			sample := operationNamed(t, op).sample
			suite.send(t, op, tb.id, with(sample, obj{"branch": branch})).failsWith(t, invalidInput, branchNotFound)
		}
		suite.send(t, "ListTableVersions", tb.id, nil, andQuery("branch="+url.QueryEscape(branch))).failsWith(t, invalidInput, branchNotFound)
	}
	a := suite.send(t, "DescribeTableVersion", tb.id, obj{"version": 1, "branch": "nowhere"})
	a.failsWith(t, versionNotFound, branchNotFound, tableNotFound)
}

// TestDetachedVersions: accepted under a negative number, described by it, never listed and never the head.
func TestDetachedVersions(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 1)
	number := detached(12345)
	body := tb.staged(t, number)
	created := suite.send(t, "CreateTableVersion", tb.id, body).ok(t).object(t, "version")
	if got, want := created.str(t, "manifest_path"), tb.rel+"/_versions/d9223372036854788153.manifest"; got != want {
		t.Errorf("manifest_path = %s, want %s", got, want)
	}
	if got := created.num(t, "version"); got != number {
		t.Errorf("version = %d, want %d", got, number)
	}
	if diff := cmp.Diff(created, tb.describeVersion(t, number).ok(t).object(t, "version")); diff != "" {
		t.Errorf("describe (-create +describe):\n%s", diff)
	}
	if diff := cmp.Diff(created, suite.send(t, "CreateTableVersion", tb.id, body).ok(t).object(t, "version")); diff != "" {
		t.Errorf("replay (-first +second):\n%s", diff)
	}
	if got := tb.versions(t, ""); !cmp.Equal(got, []int64{1}) {
		t.Errorf("versions = %v, want 1 alone", got)
	}
	if got := suite.send(t, "DescribeTableVersion", tb.id, nil).ok(t).object(t, "version").num(t, "version"); got != 1 {
		t.Errorf("latest = %d, want 1", got)
	}
	suite.send(t, "CreateTableVersion", tb.id, tb.staged(t, number)).fails(t, conflict)
	tb.commit(t, 2, 2)
}

// TestAttach: an entry whose manifest_path is a detached manifest is published as the next version with its version changed and
// every other byte kept (C14). This is how writers make a commit of many tables.
func TestAttach(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	for v := int64(1); v <= 3; v++ {
		content := realManifest(t, fmt.Sprintf("v%d.manifest", v))
		suite.send(t, "CreateTableVersion", tb.id, obj{"version": v, "manifest_path": tb.stage(t, "", finalName(v), content)}).ok(t)
	}
	real := realManifest(t, "d18120359512003294081.manifest")
	number, want := readManifest(t, real)
	staged := tb.stage(t, "", finalName(number), real)
	published := suite.send(t, "CreateTableVersion", tb.id, obj{"version": number, "manifest_path": staged}).ok(t).object(t, "version").str(t, "manifest_path")
	entry := obj{"id": tb.id, "version": 4, "manifest_path": published}
	first := suite.send(t, "BatchCreateTableVersions", nil, obj{"entries": list{entry}}).ok(t)
	version := asObject(t, first.items(t, "versions")[0])
	if path, want := version.str(t, "manifest_path"), tb.rel+"/_versions/"+finalName(4); path != want {
		t.Errorf("manifest_path = %s, want %s", path, want)
	}
	file := mustRead(t, object(t, version.str(t, "manifest_path")))
	v, rest := readManifest(t, file)
	if v != 4 {
		t.Errorf("the attached manifest says version %d, want 4", v)
	}
	if !sameButPosition(rest, want) {
		t.Error("attaching changed more than the version")
	}
	if got := version.num(t, "manifest_size"); got != int64(len(file)) {
		t.Errorf("manifest_size = %d, want the published %d", got, len(file))
	}
	second := suite.send(t, "BatchCreateTableVersions", nil, obj{"entries": list{entry}}).ok(t)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("replay (-first +second):\n%s", diff)
	}
	tb.describeVersion(t, number).ok(t)
	if got := tb.versions(t, ""); !cmp.Equal(got, []int64{4, 3, 2, 1}) {
		t.Errorf("versions = %v, want 4, 3, 2, 1", got)
	}
}

// sameButPosition compares two rests of manifests up to the footer's position of the message, which moves with nothing here.
func sameButPosition(a, b []byte) bool {
	return len(a) == len(b) && string(a) == string(b)
}

// TestAttachRefusals: a manifest that would have to be changed while it uses features that the server does not know is refused
// with code 19; another table's, a missing one and one that is already somewhere else in the chain are no less refused.
func TestAttachRefusals(t *testing.T) {
	t.Parallel()
	tb, other := newTable(t), newTable(t)
	publish := func(tb table, spec manifestSpec) string {
		t.Helper()
		staged := tb.stage(t, "", finalName(spec.version), manifestBytes(spec))
		a := suite.send(t, "CreateTableVersion", tb.id, obj{"version": spec.version, "manifest_path": staged})
		return a.ok(t).object(t, "version").str(t, "manifest_path")
	}
	attach := func(tb table, version int64, path string) answer {
		t.Helper()
		return suite.send(t, "CreateTableVersion", tb.id, obj{"version": version, "manifest_path": path})
	}
	strange := publish(tb, manifestSpec{version: detached(1), writerFlags: 1 << 50, readerFlags: 1 << 50})
	attach(tb, 1, strange).fails(t, invalidTableState)
	batch := suite.send(t, "BatchCreateTableVersions", nil, obj{"entries": list{obj{"id": tb.id, "version": 1, "manifest_path": strange}}})
	batch.fails(t, invalidTableState)
	attach(tb, 1, publish(other, manifestSpec{version: detached(2)})).fails(t, invalidInput)
	attach(tb, 1, tb.rel+"/_versions/"+finalName(detached(3))).fails(t, invalidInput)
	attach(tb, 1, publish(tb, manifestSpec{version: detached(5), read: 7})).fails(t, conflict) // made from another version: it would undo those between
	good := publish(tb, manifestSpec{version: detached(4)})
	attach(tb, 2, good).fails(t, conflict)
	if got := tb.versions(t, ""); len(got) != 0 {
		t.Errorf("versions = %v after nothing but refusals", got)
	}
	attach(tb, 1, good).ok(t)
}
