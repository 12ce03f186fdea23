package lance

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLocationBytes bounds the path of a location, so that the keys of manifests below it, with a branch, stay within the
// 1024 bytes that object stores allow.
const maxLocationBytes = 768

// Location is the place of a table, a namespace's root or a store, in canonical form: equal places have equal Locations
// (cases E9, F1, F5). Build it with ParseLocation.
type Location struct {
	Scheme    string // "file", "s3", "gs", "az", "abfss" or "memory"
	Authority string // the bucket or container ("" for file)
	Path      string // decoded, begins with "/" and does not end in one; "" for the root of the store
}

// ParseLocation reads a location that a person or a client wrote, and returns its canonical form:
//
//   - an absolute path is a file location and is taken as it stands;
//   - of a URI the scheme is lower-cased (s3a and s3n become s3, gcs becomes gs), and the path is percent-decoded exactly
//     once, as Lance clients do for every scheme: "s3://b/a%20b" and "s3://b/a b" both name the key "a b";
//   - trailing slashes go and doubled slashes become one.
//
// The error is an *InvalidError: not an absolute path or URI, a Windows path, a scheme that no store serves, a missing or
// malformed bucket, a host in a file URI, a query, fragment or user name, an escape that is not two hexadecimal digits, a "." or ".."
// segment (also an encoded one), a control character, invalid UTF-8, or a path that is too long.
func ParseLocation(uri string) (Location, error) {
	const kind = "location"
	if why := checkText(uri); why != "" {
		return Location{}, invalid(kind, withoutSecrets(uri), why)
	}
	if strings.HasPrefix(uri, "/") {
		return newLocation(uri, Location{Scheme: "file", Path: uri})
	}
	scheme, rest, ok := strings.Cut(uri, ":")
	switch {
	case strings.HasPrefix(uri, `\\`) || ok && len(scheme) == 1:
		return Location{}, invalid(kind, withoutSecrets(uri), `is a Windows path: give a file URI ("file:///C:/dir")`)
	case !ok || !isScheme(scheme):
		return Location{}, invalid(kind, withoutSecrets(uri), `is neither an absolute path ("/data/t.lance") nor a URI ("s3://bucket/t.lance")`)
	case strings.ContainsAny(rest, "?#"):
		return Location{}, invalid(kind, withoutSecrets(uri), `has a query or a fragment: in a name write "?" as %3F and "#" as %23`)
	}
	loc := Location{Scheme: canonicalScheme(scheme)}
	escaped := rest
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		i := strings.IndexByte(after, '/')
		if i < 0 {
			i = len(after)
		}
		loc.Authority, escaped = after[:i], after[i:]
	} else if loc.Scheme != "file" || !strings.HasPrefix(rest, "/") {
		return Location{}, invalid(kind, withoutSecrets(uri), `lacks "//" after the scheme`)
	}
	if why := loc.checkAuthority(); why != "" {
		return Location{}, invalid(kind, withoutSecrets(uri), why)
	}
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return Location{}, invalid(kind, withoutSecrets(uri), `holds a "%" without two hexadecimal digits: write a percent sign as %25`)
	}
	loc.Path = path
	return newLocation(uri, loc)
}

// withoutSecrets is a URI as a message may show it: without a user's name and password, and without a query, which may hold a signature.
func withoutSecrets(uri string) string {
	if i := strings.IndexAny(uri, "?#"); i >= 0 {
		uri = uri[:i] + "?…"
	}
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return uri
	}
	authority, path, slash := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(authority, '@'); at >= 0 && strings.Contains(authority[:at], ":") {
		authority = "…" + authority[at:]
	}
	if slash {
		path = "/" + path
	}
	return scheme + "://" + authority + path
}

// newLocation brings the path of a location, already decoded, into canonical form. input is what the messages quote.
func newLocation(input string, loc Location) (Location, error) {
	var segments []string
	for segment := range strings.SplitSeq(loc.Path, "/") {
		if segment != "" {
			segments = append(segments, segment)
		}
	}
	loc.Path = strings.Join(segments, "/")
	if len(loc.Path) > maxLocationBytes {
		return Location{}, invalid("location", input, "has a path of %d bytes: at most %d are allowed", len(loc.Path), maxLocationBytes)
	}
	if loc.Path == "" {
		return loc, nil
	}
	if why := checkSegments(loc.Path); why != "" {
		return Location{}, invalid("location", input, why)
	}
	loc.Path = "/" + loc.Path
	return loc, nil
}

