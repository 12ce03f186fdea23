package wire_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCommitOneVersion: the staged manifest is published under its final name, and create, describe and list say the same of it.
func TestCommitOneVersion(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	content := manifestBytes(manifestSpec{version: 1})
	request := obj{"version": 1, "manifest_path": tb.stage(t, "", finalName(1), content), "manifest_size": len(content),
		"e_tag": `"from-the-writer"`, "metadata": obj{"who": "ann", "": "é"}, "naming_scheme": "V2"}
	created := suite.send(t, "CreateTableVersion", tb.id, request).ok(t).object(t, "version")
	described := tb.describeVersion(t, 1).ok(t).object(t, "version")
	listed := asObject(t, suite.send(t, "ListTableVersions", tb.id, nil).ok(t).items(t, "versions")[0])
	latest := suite.send(t, "DescribeTableVersion", tb.id, nil).ok(t).object(t, "version")
	for from, got := range map[string]obj{"describe": described, "list": listed, "describe without a version": latest} {
		if diff := cmp.Diff(created, got); diff != "" {
			t.Errorf("create and %s differ (-create +%s):\n%s", from, from, diff)
		}
	}
	if got, want := created.str(t, "manifest_path"), tb.rel+"/_versions/"+finalName(1); got != want {
		t.Errorf("manifest_path = %s, want %s", got, want)
	}
	if created.num(t, "version") != 1 || created.num(t, "manifest_size") != int64(len(content)) || created.num(t, "timestamp_millis") <= 0 {
		t.Errorf("version = %v, want number 1, size %d and a time", created, len(content))
	}
	if diff := cmp.Diff(obj{"who": "ann", "": "é"}, given(created.object(t, "metadata"))); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	sameFile(t, object(t, created.str(t, "manifest_path")), content)
}

// TestRealManifests publishes what pylance wrote.
func TestRealManifests(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	for v := int64(1); v <= 3; v++ {
		content := realManifest(t, fmt.Sprintf("v%d.manifest", v))
		staged := tb.stage(t, "", finalName(v), content)
		got := suite.send(t, "CreateTableVersion", tb.id, obj{"version": v, "manifest_path": staged}).ok(t).object(t, "version")
		sameFile(t, object(t, got.str(t, "manifest_path")), content)
	}
}

// TestNamingSchemes: V1 names, V2 names, V2 where nothing is said; one table may hold both.
func TestNamingSchemes(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	for v, scheme := range map[int64]any{1: "V1"} {
		staged := tb.stage(t, "", finalNameV1(v), manifestBytes(manifestSpec{version: v}))
		got := suite.send(t, "CreateTableVersion", tb.id, obj{"version": v, "manifest_path": staged, "naming_scheme": scheme}).ok(t)
		if path, want := got.object(t, "version").str(t, "manifest_path"), tb.rel+"/_versions/1.manifest"; path != want {
			t.Errorf("manifest_path = %s, want %s", path, want)
		}
	}
	suite.send(t, "CreateTableVersion", tb.id, with(tb.staged(t, 2), obj{"naming_scheme": nil})).ok(t)
	suite.send(t, "CreateTableVersion", tb.id, with(tb.staged(t, 3), obj{"naming_scheme": "V3"})).fails(t, invalidInput)
	suite.send(t, "CreateTableVersion", tb.id, with(tb.staged(t, 3), obj{"naming_scheme": "V1"})).fails(t, invalidInput)
	if got := tb.versions(t, ""); !cmp.Equal(got, []int64{2, 1}) {
		t.Errorf("versions = %v, want 2 and 1", got)
	}
}

// TestReplay: the same request again is answered as the first time (the first answer may have been lost on the way), also when
// the bytes come under another staged name, and after later versions.
func TestReplay(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	content := manifestBytes(manifestSpec{version: 1})
	request := obj{"version": 1, "manifest_path": tb.stage(t, "", finalName(1), content), "metadata": obj{"n": "1"}}
	first := suite.send(t, "CreateTableVersion", tb.id, request).ok(t)
	again := func(label string, request obj) {
		t.Helper()
		got := suite.send(t, "CreateTableVersion", tb.id, request).ok(t)
		if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("%s: the second answer differs (-first +second):\n%s", label, diff)
		}
	}
	again("same request", request)
	again("same bytes staged anew", with(request, obj{"manifest_path": tb.stage(t, "", finalName(1), content)}))
	tb.commit(t, 2, 3)
	again("after later versions", request)
	if got := tb.versions(t, ""); !cmp.Equal(got, []int64{3, 2, 1}) {
		t.Errorf("versions = %v, want 3, 2, 1", got)
	}
}

