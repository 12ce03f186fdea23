package lance_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/lancerest/lancerest/internal/lance"
)

// readFile returns a file of testdata.
func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// wantCorrupt fails the test unless err is a *CorruptError whose text holds part.
func wantCorrupt(t *testing.T, err error, part string) {
	t.Helper()
	var corrupt *lance.CorruptError
	if !errors.As(err, &corrupt) {
		t.Fatalf("got error %v, want a *CorruptError about %q", err, part)
	}
	if !strings.Contains(err.Error(), part) {
		t.Errorf("got error %q, want it to speak of %q", err, part)
	}
}

func TestCheckTagName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"v1", "v1.0", "a-b_c.d", "main", "-", "_", "1", "lock", strings.Repeat("x", 250)} {
		if err := lance.CheckTagName(name); err != nil {
			t.Errorf("CheckTagName(%q) = %v, want nil", name, err)
		}
	}
	for name, want := range map[string]string{
		"": "empty", "a/b": "character", "a b": "character", `a\b`: "character", "é": "ASCII", "a\x00": "character", "a%": "character",
		".a": "dot", "a.": "dot", ".": "dot", "a..b": `".."`, "a.lock": ".lock", strings.Repeat("x", 251): "251 bytes",
	} {
		wantInvalid(t, lance.CheckTagName(name), want)
	}
}

