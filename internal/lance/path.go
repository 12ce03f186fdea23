package lance

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// branchesDir is the directory of a table that holds the chains of its branches (client contract, fact 44).
const branchesDir = "tree"

// ChainDir returns the directory of a chain: the table's own for Main, "<table>/tree/<branch>" for a branch, whose name may
// hold slashes. It takes and returns store keys, raw and without a leading slash; the table's may be "", the store's root.
func ChainDir(tableDir string, b Branch) string {
	if b == Main {
		return tableDir
	}
	return joinKey(tableDir, branchesDir+"/"+string(b))
}

// VersionsPrefix returns the prefix of the keys of a chain's manifests, "<chain>/_versions/". It ends in a slash, as the
// directory that SplitManifestPath returns does, so the two compare directly.
func VersionsPrefix(tableDir string, b Branch) string {
	return joinKey(ChainDir(tableDir, b), VersionsDir) + "/"
}

// ManifestKey returns the key under which a version's manifest is published (C6).
func ManifestKey(tableDir string, b Branch, v VersionNumber, s NamingScheme) string {
	return VersionsPrefix(tableDir, b) + ManifestName(v, s)
}

// joinKey joins a directory and what lies below it. The store's root is the empty directory.
func joinKey(dir, below string) string {
	if dir == "" {
		return below
	}
	return dir + "/" + below
}

// SplitManifestPath splits a manifest_path as clients send it (client contract, fact 42): an object path relative to the root
// of the store, raw, not percent-encoded. A leading "/" is tolerated and removed. dir keeps its trailing slash, as
// VersionsPrefix does, and is "" for a bare name.
//
// The error is an *InvalidError: the path is empty, is a URI, ends in a slash, or holds an empty segment, "." or "..", or a
// control character. Nothing is normalized: a path is either in the one form, or refused, so that comparing dir with the
// expected directory is a complete check that the object belongs to that chain (C3; case D26).
func SplitManifestPath(path string) (dir, name string, err error) {
	const kind = "manifest path"
	key := strings.TrimPrefix(path, "/")
	switch {
	case key == "":
		return "", "", invalid(kind, path, "is empty")
	case isURI(key):
		return "", "", invalid(kind, path, "is a URI: give the path relative to the store's root, without scheme and bucket")
	}
	if why := checkSegments(key); why != "" {
		return "", "", invalid(kind, path, why)
	}
	i := strings.LastIndexByte(key, '/') + 1
	return key[:i], key[i:], nil
}

// checkSegments says what is wrong with a store key, "" if nothing is.
func checkSegments(key string) string {
	if !utf8.ValidString(key) {
		return "is not valid UTF-8"
	}
	if strings.ContainsFunc(key, unicode.IsControl) {
		return "contains a control character"
	}
	for segment := range strings.SplitSeq(key, "/") {
		switch segment {
		case "":
			return `has an empty segment: write single slashes, and none at the end`
		case ".", "..":
			return `holds "." or "..": write the path out`
		}
	}
	return ""
}

// isURI reports whether s begins with a scheme and "://".
func isURI(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return ok && isScheme(scheme)
}