// TestConflict: another manifest for a version that is there is a conflict, and at that moment the winner can be read: otherwise
// the losing writer gives up instead of rebasing (client contract, trap T1).
func TestConflict(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 2)
	winner := tb.describeVersion(t, 2).ok(t).object(t, "version")
	losing := tb.staged(t, 2)
	said := suite.send(t, "CreateTableVersion", tb.id, losing).fails(t, conflict)
	mentions(t, said, "2", "t")
	if diff := cmp.Diff(winner, tb.describeVersion(t, 2).ok(t).object(t, "version")); diff != "" {
		t.Errorf("describe after the conflict (-winner +got):\n%s", diff)
	}
	if v, _ := readManifest(t, mustRead(t, object(t, winner.str(t, "manifest_path")))); v != 2 {
		t.Errorf("the winner's manifest is of version %d", v)
	}
	mentions(t, suite.send(t, "CreateTableVersion", tb.id, tb.staged(t, 5)).fails(t, conflict), "5")
	suite.send(t, "CreateTableVersion", newTable(t).id, losing).fails(t, invalidInput)
	empty := newTable(t)
	suite.send(t, "CreateTableVersion", empty.id, empty.staged(t, 2)).fails(t, conflict)
	tb.commit(t, 3, 3)
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestStagedPaths: only a staged name of that very version inside the chain's own _versions directory is published; anything
// else could make the server publish what the caller may not touch.
func TestStagedPaths(t *testing.T) {
	t.Parallel()
	tb, other := newTable(t), newTable(t)
	name := finalName(1) + "-" + uuid4()
	content := manifestBytes(manifestSpec{version: 1})
	for _, place := range []string{"_versions", "data", "tree/dev/_versions", "_versions/deeper", "_refs/tags"} {
		writeFile(t, filepath.Join(tb.dir, place, name), content)
	}
	writeFile(t, filepath.Join(other.dir, "_versions", name), content)
	plainName := filepath.Join(tb.dir, "_versions", finalName(1)+"-")
	writeFile(t, plainName, content)
	own := tb.rel + "/_versions/"
	refused := map[string]string{
		"another table":          other.rel + "/_versions/" + name,
		"up and down again":      own + "../_versions/" + name,
		"out of the table":       tb.rel + "/../" + filepath.Base(other.dir) + "/_versions/" + name,
		"dot":                    own + "./" + name,
		"doubled slash":          tb.rel + "//_versions/" + name,
		"file URI":               "file:///" + own + name,
		"s3 URI":                 "s3://bucket/" + own + name,
		"data directory":         tb.rel + "/data/" + name,
		"a branch's directory":   tb.rel + "/tree/dev/_versions/" + name,
		"deeper":                 own + "deeper/" + name,
		"relative to the table":  "_versions/" + name,
		"name alone":             name,
		"percent-encoded":        tb.rel + "/%5Fversions/" + name,
		"backslashes":            tb.rel + "\\_versions\\" + name,
		"final name":             own + finalName(1),
		"no suffix":              own + finalName(1) + "-",
		"another version's name": own + finalName(2) + "-" + uuid4(),
		"V1 name":                own + finalNameV1(1) + "-" + uuid4(),
		"a detached name":        own + finalName(-7) + "-" + uuid4(),
		"suffix with a slash":    own + finalName(1) + "-a/b",
		"suffix with dots":       own + finalName(1) + "-..",
		"temporary file":         own + "." + name,
		"directory":              tb.rel + "/_versions",
		"slash at the end":       own + name + "/",
		"NUL":                    own + name + "\x00",
		"query":                  own + name + "?x=1",
		"empty":                  "",
		"etc":                    "etc/passwd",
	}
	for label, p := range refused {
		t.Run(label, func(t *testing.T) {
			suite.send(t, "CreateTableVersion", tb.id, obj{"version": 1, "manifest_path": p}).fails(t, invalidInput)
			entry := obj{"id": tb.id, "version": 1, "manifest_path": p}
			suite.send(t, "BatchCreateTableVersions", nil, obj{"entries": list{entry}}).fails(t, invalidInput)
		})
	}
	t.Run("main's directory for a branch", func(t *testing.T) {
		suite.send(t, "CreateTableVersion", tb.id, obj{"version": 1, "branch": "dev", "manifest_path": own + name}).fails(t, invalidInput)
		suite.send(t, "CreateTableVersion", tb.id, obj{"version": 1, "branch": "other", "manifest_path": tb.rel + "/tree/dev/_versions/" + name}).fails(t, invalidInput)
	})
	if exists(filepath.Join(tb.dir, "_versions", finalName(1))) {
		t.Error("a refused path was published")
	}
	if got := tb.versions(t, ""); len(got) != 0 {
		t.Errorf("versions = %v, want none", got)
	}
	sameFile(t, filepath.Join(other.dir, "_versions", name), content)
}

