package lance_test

import (
	"math"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/internal/lance"
)

func TestManifestName(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		v      lance.VersionNumber
		scheme lance.NamingScheme
		want   string
	}{
		{1, lance.SchemeV1, "1.manifest"},
		{1, lance.SchemeV2, "18446744073709551614.manifest"},
		{20, lance.SchemeV2, "18446744073709551595.manifest"},
		{math.MaxInt64, lance.SchemeV1, "9223372036854775807.manifest"},
		{math.MaxInt64, lance.SchemeV2, "09223372036854775808.manifest"},
		{-1, lance.SchemeV2, "d18446744073709551615.manifest"},
		{math.MinInt64, lance.SchemeV2, "d9223372036854775808.manifest"},
	} {
		if got := lance.ManifestName(tc.v, tc.scheme); got != tc.want {
			t.Errorf("ManifestName(%d, %v) = %q, want %q", tc.v, tc.scheme, got, tc.want)
		}
		v, scheme, ok := lance.ParseManifestName(tc.want)
		if v != tc.v || scheme != tc.scheme || !ok {
			t.Errorf("ParseManifestName(%q) = %d, %v, %v, want %d, %v", tc.want, v, scheme, ok, tc.v, tc.scheme)
		}
	}
	if got, want := lance.ManifestName(-1, lance.SchemeV1), "d18446744073709551615.manifest"; got != want {
		t.Errorf("ManifestName of a detached version in V1 = %q, want %q", got, want)
	}
}

func TestParseManifestNameRefuses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", ".manifest", "1", "1.manifest-0a", "18446744073709551614.manifest-9b2d", "x.manifest", "-1.manifest", "+1.manifest", "01.manifest",
		"0.manifest", "18446744073709551615.manifest", "9223372036854775808.manifest", "09223372036854775807.manifest", "00000000000000000001.manifest",
		"18446744073709551616.manifest", "d1.manifest", "d09223372036854775808.manifest", "d.manifest", "d-1.manifest", "latest_version_hint.json",
		"18446744073709551614.manifest#1", "_versions/1.manifest", "1.MANIFEST", " 1.manifest",
	} {
		if v, scheme, ok := lance.ParseManifestName(name); ok {
			t.Errorf("ParseManifestName(%q) = %d, %v, want none", name, v, scheme)
		}
	}
}

func TestCheckStagedName(t *testing.T) {
	t.Parallel()
	const final, id = "18446744073709551614.manifest", "9b2d0f5e-1111-4a4a-8f00-0123456789AB"
	for _, tc := range []struct {
		name   string
		v      lance.VersionNumber
		scheme lance.NamingScheme
		want   bool
	}{
		{final + "-" + id, 1, lance.SchemeV2, true},
		{"1.manifest-" + id, 1, lance.SchemeV1, true},
		{"d18446744073709551615.manifest-" + id, -1, lance.SchemeV2, true},
		{final + "-x", 1, lance.SchemeV2, true},
		{final, 1, lance.SchemeV2, false},
		{final + "-", 1, lance.SchemeV2, false},
		{final + "-" + id, 2, lance.SchemeV2, false},
		{final + "-" + id, 1, lance.SchemeV1, false},
		{final + "-a/b", 1, lance.SchemeV2, false},
		{final + "-../x", 1, lance.SchemeV2, false},
		{final + "-a.b", 1, lance.SchemeV2, false},
		{final + "-é", 1, lance.SchemeV2, false},
		{final + "_" + id, 1, lance.SchemeV2, false},
		{final + "-" + strings.Repeat("a", 64), 1, lance.SchemeV2, true},
		{final + "-" + strings.Repeat("a", 65), 1, lance.SchemeV2, false},
	} {
		if got := lance.CheckStagedName(tc.name, tc.v, tc.scheme); got != tc.want {
			t.Errorf("CheckStagedName(%q, %d, %v) = %v, want %v", tc.name, tc.v, tc.scheme, got, tc.want)
		}
	}
}

func TestNamingSchemeString(t *testing.T) {
	t.Parallel()
	if v1, v2 := lance.SchemeV1.String(), lance.SchemeV2.String(); v1 != "V1" || v2 != "V2" {
		t.Errorf("got %q and %q, want V1 and V2", v1, v2)
	}
}

// FuzzParseManifestName holds that a name is that of one version in one scheme, and of no other.
func FuzzParseManifestName(f *testing.F) {
	for _, seed := range []string{"1.manifest", "18446744073709551614.manifest", "d18446744073709551615.manifest", "x", "00000000000000000001.manifest"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		v, scheme, ok := lance.ParseManifestName(name)
		if !ok {
			return
		}
		if got := lance.ManifestName(v, scheme); got != name || v == 0 {
			t.Errorf("ParseManifestName(%q) = %d, %v, whose name is %q", name, v, scheme, got)
		}
		if !lance.CheckStagedName(name+"-x", v, scheme) {
			t.Errorf("%q is no staged name of version %d", name+"-x", v)
		}
	})
}
