package lance

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Branch is the name of a branch. Main is the empty string: the wire's absent, "" and "main" all mean it.
type Branch string

// Main is the branch that every table has.
const Main Branch = ""

// String returns the branch's name, "main" for Main.
func (b Branch) String() string {
	if b == Main {
		return "main"
	}
	return string(b)
}

// BranchRef is what a branch's reference file says. Main has none.
type BranchRef struct {
	Name          Branch
	ParentBranch  Branch
	ParentVersion VersionNumber // the version that it forks from, and the number of its own first version (C5)
	CreatedAt     int64         // Unix seconds
	ManifestSize  int64         // bytes of the parent version's manifest
	// Lineage is the branch's identity: its forks from Main on, each with the version forked from and a unique id. Names can be
	// reused after a deletion, lineages cannot.
	Lineage  []Fork
	Metadata map[string]string // nil and empty are the same
}

// Fork is one step of a branch's lineage.
type Fork struct {
	Version VersionNumber // of the parent
	ID      string        // a UUID, 32 lower-case hexadecimal digits
}

// branchFile is the JSON form of a branch, in the order in which Lance writes it.
type branchFile struct {
	ParentBranch  *string           `json:"parentBranch"`
	Identifier    lineageFile       `json:"identifier"`
	ParentVersion uint64            `json:"parentVersion"`
	CreateAt      int64             `json:"createAt"`
	ManifestSize  int64             `json:"manifestSize"`
	Metadata      map[string]string `json:"metadata"`
}

type lineageFile struct {
	VersionMapping [][2]any `json:"version_mapping"` // pairs of version and id
}

// CheckBranchName reports what is wrong with the name of a branch other than Main, nil if nothing is. The rules are those of
// Lance (spec section 11), and what follows from them: no "." segment, and a file name of at most 255 bytes once encoded. The
// error is an *InvalidError.
func CheckBranchName(name string) error {
	const kind = "branch name"
	switch {
	case name == "":
		return invalid(kind, name, "is empty")
	case name == "main":
		return invalid(kind, name, "is reserved for the default branch")
	case strings.Contains(name, ".."):
		return invalid(kind, name, `contains ".."`)
	case strings.HasSuffix(name, ".lock"):
		return invalid(kind, name, `ends in ".lock"`)
	case len(refFile(name)) > maxRefFileBytes:
		return invalid(kind, name, "is too long: its file name would have %d bytes, and at most %d are allowed", len(refFile(name)), maxRefFileBytes)
	}
	for segment := range strings.SplitSeq(name, "/") {
		switch {
		case segment == "":
			return invalid(kind, name, `has an empty segment: write single slashes, and none at either end`)
		case segment == ".":
			return invalid(kind, name, `has "." as a segment`)
		case strings.ContainsFunc(segment, func(r rune) bool { return !isRefRune(r) }):
			return invalid(kind, name, `contains a character other than letters, digits, ".", "-", "_" and "/"`)
		}
	}
	return nil
}

// ParseBranchName reads a branch as it travels on the wire: absent, "" and "main" are Main; anything else must pass
// CheckBranchName. The error is an *InvalidError.
func ParseBranchName(wire string) (Branch, error) {
	if wire == "" || wire == Main.String() {
		return Main, nil
	}
	if err := CheckBranchName(wire); err != nil {
		return Main, err
	}
	return Branch(wire), nil
}

// BranchesPrefix returns the prefix of the keys of a table's branch files, "<table>/_refs/branches/".
func BranchesPrefix(tableDir string) string { return joinKey(tableDir, "_refs/branches/") }

// BranchKey returns the key of a branch's file. The branch is not Main.
func BranchKey(tableDir string, b Branch) string {
	return BranchesPrefix(tableDir) + refFile(string(b))
}

// BranchFromFile returns the branch that a file below BranchesPrefix describes, and false where the file is not a branch's:
// another suffix, an impossible name, or one encoded otherwise than Lance does, which Lance would not find either.
func BranchFromFile(file string) (Branch, bool) {
	escaped, ok := strings.CutSuffix(file, refSuffix)
	if !ok {
		return Main, false
	}
	name, err := url.PathUnescape(escaped)
	if err != nil || CheckBranchName(name) != nil || refFile(name) != file {
		return Main, false
	}
	return Branch(name), true
}