// TestStagedContent: what is no whole manifest of that version is refused and leaves the slot free; feature flags that only its
// writer knows are no reason to refuse.
func TestStagedContent(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	whole := manifestBytes(manifestSpec{version: 1})
	longer := append([]byte{}, whole...)
	longer[0]++ // the message is longer than the file
	far := append([]byte{}, whole...)
	far[len(far)-16] = 0xff // the message stands beyond the file
	magic := append([]byte{}, whole...)
	magic[len(magic)-1] = 'X'
	bad := map[string][]byte{
		"empty":                    {},
		"text":                     []byte("not a manifest at all, but long enough to have a footer"),
		"footer alone":             whole[len(whole)-16:],
		"without its end":          whole[:len(whole)-5],
		"without its beginning":    whole[5:],
		"length beyond the file":   longer,
		"position beyond the file": far,
		"wrong magic":              magic,
		"message that breaks off":  frame([]byte{0x0a, 0x7f, 1, 2}),
		"no version":               frame(appendBytes(nil, fieldSchema, []byte{})),
		"another version":          manifestBytes(manifestSpec{version: 2}),
		"a detached version":       manifestBytes(manifestSpec{version: -9}),
	}
	for label, content := range bad {
		t.Run(label, func(t *testing.T) {
			body := obj{"version": 1, "manifest_path": tb.stage(t, "", finalName(1), content)}
			suite.send(t, "CreateTableVersion", tb.id, body).fails(t, invalidInput)
		})
	}
	t.Run("missing", func(t *testing.T) {
		p := tb.rel + "/_versions/" + finalName(1) + "-" + uuid4()
		mentions(t, suite.send(t, "CreateTableVersion", tb.id, obj{"version": 1, "manifest_path": p}).fails(t, invalidInput), filepath.Base(p))
	})
	t.Run("missing members", func(t *testing.T) {
		for _, name := range []string{"version", "manifest_path"} {
			mentions(t, suite.send(t, "CreateTableVersion", tb.id, with(tb.staged(t, 1), obj{name: nil})).fails(t, invalidInput), name)
		}
		suite.send(t, "CreateTableVersion", tb.id, with(tb.staged(t, 1), obj{"manifest_size": -1})).fails(t, invalidInput)
		for _, v := range []any{0, "1", 1.5, true, list{1}} {
			suite.send(t, "CreateTableVersion", tb.id, with(tb.staged(t, 1), obj{"version": v})).fails(t, invalidInput)
		}
	})
	if got := tb.versions(t, ""); len(got) != 0 || exists(filepath.Join(tb.dir, "_versions", finalName(1))) {
		t.Errorf("versions = %v after nothing but refusals", got)
	}
	flags := manifestBytes(manifestSpec{version: 1, readerFlags: 1 << 40, writerFlags: 1 << 41})
	suite.send(t, "CreateTableVersion", tb.id, obj{"version": 1, "manifest_path": tb.stage(t, "", finalName(1), flags)}).ok(t)
}

// TestDescribeVersion: a missing one is code 11.
func TestDescribeVersion(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 2)
	mentions(t, tb.describeVersion(t, 3).fails(t, versionNotFound), "3")
	tb.describeVersion(t, -3).fails(t, versionNotFound)
	tb.describeVersion(t, 9223372036854775807).fails(t, versionNotFound)
	tb.describeVersion(t, 0).failsWith(t, versionNotFound, invalidInput)
	if got := suite.send(t, "DescribeTableVersion", tb.id, nil, rawBody(`{"version":null}`)).ok(t).object(t, "version").num(t, "version"); got != 2 {
		t.Errorf("latest = %d, want 2", got)
	}
	suite.send(t, "DescribeTableVersion", tb.id, nil, rawBody(`{"version":9223372036854775808}`)).fails(t, invalidInput)
}

// TestBypassingWriter: a version that a writer published straight to storage is taken in: it is described, listed, and the next
// commit goes on top of it (client contract, fact 62).
func TestBypassingWriter(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 1)
	foreign := manifestBytes(manifestSpec{version: 2})
	writeFile(t, filepath.Join(tb.dir, "_versions", finalName(2)), foreign)
	suite.send(t, "CreateTableVersion", tb.id, tb.staged(t, 2)).fails(t, conflict)
	got := tb.describeVersion(t, 2).ok(t).object(t, "version")
	sameFile(t, object(t, got.str(t, "manifest_path")), foreign)
	writeFile(t, filepath.Join(tb.dir, "_versions", finalName(3)), manifestBytes(manifestSpec{version: 3}))
	tb.commit(t, 4, 4)
	if got := tb.versions(t, ""); !cmp.Equal(got, []int64{4, 3, 2, 1}) {
		t.Errorf("versions = %v, want 4, 3, 2, 1", got)
	}
}

