package lance

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// VersionsDir is the directory of a chain that holds its manifests.
const VersionsDir = "_versions"

// NamingScheme says how the manifest of a version is named.
type NamingScheme int16

// The naming schemes of Lance. V2 sorts the newest version first and is what writers ask for.
const (
	SchemeV2 NamingScheme = 2
	SchemeV1 NamingScheme = 1
)

const manifestSuffix = ".manifest"

// String returns "V1" or "V2".
func (s NamingScheme) String() string {
	if s == SchemeV1 {
		return "V1"
	}
	return "V2"
}

// ManifestName returns the final name of a version's manifest inside its chain's _versions directory (client contract, fact 43):
// "<version>.manifest" in V1, the 20 digits of 2^64-1-version in V2, "d<u64>.manifest" for a detached version in both.
func ManifestName(v VersionNumber, s NamingScheme) string {
	switch {
	case v.Detached():
		return "d" + strconv.FormatUint(uint64(v), 10) + manifestSuffix
	case s == SchemeV1:
		return strconv.FormatInt(int64(v), 10) + manifestSuffix
	default:
		return fmt.Sprintf("%020d%s", math.MaxUint64-uint64(v), manifestSuffix)
	}
}

// ParseManifestName is the inverse of ManifestName. It reports false for anything that is not exactly such a name: staged
// names, temporary files, version 0 and numbers beyond int64.
func ParseManifestName(name string) (VersionNumber, NamingScheme, bool) {
	digits, ok := strings.CutSuffix(name, manifestSuffix)
	if !ok {
		return 0, 0, false
	}
	var v VersionNumber
	var s NamingScheme
	if d, detached := strings.CutPrefix(digits, "d"); detached {
		n, err := strconv.ParseUint(d, 10, 64)
		if err != nil || n < 1<<63 {
			return 0, 0, false
		}
		v, s = VersionNumber(n), SchemeV2
	} else {
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return 0, 0, false
		}
		s = SchemeV1
		if len(digits) == 20 {
			n, s = math.MaxUint64-n, SchemeV2
		}
		if n == 0 || n > math.MaxInt64 {
			return 0, 0, false
		}
		v = VersionNumber(n)
	}
	if ManifestName(v, s) != name {
		return 0, 0, false
	}
	return v, s, true
}

// CheckStagedName reports whether name is a staged manifest for the given version: its final name, a hyphen and the writer's
// own suffix (a UUID), of letters, digits and hyphens only (C3; client contract, fact 43).
func CheckStagedName(name string, v VersionNumber, s NamingScheme) bool {
	suffix, ok := strings.CutPrefix(name, ManifestName(v, s)+"-")
	if !ok || suffix == "" || len(suffix) > 64 {
		return false
	}
	for i := range len(suffix) {
		c := suffix[i]
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}
