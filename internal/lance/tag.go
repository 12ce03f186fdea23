package lance

import (
	"strings"
	"time"
)

// Tag is a name for one version of one branch of a table. Its branch says where the version is; the tag itself belongs to
// the whole table (spec section 9d).
type Tag struct {
	Name         string
	Branch       Branch
	Version      VersionNumber
	ManifestSize int64             // bytes of the version's manifest
	CreatedAt    time.Time         // zero where the file has none (older clients)
	UpdatedAt    time.Time         // zero where the file has none
	Metadata     map[string]string // nil and empty are the same
}

// tagFile is the JSON form of a tag, in the order in which Lance writes it.
type tagFile struct {
	Branch       *string           `json:"branch"`
	Version      uint64            `json:"version"`
	CreatedAt    string            `json:"createdAt,omitempty"`
	UpdatedAt    string            `json:"updatedAt,omitempty"`
	ManifestSize int64             `json:"manifestSize"`
	Metadata     map[string]string `json:"metadata"`
}

// CheckTagName reports what is wrong with a tag's name, nil if nothing is. The rules are those of Lance (spec section 9d)
// with one more: ASCII only. Lance lets a client create the tag "é", writes it as "%C3%A9.json", and then fails every listing of
// that table's tags, because it encodes the name again; such a tag must not come from here. The error is an *InvalidError.
func CheckTagName(name string) error {
	const kind = "tag name"
	switch {
	case name == "":
		return invalid(kind, name, "is empty")
	case strings.ContainsFunc(name, func(r rune) bool { return !isASCIIAlphanumeric(r) && !strings.ContainsRune(".-_", r) }):
		return invalid(kind, name, `contains a character other than ASCII letters, digits, ".", "-" and "_"`)
	case strings.HasPrefix(name, ".") || strings.HasSuffix(name, "."):
		return invalid(kind, name, "begins or ends with a dot")
	case strings.Contains(name, ".."):
		return invalid(kind, name, `contains ".."`)
	case strings.HasSuffix(name, ".lock"):
		return invalid(kind, name, `ends in ".lock"`)
	case len(name)+len(refSuffix) > maxRefFileBytes:
		return invalid(kind, name, "has %d bytes: at most %d are allowed", len(name), maxRefFileBytes-len(refSuffix))
	}
	return nil
}

// TagsPrefix returns the prefix of the keys of a table's tag files, "<table>/_refs/tags/".
func TagsPrefix(tableDir string) string { return joinKey(tableDir, "_refs/tags/") }

// TagKey returns the key of a tag's file. The name has passed CheckTagName.
func TagKey(tableDir, name string) string { return TagsPrefix(tableDir) + refFile(name) }

// TagFromFile returns the name of the tag that a file below TagsPrefix holds, and false where the file is not a tag's.
func TagFromFile(file string) (string, bool) {
	name, ok := strings.CutSuffix(file, refSuffix)
	return name, ok && CheckTagName(name) == nil
}

// ParseTag reads a tag file. Detached versions, which Lance writes as numbers beyond int64, come out negative. The error is a
// *CorruptError: not a JSON object, a member missing or of the wrong type, or an impossible branch name.
func ParseTag(name string, data []byte) (Tag, error) {
	r := parseRef("tag file "+quote(name), data)
	t := Tag{Name: name, Branch: r.branch("branch")}
	var version uint64
	r.required("version", &version)
	r.required("manifestSize", &t.ManifestSize)
	t.CreatedAt = r.time("createdAt")
	t.UpdatedAt = r.time("updatedAt")
	r.optional("metadata", &t.Metadata)
	t.Version = VersionNumber(version)
	if r.err != nil {
		return Tag{}, r.err
	}
	return t, nil
}

// MarshalTag writes a tag file, byte for byte as Lance does (with the metadata in order of its keys, where Lance has none). The
// error is an *InvalidError: the tag's name or branch cannot be one.
func MarshalTag(t Tag) ([]byte, error) {
	if err := CheckTagName(t.Name); err != nil {
		return nil, err
	}
	if _, err := ParseBranchName(string(t.Branch)); err != nil {
		return nil, err
	}
	return marshalRef(tagFile{
		Branch:       refBranch(t.Branch),
		Version:      uint64(t.Version),
		CreatedAt:    refTime(t.CreatedAt),
		UpdatedAt:    refTime(t.UpdatedAt),
		ManifestSize: t.ManifestSize,
		Metadata:     refMetadata(t.Metadata),
	})
}

// refTime formats a time as Lance does: UTC, with as many groups of three digits after the second as it needs.
func refTime(t time.Time) string {
	t = t.UTC()
	switch ns := t.Nanosecond(); {
	case t.IsZero():
		return ""
	case ns == 0:
		return t.Format("2006-01-02T15:04:05Z")
	case ns%1e6 == 0:
		return t.Format("2006-01-02T15:04:05.000Z")
	case ns%1e3 == 0:
		return t.Format("2006-01-02T15:04:05.000000Z")
	default:
		return t.Format("2006-01-02T15:04:05.000000000Z")
	}
}
