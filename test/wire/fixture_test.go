package wire_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// table is a table that a test declared: its id, and where its files are.
type table struct {
	id       []string
	location string // as the server said it
	dir      string // the local directory
	rel      string // the directory relative to the store's root, as manifest paths start (client contract, fact 42)
}

// newNamespace creates a namespace of the test's own below the root.
func newNamespace(t *testing.T) []string {
	t.Helper()
	ns := []string{"wire_" + token()}
	suite.send(t, "CreateNamespace", ns, nil).ok(t)
	return ns
}

// child returns the id of name below parent.
func child(parent []string, names ...string) []string {
	return append(append([]string{}, parent...), names...)
}

// declare declares a table and finds its directory.
func declare(t *testing.T, id []string) table {
	t.Helper()
	return located(t, id, suite.send(t, "DeclareTable", id, nil).ok(t))
}

// newTable declares the table "t" in a namespace of the test's own.
func newTable(t *testing.T) table {
	t.Helper()
	return declare(t, child(newNamespace(t), "t"))
}

// located reads the location in an answer. Only local tables can be staged from here.
func located(t *testing.T, id []string, answer obj) table {
	t.Helper()
	location := answer.str(t, "location")
	u, err := url.Parse(location)
	if err != nil || (u.Scheme != "file" && u.Scheme != "") {
		t.Fatalf("location %q is not a place on this machine: this suite needs a server that keeps tables on the local file system", location)
	}
	dir := strings.TrimSuffix(u.Path, "/")
	return table{id: id, location: location, dir: dir, rel: strings.TrimPrefix(dir, "/")}
}

// chainDir is the path of a branch's _versions directory below the table's own; "" is main.
func chainDir(branch string) string {
	if branch == "" {
		return "_versions"
	}
	return "tree/" + branch + "/_versions"
}

// stage writes content as a staged manifest with the given final name and returns its store-relative path.
func (tb table) stage(t *testing.T, branch, final string, content []byte) string {
	t.Helper()
	name := final + "-" + uuid4()
	writeFile(t, filepath.Join(tb.dir, chainDir(branch), name), content)
	return tb.rel + "/" + chainDir(branch) + "/" + name
}

// staged stages a fresh manifest of the version on main and returns the members of a commit request for it.
func (tb table) staged(t *testing.T, version int64) obj {
	t.Helper()
	return tb.stagedOn(t, "", version)
}

// stagedOn does the same on a branch.
func (tb table) stagedOn(t *testing.T, branch string, version int64) obj {
	t.Helper()
	content := manifestBytes(manifestSpec{version: version})
	body := obj{
		"version":       version,
		"manifest_path": tb.stage(t, branch, finalName(version), content),
		"manifest_size": len(content),
		"naming_scheme": "V2",
	}
	if branch != "" {
		body["branch"] = branch
	}
	return body
}

// entry is the same request as one entry of a batch.
func (tb table) entry(t *testing.T, version int64) obj {
	t.Helper()
	return with(tb.staged(t, version), obj{"id": tb.id})
}

// with returns a copy of o with the members of more laid over it; a nil value removes the member.
func with(o, more obj) obj {
	out := obj{}
	for k, v := range o {
		out[k] = v
	}
	for k, v := range more {
		if v == nil {
			delete(out, k)
			continue
		}
		out[k] = v
	}
	return out
}

// commit publishes versions from..to of main, one by one.
func (tb table) commit(t *testing.T, from, to int64) {
	t.Helper()
	for v := from; v <= to; v++ {
		suite.send(t, "CreateTableVersion", tb.id, tb.staged(t, v)).ok(t)
	}
}

// versions lists the numbers of a chain, newest first.
func (tb table) versions(t *testing.T, branch string) []int64 {
	t.Helper()
	q := "descending=true"
	if branch != "" {
		q += "&branch=" + url.QueryEscape(branch)
	}
	return numbers(t, suite.send(t, "ListTableVersions", tb.id, nil, andQuery(q)).ok(t))
}

// numbers reads the version numbers of a list answer in its order.
func numbers(t *testing.T, answer obj) []int64 {
	t.Helper()
	out := []int64{}
	for _, v := range answer.items(t, "versions") {
		out = append(out, asObject(t, v).num(t, "version"))
	}
	return out
}

// describeVersion asks for one version of main.
func (tb table) describeVersion(t *testing.T, version int64) answer {
	t.Helper()
	return suite.send(t, "DescribeTableVersion", tb.id, obj{"version": version})
}

// object is the local file behind a store-relative path in an answer, which must be neither a URI nor absolute.
func object(t *testing.T, storePath string) string {
	t.Helper()
	if strings.Contains(storePath, "://") || strings.HasPrefix(storePath, "/") || strings.Contains(storePath, "//") {
		t.Fatalf("manifest_path %q is not relative to the store's root", storePath)
	}
	return "/" + storePath
}

// existingDataset writes a dataset with versions 1..n beside the tables of the server, where registering is allowed, and
// returns its directory.
func existingDataset(t *testing.T, n int64) string {
	t.Helper()
	sibling := newTable(t)
	dir := filepath.Join(filepath.Dir(sibling.dir), "existing_"+token()+".lance")
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for v := int64(1); v <= n; v++ {
		writeFile(t, filepath.Join(dir, "_versions", finalName(v)), manifestBytes(manifestSpec{version: v}))
	}
	return dir
}

// fileURI spells a local directory as the URI of a location.
func fileURI(dir string) string { return (&url.URL{Scheme: "file", Path: dir}).String() }

// uuid4 returns a random UUID in its usual text form, as writers append to staged names.
func uuid4() string {
	h := token() + token() + token()
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
}
