package lance

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of identifiers.
const (
	// MaxNameBytes is the length of the longest name, in bytes of UTF-8: what one file name can hold.
	MaxNameBytes = 255
	// MaxDepth is the number of names in the longest path.
	MaxDepth = 64
	// maxDelimiterBytes bounds the delimiter that a request may choose.
	maxDelimiterBytes = 64
)

// DefaultDelimiter joins the names of an id where the request names no other (spec section 3).
const DefaultDelimiter = "$"

// CheckName reports what is wrong with the name of a namespace or a table, nil if nothing is: it must be valid UTF-8 of 1 to
// MaxNameBytes bytes, neither "." nor "..", without "/", without control characters, and with no white space at either end
// (two names that look the same would be different tables). Everything else is a name; case and Unicode normalization count.
// The error is an *InvalidError.
func CheckName(name string) error {
	const kind = "name"
	switch {
	case name == "":
		return invalid(kind, name, "is empty: give every namespace and table a name")
	case len(name) > MaxNameBytes:
		return invalid(kind, name, "has %d bytes: at most %d are allowed", len(name), MaxNameBytes)
	case !utf8.ValidString(name):
		return invalid(kind, name, "is not valid UTF-8")
	case name == "." || name == "..":
		return invalid(kind, name, `"." and ".." are reserved: choose another name`)
	case strings.Contains(name, "/"):
		return invalid(kind, name, `contains "/": a name is one level, so write its parts as separate names`)
	case strings.ContainsFunc(name, unicode.IsControl):
		return invalid(kind, name, "contains a control character")
	case strings.TrimSpace(name) != name:
		return invalid(kind, name, "begins or ends with white space: remove it")
	}
	return nil
}

// ParseID splits the joined form of an id, already decoded once, at the delimiter. The bare delimiter is the root and gives an
// empty path (client contract, fact 4). Unlike the reference server it does not drop empty parts, so that "a$$b" and "a$b"
// never name one object. The error is an *InvalidError: the delimiter is empty or too long, the id has an empty part or more
// than MaxDepth parts, or a part is not a name.
func ParseID(joined, delimiter string) ([]string, error) {
	if err := checkDelimiter(delimiter); err != nil {
		return nil, err
	}
	switch {
	case joined == delimiter:
		return nil, nil
	case joined == "":
		return nil, invalid("id", joined, "is empty: the root is written as the bare delimiter, %s", quote(delimiter))
	case strings.Count(joined, delimiter) >= MaxDepth:
		return nil, invalid("id", joined, "has more than %d levels", MaxDepth)
	}
	parts := strings.Split(joined, delimiter)
	if slices.Contains(parts, "") {
		return nil, invalid("id", joined, "has an empty name before, after or between delimiters %s", quote(delimiter))
	}
	for _, part := range parts {
		if err := CheckName(part); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// JoinID returns the joined form of a path: its names with the delimiter between them, or the bare delimiter for the root.
// It is the inverse of ParseID for paths that pass CheckPath with that delimiter.
func JoinID(parts []string, delimiter string) string {
	if len(parts) == 0 {
		return delimiter
	}
	return strings.Join(parts, delimiter)
}

// ShowID joins an id with the default delimiter, for a person to read: in messages, where nothing is read back from it.
func ShowID(id []string) string { return JoinID(id, DefaultDelimiter) }

// PathKey returns a map key for a path in list form; names hold no control characters, so no two paths share one (case A3).
func PathKey(id []string) string { return strings.Join(id, "\x1f") }

// CheckPath checks an id in list form. With a delimiter that is not empty it also demands that the path can be written with
// it: no name may contain it, and joining and splitting must give the same names back ("a:" and "b" joined by "::" do not).
// Pass "" where the request has no joined form (batch entries). The error is an *InvalidError.
func CheckPath(parts []string, delimiter string) error {
	if len(parts) > MaxDepth {
		return invalid("id", strings.Join(parts, DefaultDelimiter), "has %d levels: at most %d are allowed", len(parts), MaxDepth)
	}
	for _, part := range parts {
		if err := CheckName(part); err != nil {
			return err
		}
	}
	if delimiter == "" || len(parts) == 0 {
		return nil
	}
	if err := checkDelimiter(delimiter); err != nil {
		return err
	}
	for _, part := range parts {
		if strings.Contains(part, delimiter) {
			return invalid("name", part, "contains the delimiter %s of this request: send the request with another delimiter", quote(delimiter))
		}
	}
	if joined := JoinID(parts, delimiter); !slices.Equal(strings.Split(joined, delimiter), parts) {
		return invalid("id", joined, "reads differently once joined with delimiter %s: send the request with another delimiter", quote(delimiter))
	}
	return nil
}

func checkDelimiter(delimiter string) error {
	switch {
	case delimiter == "":
		return invalid("delimiter", delimiter, "is empty: leave the parameter out to get %s", quote(DefaultDelimiter))
	case len(delimiter) > maxDelimiterBytes:
		return invalid("delimiter", delimiter, "has %d bytes: at most %d are allowed", len(delimiter), maxDelimiterBytes)
	case !utf8.ValidString(delimiter):
		return invalid("delimiter", delimiter, "is not valid UTF-8")
	}
	return nil
}

// DecodeSegment decodes one segment of a raw URL path, exactly once. A raw "+" is a space and "%2B" a plus, because clients
// write ids in form encoding (client contract, fact 3; spec section 3, the + trap). The error is an *InvalidError: a "%" that
// two hexadecimal digits do not follow, or bytes that are not UTF-8.
func DecodeSegment(escaped string) (string, error) {
	decoded, err := url.QueryUnescape(escaped)
	if err != nil {
		return "", invalid("path segment", escaped, `holds a "%" without two hexadecimal digits: write a percent sign as %25`)
	}
	if !utf8.ValidString(decoded) {
		return "", invalid("path segment", escaped, "is not valid UTF-8 once decoded")
	}
	return decoded, nil
}
