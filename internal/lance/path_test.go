package lance_test

import (
	"testing"

	"github.com/lancerest/lancerest/internal/lance"
)

func TestChainPaths(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		dir           string
		branch        lance.Branch
		chain, prefix string
	}{
		{"p/t.lance", lance.Main, "p/t.lance", "p/t.lance/_versions/"},
		{"p/t.lance", "dev", "p/t.lance/tree/dev", "p/t.lance/tree/dev/_versions/"},
		{"p/t.lance", "feature/x", "p/t.lance/tree/feature/x", "p/t.lance/tree/feature/x/_versions/"},
		{"", lance.Main, "", "_versions/"},
		{"", "dev", "tree/dev", "tree/dev/_versions/"},
	} {
		if got := lance.ChainDir(tc.dir, tc.branch); got != tc.chain {
			t.Errorf("ChainDir(%q, %q) = %q, want %q", tc.dir, tc.branch, got, tc.chain)
		}
		if got := lance.VersionsPrefix(tc.dir, tc.branch); got != tc.prefix {
			t.Errorf("VersionsPrefix(%q, %q) = %q, want %q", tc.dir, tc.branch, got, tc.prefix)
		}
	}
	got := lance.ManifestKey("p/t.lance", "dev", 1, lance.SchemeV2)
	if want := "p/t.lance/tree/dev/_versions/18446744073709551614.manifest"; got != want {
		t.Errorf("ManifestKey = %q, want %q", got, want)
	}
}

func TestSplitManifestPath(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ path, dir, name string }{
		{"p/t.lance/_versions/1.manifest-ab", "p/t.lance/_versions/", "1.manifest-ab"},
		{"/tmp/x/_versions/1.manifest", "tmp/x/_versions/", "1.manifest"},
		{"_versions/1.manifest", "_versions/", "1.manifest"},
		{"1.manifest", "", "1.manifest"},
		{"a b/100%25/$/_versions/x", "a b/100%25/$/_versions/", "x"},
	} {
		dir, name, err := lance.SplitManifestPath(tc.path)
		if err != nil || dir != tc.dir || name != tc.name {
			t.Errorf("SplitManifestPath(%q) = %q, %q, %v, want %q, %q", tc.path, dir, name, err, tc.dir, tc.name)
		}
	}
	for path, want := range map[string]string{
		"":                            "is empty",
		"/":                           "is empty",
		"s3://b/t/_versions/x":        "is a URI",
		"file:///t/_versions/x":       "is a URI",
		"/s3://b/t/_versions/x":       "is a URI",
		"t/../u/_versions/x":          "write the path out",
		"./t/_versions/x":             "write the path out",
		"..":                          "write the path out",
		"t//_versions/x":              "empty segment",
		"//t/_versions/x":             "empty segment",
		"t/_versions/":                "empty segment",
		"t/_versions/x\x00":           "control",
		"t/_versions/x\n":             "control",
		"t/\xff/_versions/x.manifest": "UTF-8",
	} {
		_, _, err := lance.SplitManifestPath(path)
		wantInvalid(t, err, want)
	}
}

// FuzzSplitManifestPath holds that an accepted path is its two halves, apart from one leading slash.
func FuzzSplitManifestPath(f *testing.F) {
	for _, seed := range []string{"a/_versions/1.manifest-x", "/a/b", "s3://b/k", "a/../b", "a//b", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		dir, name, err := lance.SplitManifestPath(path)
		if err != nil {
			return
		}
		if joined := dir + name; name == "" || joined != path && "/"+joined != path {
			t.Errorf("SplitManifestPath(%q) = %q, %q", path, dir, name)
		}
		if again, leaf, err := lance.SplitManifestPath(dir + name); err != nil || again != dir || leaf != name {
			t.Errorf("splitting %q again gave %q, %q, %v", dir+name, again, leaf, err)
		}
	})
}
