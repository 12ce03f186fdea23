package lance_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lancerest/lancerest/internal/lance"
)

func TestParseLocation(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		uri  string
		want lance.Location
		text string
		key  string
	}{
		{"/data/t.lance", lance.Location{"file", "", "/data/t.lance"}, "file:///data/t.lance", "data/t.lance"},
		{"/data//t.lance/", lance.Location{"file", "", "/data/t.lance"}, "file:///data/t.lance", "data/t.lance"},
		{"file:///data/t.lance/", lance.Location{"file", "", "/data/t.lance"}, "file:///data/t.lance", "data/t.lance"},
		{"file:/data/t.lance", lance.Location{"file", "", "/data/t.lance"}, "file:///data/t.lance", "data/t.lance"},
		{"FILE://LocalHost/data", lance.Location{"file", "", "/data"}, "file:///data", "data"},
		{"/", lance.Location{"file", "", ""}, "file:///", ""},
		{"file:///C:/a b/t.lance", lance.Location{"file", "", "/C:/a b/t.lance"}, "file:///C:/a%20b/t.lance", "C:/a b/t.lance"},
		{"s3://b", lance.Location{"s3", "b", ""}, "s3://b", ""},
		{"s3://b/", lance.Location{"s3", "b", ""}, "s3://b", ""},
		{"s3://b/t", lance.Location{"s3", "b", "/t"}, "s3://b/t", "t"},
		{"S3A://b//x///t//", lance.Location{"s3", "b", "/x/t"}, "s3://b/x/t", "x/t"},
		{"s3://b/a%20b", lance.Location{"s3", "b", "/a b"}, "s3://b/a%20b", "a b"},
		{"s3://b/a b", lance.Location{"s3", "b", "/a b"}, "s3://b/a%20b", "a b"},
		{"s3://b/a%2520b", lance.Location{"s3", "b", "/a%20b"}, "s3://b/a%2520b", "a%20b"},
		{"s3://b/a%2Fb+c$d", lance.Location{"s3", "b", "/a/b+c$d"}, "s3://b/a/b+c$d", "a/b+c$d"},
		{"/d/a#b?c%20d\\e", lance.Location{"file", "", "/d/a#b?c%20d\\e"}, "file:///d/a%23b%3Fc%2520d%5Ce", "d/a#b?c%20d\\e"},
		{"gcs://b/é", lance.Location{"gs", "b", "/é"}, "gs://b/%C3%A9", "é"},
		{"abfss://FS@Acct.dfs.core.windows.net/t", lance.Location{"abfss", "fs@acct.dfs.core.windows.net", "/t"}, "abfss://fs@acct.dfs.core.windows.net/t", "t"},
		{"az://c/t", lance.Location{"az", "c", "/t"}, "az://c/t", "t"},
		{"memory:///t", lance.Location{"memory", "", "/t"}, "memory:///t", "t"},
	} {
		got, err := lance.ParseLocation(tc.uri)
		if err != nil {
			t.Errorf("ParseLocation(%q): %v", tc.uri, err)
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("ParseLocation(%q) (-want +got):\n%s", tc.uri, diff)
		}
		if got.String() != tc.text || got.Key() != tc.key {
			t.Errorf("ParseLocation(%q): String %q, Key %q, want %q, %q", tc.uri, got.String(), got.Key(), tc.text, tc.key)
		}
	}
}

func TestParseLocationRefuses(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"":                                    "is empty",
		"data/t.lance":                        "neither an absolute path",
		"~/t.lance":                           "neither an absolute path",
		"../t":                                "neither an absolute path",
		`C:\t`:                                "Windows",
		"c:/t":                                "Windows",
		`\\srv\share\t`:                       "Windows",
		"://b/t":                              "neither an absolute path",
		"s3:/b/t":                             `lacks "//"`,
		"file:t":                              `lacks "//"`,
		"s3:///t":                             "no bucket",
		"s3://":                               "no bucket",
		"s3://user:pw@b/t":                    "bucket name",
		"s3://b:9000/t":                       "bucket name",
		"s3://b%20c/t":                        "bucket name",
		"file://host/t":                       "names a host",
		"s3+ddb://b/t":                        "scheme",
		"https://b/t":                         "scheme",
		"s3://b/t?x=1":                        "query",
		"file:///d/a#b":                       "query",
		"s3://b/50%":                          "two hexadecimal digits",
		"s3://b/a/../t":                       "write the path out",
		"/data/./t":                           "write the path out",
		"file:///data/%2e%2e/t":               "write the path out",
		"/data/a\nb":                          "control",
		"s3://b/a%00b":                        "control",
		"s3://b/%ff":                          "UTF-8",
		"/\xff":                               "UTF-8",
		"s3://b/" + strings.Repeat("x/", 400): "at most 768",
	} {
		_, err := lance.ParseLocation(uri)
		wantInvalid(t, err, want)
	}
}

func TestLocationCovers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		outer, inner string
		want         bool
	}{
		{"s3://b/x", "s3://b/x", true},
		{"s3://b/x", "s3a://b//x/", true},
		{"s3://b/x", "s3://b/x/y", true},
		{"s3://b/x", "s3://b/xy", false},
		{"s3://b/x/y", "s3://b/x", false},
		{"s3://b", "s3://b/x", true},
		{"s3://b", "s3://bb/x", false},
		{"s3://b/x", "gs://b/x", false},
		{"/", "/data", true},
	} {
		outer, inner := parseLocation(t, tc.outer), parseLocation(t, tc.inner)
		if got := outer.Covers(inner); got != tc.want {
			t.Errorf("(%q).Covers(%q) = %v, want %v", tc.outer, tc.inner, got, tc.want)
		}
	}
}

func TestLocationJoin(t *testing.T) {
	t.Parallel()
	got, err := parseLocation(t, "s3://b").Join("1a_ü#.lance")
	if err != nil {
		t.Fatal(err)
	}
	if want := "s3://b/1a_%C3%BC%23.lance"; got.String() != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, want := range map[string]string{
		"": "one segment", "a/b": "one segment", "..": "write the path out", "a\x00": "control", "\xff": "UTF-8",
		strings.Repeat("x", 800): "at most 768",
	} {
		_, err := got.Join(name)
		wantInvalid(t, err, want)
	}
}

func parseLocation(t *testing.T, uri string) lance.Location {
	t.Helper()
	loc, err := lance.ParseLocation(uri)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// FuzzParseLocation holds that the text of a location reads back as the same location, and that its key is a clean one.
func FuzzParseLocation(f *testing.F) {
	for _, seed := range []string{"/d/t", "file:///d/a%20b", "s3a://b//x/", "s3://b/%2e%2e", "abfss://c@a/t", "/a#b?c%", `C:\t`, "memory:///"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		loc, err := lance.ParseLocation(uri)
		if err != nil {
			return
		}
		if again, err := lance.ParseLocation(loc.String()); err != nil || again != loc {
			t.Errorf("ParseLocation(%q) = %+v, whose text %q gives %+v, %v", uri, loc, loc.String(), again, err)
		}
		if loc.Key() != "" {
			if _, _, err := lance.SplitManifestPath(loc.Key() + "/x"); err != nil {
				t.Errorf("ParseLocation(%q) has the key %q: %v", uri, loc.Key(), err)
			}
		}
	})
}
