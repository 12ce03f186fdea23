package lance_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/lancerest/lancerest/internal/lance"
)

func TestParseBranchName(t *testing.T) {
	t.Parallel()
	for wire, want := range map[string]lance.Branch{
		"": lance.Main, "main": lance.Main, "dev": "dev", "feature/x": "feature/x", "é.x": "é.x", "a/main": "a/main", "v1.0-b_c": "v1.0-b_c",
		".x": ".x", "Main": "Main", "٣": "٣", "ⓐ": "ⓐ", "a.lock/b": "a.lock/b",
	} {
		got, err := lance.ParseBranchName(wire)
		if err != nil || got != want {
			t.Errorf("ParseBranchName(%q) = %q, %v, want %q", wire, got, err, want)
		}
	}
	for wire, want := range map[string]string{
		"/a": "empty segment", "a/": "empty segment", "a//b": "empty segment", "/": "empty segment", "a/../b": `".."`, "..": `".."`, "a/./b": `"."`,
		".": `"."`, `a\b`: "character", "a b": "character", "a%2Fb": "character", "a\x00": "character", "a\xff": "character", "a.lock": ".lock",
		"a/b.lock": ".lock", strings.Repeat("x", 251): "256 bytes", strings.Repeat("é", 42): "257 bytes",
	} {
		_, err := lance.ParseBranchName(wire)
		wantInvalid(t, err, want)
	}
	wantInvalid(t, lance.CheckBranchName("main"), "reserved")
	wantInvalid(t, lance.CheckBranchName(""), "empty")
}

func TestBranchString(t *testing.T) {
	t.Parallel()
	if got := lance.Main.String(); got != "main" {
		t.Errorf("Main.String() = %q", got)
	}
	if got := lance.Branch("dev").String(); got != "dev" {
		t.Errorf("String() = %q, want dev", got)
	}
}

func TestBranchKeys(t *testing.T) {
	t.Parallel()
	for branch, file := range map[lance.Branch]string{
		"dev": "dev.json", "feature/x": "feature%2Fx.json", "é.x": "%C3%A9.x.json", "a/b/c.json": "a%2Fb%2Fc.json.json",
	} {
		if got, want := lance.BranchKey("p/t.lance", branch), "p/t.lance/_refs/branches/"+file; got != want {
			t.Errorf("BranchKey(%q) = %q, want %q", branch, got, want)
		}
		if got, ok := lance.BranchFromFile(file); got != branch || !ok {
			t.Errorf("BranchFromFile(%q) = %q, %v, want %q", file, got, ok, branch)
		}
	}
	for _, file := range []string{"dev", "dev.json#1", ".json", "main.json", "a%2fb.json", "%2E%2E.json", "a%.json", "é.json", "a%20b.json"} {
		if got, ok := lance.BranchFromFile(file); ok {
			t.Errorf("BranchFromFile(%q) = %q, want none", file, got)
		}
	}
}