// TestTagFiles reads files that pylance 14.0.2 wrote, and writes them again to the byte.
func TestTagFiles(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 11, 29, 13, 37, 47, 900341756, time.UTC)
	onBranch := time.Date(2026, 11, 29, 13, 37, 47, 901277538, time.UTC)
	for file, want := range map[string]lance.Tag{
		"refs/tag_main.json": {
			Name: "v1.0", Version: 1, ManifestSize: 436, CreatedAt: created,
			UpdatedAt: time.Date(2026, 11, 29, 13, 37, 47, 907153008, time.UTC),
		},
		"refs/tag_branch.json": {
			Name: "on-branch", Branch: "feature/x", Version: 2, ManifestSize: 502, CreatedAt: onBranch, UpdatedAt: onBranch,
		},
		"refs/tag_metadata.json": {
			Name: "v1.0", Version: 1, ManifestSize: 436, CreatedAt: created,
			UpdatedAt: time.Date(2026, 11, 29, 13, 37, 47, 907153008, time.UTC), Metadata: map[string]string{"k": "<v>&"},
		},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			data := readFile(t, file)
			got, err := lance.ParseTag(want.Name, data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("ParseTag (-want +got):\n%s", diff)
			}
			written, err := lance.MarshalTag(got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(data), string(written)); diff != "" {
				t.Errorf("MarshalTag (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseTagOfOlderClients(t *testing.T) {
	t.Parallel()
	got, err := lance.ParseTag("old", []byte(`{"branch":"main","version":18446744073709551615,"manifestSize":7,"metadata":null,"x":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lance.Tag{Name: "old", Version: -1, ManifestSize: 7}, got); diff != "" {
		t.Errorf("ParseTag (-want +got):\n%s", diff)
	}
	if !got.Version.Detached() {
		t.Error("the version is not detached")
	}
}

func TestMarshalTag(t *testing.T) {
	t.Parallel()
	second := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	for _, tc := range []struct {
		at   time.Time
		want string
	}{
		{time.Time{}, ""},
		{second, `  "createdAt": "2026-01-02T02:04:05Z",` + "\n"},
		{second.Add(20 * time.Millisecond), `  "createdAt": "2026-01-02T02:04:05.020Z",` + "\n"},
		{second.Add(20 * time.Microsecond), `  "createdAt": "2026-01-02T02:04:05.000020Z",` + "\n"},
		{second.Add(20), `  "createdAt": "2026-01-02T02:04:05.000000020Z",` + "\n"},
	} {
		got, err := lance.MarshalTag(lance.Tag{Name: "t", Version: -1, ManifestSize: 9, CreatedAt: tc.at})
		if err != nil {
			t.Fatal(err)
		}
		want := "{\n  \"branch\": null,\n  \"version\": 18446744073709551615,\n" + tc.want + "  \"manifestSize\": 9,\n  \"metadata\": {}\n}"
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("MarshalTag (-want +got):\n%s", diff)
		}
	}
	_, err := lance.MarshalTag(lance.Tag{Name: "a/b", Version: 1})
	wantInvalid(t, err, "tag name")
	_, err = lance.MarshalTag(lance.Tag{Name: "a", Branch: "a b", Version: 1})
	wantInvalid(t, err, "branch name")
}

func TestParseTagRefuses(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		``:                                  "not a JSON object",
		`[]`:                                "not a JSON object",
		`null`:                              "not a JSON object",
		`{"version":1`:                      "not a JSON object",
		`{}`:                                `lacks the member "version"`,
		`{"version":1}`:                     `lacks the member "manifestSize"`,
		`{"Version":1,"manifestSize":1}`:    `lacks the member "version"`,
		`{"version":null,"manifestSize":1}`: `lacks the member "version"`,
		`{"version":-1,"manifestSize":1}`:   `member "version"`,
		`{"version":1.5,"manifestSize":1}`:  `member "version"`,
		`{"version":"1","manifestSize":1}`:  `member "version"`,
		`{"version":1,"manifestSize":"x"}`:  `member "manifestSize"`,
		`{"branch":"../x","version":1}`:     `member "branch"`,
		`{"branch":1,"version":1}`:          `member "branch"`,
		`{"version":1,"manifestSize":1,"createdAt":"yesterday"}`:                 `member "createdAt"`,
		`{"version":1,"manifestSize":1,"updatedAt":"0000-01-01T00:00:00+01:00"}`: "out of range",
		`{"version":1,"manifestSize":1,"updatedAt":"9999-12-31T23:59:59-01:00"}`: "out of range",
	} {
		_, err := lance.ParseTag("t", []byte(data))
		wantCorrupt(t, err, want)
	}
}

func TestTagKeys(t *testing.T) {
	t.Parallel()
	if got, want := lance.TagKey("p/t.lance", "v1.0"), "p/t.lance/_refs/tags/v1.0.json"; got != want {
		t.Errorf("TagKey = %q, want %q", got, want)
	}
	if got, want := lance.TagKey("", "v1"), "_refs/tags/v1.json"; got != want {
		t.Errorf("TagKey = %q, want %q", got, want)
	}
	if got, ok := lance.TagFromFile("v1.0.json"); got != "v1.0" || !ok {
		t.Errorf("TagFromFile = %q, %v", got, ok)
	}
	for _, file := range []string{"v1", "v1.json#1", ".json", "%C3%A9.json", "a b.json"} {
		if got, ok := lance.TagFromFile(file); ok {
			t.Errorf("TagFromFile(%q) = %q, want none", file, got)
		}
	}
}

// FuzzParseTag holds that what is read can be written, and reads back the same.
func FuzzParseTag(f *testing.F) {
	f.Add(readFile(f, "refs/tag_main.json"))
	f.Add(readFile(f, "refs/tag_metadata.json"))
	f.Add([]byte(`{"version":1,"manifestSize":0,"createdAt":"0000-01-01T00:00:00+01:00"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tag, err := lance.ParseTag("t", data)
		if err != nil {
			return
		}
		written, err := lance.MarshalTag(tag)
		if err != nil {
			t.Fatalf("MarshalTag(%+v): %v", tag, err)
		}
		again, err := lance.ParseTag("t", written)
		if err != nil {
			t.Fatalf("ParseTag(%s): %v", written, err)
		}
		if diff := cmp.Diff(tag, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("round trip (-want +got):\n%s", diff)
		}
	})
}