// ParseBranch reads the file of a branch. A file of an older client, without an identifier, gets the lineage that Lance derives
// for it from its other members. The error is a *CorruptError: not a JSON object, a member missing or of the wrong type, or an
// impossible name of the parent.
func ParseBranch(name Branch, data []byte) (BranchRef, error) {
	r := parseRef("branch file "+quote(string(name)), data)
	b := BranchRef{Name: name, ParentBranch: r.branch("parentBranch")}
	var version uint64
	r.required("parentVersion", &version)
	r.required("createAt", &b.CreatedAt)
	r.required("manifestSize", &b.ManifestSize)
	r.optional("metadata", &b.Metadata)
	b.ParentVersion = VersionNumber(version)
	b.Lineage = r.lineage()
	if r.err != nil {
		return BranchRef{}, r.err
	}
	if b.Lineage == nil || slices.Equal(b.Lineage, []Fork{{ID: strings.Repeat("0", 32)}}) {
		b.Lineage = legacyLineage(b)
	}
	return b, nil
}

// lineage decodes the identifier, nil where there is none.
func (r *refFields) lineage() []Fork {
	var identifier struct {
		VersionMapping [][]json.RawMessage `json:"version_mapping"`
	}
	r.optional("identifier", &identifier)
	var forks []Fork
	for _, pair := range identifier.VersionMapping {
		var version uint64
		var id string
		if len(pair) != 2 || json.Unmarshal(pair[0], &version) != nil || json.Unmarshal(pair[1], &id) != nil {
			r.err = corrupt(r.what, `member "identifier": not a list of pairs of a version and an id`)
			return nil
		}
		forks = append(forks, Fork{Version: VersionNumber(version), ID: id})
	}
	return forks
}

// MarshalBranch writes the file of a branch, byte for byte as Lance does (with the metadata in order of its keys, where Lance
// has none). The error is an *InvalidError: the name or the parent's cannot be one, or the branch has no lineage.
func MarshalBranch(b BranchRef) ([]byte, error) {
	if err := CheckBranchName(string(b.Name)); err != nil {
		return nil, err
	}
	if _, err := ParseBranchName(string(b.ParentBranch)); err != nil {
		return nil, err
	}
	if len(b.Lineage) == 0 {
		return nil, invalid("branch", string(b.Name), "has no lineage: append its own fork to its parent's")
	}
	var lineage lineageFile
	for _, fork := range b.Lineage {
		lineage.VersionMapping = append(lineage.VersionMapping, [2]any{uint64(fork.Version), fork.ID})
	}
	return marshalRef(branchFile{
		ParentBranch:  refBranch(b.ParentBranch),
		Identifier:    lineage,
		ParentVersion: uint64(b.ParentVersion),
		CreateAt:      b.CreatedAt,
		ManifestSize:  b.ManifestSize,
		Metadata:      refMetadata(b.Metadata),
	})
}

// ForkedFrom returns the version of ancestor that b, or the branch between them that b descends from, was forked from, and
// false where b does not descend from ancestor. A branch that others descend from must not be deleted (spec section 9e, case
// H4). Every branch descends from Main, the zero BranchRef.
func (b BranchRef) ForkedFrom(ancestor BranchRef) (VersionNumber, bool) {
	n := len(ancestor.Lineage)
	if len(b.Lineage) <= n || !slices.Equal(b.Lineage[:n], ancestor.Lineage) {
		return 0, false
	}
	// 0 stands in the lineage that Lance derives for an older file, whose true ancestry nobody knows.
	v := b.Lineage[n].Version
	return v, v != 0
}

// legacyLineage derives the lineage of a branch whose file has none: one fork at version 0 whose id is two FNV-1a hashes
// of the file's other members, so that every reader sees the same one.
func legacyLineage(b BranchRef) []Fork {
	text := fmt.Sprintf("branch_name=%s\nparent_branch=%s\nparent_version=%d\ncreate_at=%d",
		string(b.Name), string(b.ParentBranch), uint64(b.ParentVersion), b.CreatedAt)
	const offset, prime = 0xcbf29ce484222325, 0x100000001b3
	hash := func(h uint64) uint64 {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * prime
		}
		return h
	}
	id := binary.BigEndian.AppendUint64(nil, hash(offset))
	id = binary.BigEndian.AppendUint64(id, hash(offset^0x9e3779b97f4a7c15))
	return []Fork{{ID: hex.EncodeToString(id)}}
}