// TestBranchFiles reads files that pylance 14.0.2 wrote, and writes them again to the byte.
func TestBranchFiles(t *testing.T) {
	t.Parallel()
	first := lance.Fork{Version: 1, ID: "d5371b4cec284157a4db4d27051d60df"}
	for file, want := range map[string]lance.BranchRef{
		"refs/branch_of_main.json": {
			Name: "feature/x", ParentVersion: 1, CreatedAt: 1795959467, ManifestSize: 436, Lineage: []lance.Fork{first},
		},
		"refs/branch_of_branch.json": {
			Name: "feature/y", ParentBranch: "feature/x", ParentVersion: 2, CreatedAt: 1795959467, ManifestSize: 502,
			Lineage: []lance.Fork{first, {Version: 2, ID: "1e5864ae2c0e4ef28b7b6f488d4130f6"}},
		},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			data := readFile(t, file)
			got, err := lance.ParseBranch(want.Name, data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("ParseBranch (-want +got):\n%s", diff)
			}
			written, err := lance.MarshalBranch(got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(data), string(written)); diff != "" {
				t.Errorf("MarshalBranch (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLegacyLineage compares with the identifiers that pylance 14.0.2 shows for files without one.
func TestLegacyLineage(t *testing.T) {
	t.Parallel()
	zero := `,"identifier":{"version_mapping":[[0,"00000000000000000000000000000000"]]}}`
	for _, tc := range []struct {
		name     lance.Branch
		data, id string
	}{
		{"é.x", `{"parentBranch":null,"parentVersion":1,"createAt":1795959467,"manifestSize":436}`, "8f463bc3cf1ae48aa77f65cc798b3ab1"},
		{"feature/y", `{"parentBranch":"feature/x","parentVersion":2,"createAt":1795959467,"manifestSize":502}`, "c2b63e99d114eb4854dbb314b7b8d37b"},
		{"feature/y", `{"parentBranch":"feature/x","parentVersion":2,"createAt":1795959467,"manifestSize":502` + zero, "c2b63e99d114eb4854dbb314b7b8d37b"},
	} {
		got, err := lance.ParseBranch(tc.name, []byte(tc.data))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]lance.Fork{{ID: tc.id}}, got.Lineage); diff != "" {
			t.Errorf("lineage of %s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestForkedFrom(t *testing.T) {
	t.Parallel()
	a := lance.BranchRef{Name: "a", Lineage: []lance.Fork{{Version: 3, ID: "a"}}}
	b := lance.BranchRef{Name: "b", Lineage: []lance.Fork{{Version: 3, ID: "a"}, {Version: 5, ID: "b"}}}
	c := lance.BranchRef{Name: "c", Lineage: []lance.Fork{{Version: 3, ID: "a"}, {Version: 5, ID: "b"}, {Version: 8, ID: "c"}}}
	reused := lance.BranchRef{Name: "a", Lineage: []lance.Fork{{Version: 3, ID: "a2"}}}
	legacy := lance.BranchRef{Name: "old", Lineage: []lance.Fork{{Version: 0, ID: "x"}}}
	for _, tc := range []struct {
		name        string
		b, ancestor lance.BranchRef
		want        lance.VersionNumber
	}{
		{"child", b, a, 5},
		{"grandchild", c, a, 5},
		{"grandchild of its parent", c, b, 8},
		{"of main", c, lance.BranchRef{}, 3},
		{"not of itself", a, a, 0},
		{"not of its child", a, b, 0},
		{"not of another branch under the same name", b, reused, 0},
		{"unknown ancestry", legacy, lance.BranchRef{}, 0},
	} {
		got, ok := tc.b.ForkedFrom(tc.ancestor)
		if got != tc.want || ok != (tc.want != 0) {
			t.Errorf("%s: got %d, %v, want %d", tc.name, got, ok, tc.want)
		}
	}
}

func TestParseBranchRefuses(t *testing.T) {
	t.Parallel()
	const rest = `"parentVersion":1,"createAt":1,"manifestSize":1`
	for data, want := range map[string]string{
		`x`:                                                           "not a JSON object",
		`{"createAt":1,"manifestSize":1}`:                             `lacks the member "parentVersion"`,
		`{"parentVersion":1,"manifestSize":1}`:                        `lacks the member "createAt"`,
		`{"parentVersion":1,"createAt":1}`:                            `lacks the member "manifestSize"`,
		`{"parentBranch":"a b",` + rest + `}`:                         `member "parentBranch"`,
		`{` + rest + `,"identifier":7}`:                               `member "identifier"`,
		`{` + rest + `,"identifier":{"version_mapping":[[1]]}}`:       `member "identifier"`,
		`{` + rest + `,"identifier":{"version_mapping":[["1","a"]]}}`: `member "identifier"`,
		`{` + rest + `,"identifier":{"version_mapping":[[1,2]]}}`:     `member "identifier"`,
	} {
		_, err := lance.ParseBranch("b", []byte(data))
		wantCorrupt(t, err, want)
	}
}

func TestMarshalBranchRefuses(t *testing.T) {
	t.Parallel()
	lineage := []lance.Fork{{Version: 1, ID: "a"}}
	for want, b := range map[string]lance.BranchRef{
		"is empty":   {Lineage: lineage},
		"character":  {Name: "b", ParentBranch: "a b", Lineage: lineage},
		"no lineage": {Name: "b"},
	} {
		_, err := lance.MarshalBranch(b)
		wantInvalid(t, err, want)
	}
}

// FuzzParseBranch holds that what is read can be written, and reads back the same.
func FuzzParseBranch(f *testing.F) {
	f.Add(readFile(f, "refs/branch_of_main.json"))
	f.Add(readFile(f, "refs/branch_of_branch.json"))
	f.Add([]byte(`{"parentVersion":1,"createAt":1,"manifestSize":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ref, err := lance.ParseBranch("b", data)
		if err != nil {
			return
		}
		written, err := lance.MarshalBranch(ref)
		if err != nil {
			t.Fatalf("MarshalBranch(%+v): %v", ref, err)
		}
		again, err := lance.ParseBranch("b", written)
		if err != nil {
			t.Fatalf("ParseBranch(%s): %v", written, err)
		}
		if diff := cmp.Diff(ref, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("round trip (-want +got):\n%s", diff)
		}
	})
}