// canonicalScheme returns the spelling of a scheme that Lance clients know.
func canonicalScheme(scheme string) string {
	switch s := strings.ToLower(scheme); s {
	case "s3a", "s3n":
		return "s3"
	case "gcs":
		return "gs"
	default:
		return s
	}
}

// checkAuthority says what is wrong with the location's scheme and authority, "" if nothing is, and gives the authority its
// canonical spelling.
func (l *Location) checkAuthority() string {
	extra := ""
	switch l.Scheme {
	case "file":
		if l.Authority != "" && !strings.EqualFold(l.Authority, "localhost") {
			return `names a host: a file URI has three slashes ("file:///data/t.lance")`
		}
		l.Authority = ""
		return ""
	case "abfss":
		// "container@account.dfs.core.windows.net"; neither half tells cases apart.
		extra, l.Authority = "@", strings.ToLower(l.Authority)
	case "s3", "gs", "az", "memory":
	default:
		return `has a scheme that no store here serves: use file, s3, gs, az, abfss or memory`
	}
	if l.Authority == "" && l.Scheme != "memory" {
		return "names no bucket"
	}
	for _, r := range l.Authority {
		if !isASCIIAlphanumeric(r) && !strings.ContainsRune("-._"+extra, r) {
			return "has a bucket name with a character other than letters, digits, hyphens, dots and underscores"
		}
	}
	return ""
}

// String returns the location as a URI: "s3://bucket/dir/t.lance", "file:///dir/t.lance". What a URI path cannot hold as it
// is, is percent-encoded; by experiment pylance 14.0.2 opens the encoded form of every name (space, "#", "?", "%", backslash,
// non-ASCII), but misreads "#", "?", "%20" and backslash in a raw one. ParseLocation returns the same Location for it.
func (l Location) String() string {
	path := l.Path
	if path == "" && l.Scheme == "file" {
		path = "/"
	}
	return l.Scheme + "://" + l.Authority + escapePath(path)
}

// Key returns the location's path relative to the root of its store, raw and without a leading slash; "" for the root.
func (l Location) Key() string { return strings.TrimPrefix(l.Path, "/") }

// Covers reports whether other is this location or lies inside it: of two tables' locations neither may cover the other
// (case F1). "s3://b/x" covers "s3://b/x/y" and not "s3://b/xy".
func (l Location) Covers(other Location) bool {
	if l.Scheme != other.Scheme || l.Authority != other.Authority {
		return false
	}
	below, ok := strings.CutPrefix(other.Path, l.Path)
	return ok && (below == "" || below[0] == '/')
}

// Join returns the location of something directly inside this one. The name is raw; the error is an *InvalidError where it is
// not a single path segment, or makes the path too long.
func (l Location) Join(name string) (Location, error) {
	if name == "" || strings.Contains(name, "/") {
		return Location{}, invalid("directory name", name, `is empty or contains "/": give one segment`)
	}
	if why := checkText(name); why != "" {
		return Location{}, invalid("directory name", name, why)
	}
	l.Path += "/" + name
	return newLocation(name, l)
}

// checkText says what keeps s from being part of any location, "" if nothing does (case F9).
func checkText(s string) string {
	switch {
	case s == "":
		return "is empty"
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "contains a control character"
	}
	return ""
}

// escapePath percent-encodes the bytes of a path that RFC 3986 does not allow in one.
func escapePath(path string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		if isASCIIAlphanumeric(rune(c)) || strings.IndexByte("/-._~!$&'()*+,;=:@", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

// isScheme reports whether s has the form of a URI scheme (RFC 3986, section 3.1).
func isScheme(s string) bool {
	for i, r := range s {
		letter := 'a' <= r|0x20 && r|0x20 <= 'z'
		if !letter && (i == 0 || (r < '0' || r > '9') && !strings.ContainsRune("+-.", r)) {
			return false
		}
	}
	return s != ""
}

func isASCIIAlphanumeric(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}