// TestCleanupBehindTheCatalog: a version whose manifest a client removed is offered no longer (fact 68).
func TestCleanupBehindTheCatalog(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 3)
	if err := os.Remove(filepath.Join(tb.dir, "_versions", finalName(1))); err != nil {
		t.Fatal(err)
	}
	if got := tb.versions(t, ""); !cmp.Equal(got, []int64{3, 2}) {
		t.Errorf("versions = %v, want 3 and 2", got)
	}
	tb.describeVersion(t, 1).fails(t, versionNotFound)
	tb.describeVersion(t, 2).ok(t)
	tb.commit(t, 4, 4)
}

// TestGarbageInTheSlot: bytes that are no manifest under the next final name are no winner that a loser could read, so they are
// no conflict: the table is in a state that somebody has to mend, and the error names the object.
func TestGarbageInTheSlot(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 1)
	garbage := []byte("the rest of a copy that broke off half-way")
	writeFile(t, filepath.Join(tb.dir, "_versions", finalName(2)), garbage)
	said := suite.send(t, "CreateTableVersion", tb.id, tb.staged(t, 2)).fails(t, invalidTableState)
	mentions(t, said, finalName(2))
	sameFile(t, filepath.Join(tb.dir, "_versions", finalName(2)), garbage)
	tb.describeVersion(t, 1).ok(t)
	if got := tb.versions(t, ""); !cmp.Equal(got, []int64{1}) {
		t.Errorf("versions = %v, want 1", got)
	}
}

// TestDeleteVersions: ranges hold their start and not their end; what is not there is passed over.
func TestDeleteVersions(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 5)
	remove := func(ranges ...any) answer {
		t.Helper()
		return suite.send(t, "BatchDeleteTableVersions", tb.id, obj{"ranges": ranges})
	}
	span := func(start, end int64) obj { return obj{"start_version": start, "end_version": end} }
	if got := remove(span(0, 3)).ok(t).num(t, "deleted_count"); got != 2 {
		t.Errorf("deleted_count = %d, want versions 1 and 2", got)
	}
	if got := tb.versions(t, ""); !cmp.Equal(got, []int64{5, 4, 3}) {
		t.Errorf("versions = %v, want 5, 4, 3", got)
	}
	tb.describeVersion(t, 1).fails(t, versionNotFound)
	if got := remove(span(1, 3), span(100, 200)).ok(t).num(t, "deleted_count"); got != 0 {
		t.Errorf("deleted_count = %d, want 0 the second time", got)
	}
	if got := remove(span(3, 4), span(3, 5)).ok(t).num(t, "deleted_count"); got != 2 {
		t.Errorf("deleted_count = %d, want 3 and 4 once each", got)
	}
	for label, ranges := range map[string]list{"turned round": {span(5, 2)}, "no numbers": {obj{}}, "no end": {obj{"start_version": 1}},
		"text": {obj{"start_version": "1", "end_version": 2}}, "not an object": {7}, "null": {nil}, "negative start": {span(-4, 2)}} {
		if a := remove(ranges...); a.code() != invalidInput {
			t.Errorf("%s: %s\n got %s\nwant code 13", label, a.call, a)
		}
	}
	suite.send(t, "BatchDeleteTableVersions", tb.id, nil).fails(t, invalidInput)
	mentions(t, remove(span(0, -1)).fails(t, invalidTableState), "5") // without its latest version a chain would begin anew
	if got := tb.versions(t, ""); !cmp.Equal(got, []int64{5}) {
		t.Errorf("versions = %v, want the latest", got)
	}
	// A number is never given twice: a writer that still knows the old version 2 must not find another one there.
	suite.send(t, "CreateTableVersion", tb.id, tb.staged(t, 2)).failsWith(t, conflict, invalidInput)
	tb.commit(t, 6, 6)
}

// TestConcurrentWriters: many writers that race for each next version; every number goes to exactly one of them, and whoever
// loses can read the winner at once.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	const writers, rounds = 6, 4
	wins := make(chan string, writers*rounds)
	t.Run("race", func(t *testing.T) {
		for i := range writers {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for v, won := int64(1), 0; won < rounds; v++ {
					body := tb.staged(t, v)
					a := suite.send(t, "CreateTableVersion", tb.id, body)
					if a.code() == success {
						wins <- fmt.Sprintf("%04d", v)
						won++
						continue
					}
					a.fails(t, conflict)
					tb.describeVersion(t, v).ok(t)
				}
			})
		}
	})
	close(wins)
	seen := map[string]bool{}
	for v := range wins {
		if seen[v] {
			t.Errorf("version %s was given twice", v)
		}
		seen[v] = true
	}
	if got := tb.versions(t, ""); len(got) != writers*rounds || got[0] != writers*rounds {
		t.Errorf("versions = %v, want %d without a gap", got, writers*rounds)
	}
}
