package catalog

import (
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
)

// place is a table's directory in its storage.
type place struct {
	objects  objstore.Store
	dir      string // the directory's key
	root     Root
	location lance.Location
}

// final returns the key under which a version's manifest is published.
func (p place) final(b lance.Branch, v lance.VersionNumber, s lance.NamingScheme) string {
	return lance.ManifestKey(p.dir, b, v, s)
}

// staged returns the key of a staged manifest of a chain.
func (p place) staged(b lance.Branch, name string) string {
	return lance.VersionsPrefix(p.dir, b) + name
}

// place finds the storage of a location.
func (c *Catalog) place(location string) (place, error) {
	loc, err := lance.ParseLocation(location)
	if err != nil {
		return place{}, err
	}
	root, ok := c.rootOf(loc)
	if !ok {
		return place{}, api.Errorf(api.CodeInvalidTableState, "the table lies at %s, which is in none of the roots that this server may use: allow its root again", location)
	}
	return place{objects: root.Objects, dir: loc.Key(), root: root, location: loc}, nil
}

// rootOf returns the allowed root that a location lies strictly inside of; of roots that lie in one another the innermost.
func (c *Catalog) rootOf(loc lance.Location) (Root, bool) {
	var in Root
	found := false
	for _, r := range c.opts.Roots {
		if r.Location.Covers(loc) && r.Location != loc && (!found || len(r.Location.Path) > len(in.Location.Path)) {
			in, found = r, true
		}
	}
	return in, found
}

// newLocation returns a directory of its own for an incarnation of a table (C1, design section 6): its id, which is never
// reused, then as much of its name as is harmless in a path, a URI and an access policy.
func (c *Catalog) newLocation(id lance.ObjectID, name string) (string, error) {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], uint64(id))
	short := strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(raw[:]))
	loc, err := c.opts.Roots[0].Location.Join(short + "_" + harmless(name) + ".lance")
	return loc.String(), err
}

const harmlessMax = 80

func harmless(name string) string {
	b := make([]byte, 0, len(name))
	for _, r := range name {
		if len(b) == harmlessMax {
			break
		}
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '-', r == '_':
			b = append(b, byte(r))
		default:
			b = append(b, '_')
		}
	}
	return string(b)
}

// givenLocation checks a location that a caller asks for, a URI, an absolute path, or a path relative to the first root, and
// returns its canonical form.
func (c *Catalog) givenLocation(given string) (string, error) {
	absolute := given
	if !strings.HasPrefix(given, "/") && !strings.Contains(given, ":") {
		absolute = c.opts.Roots[0].Location.String() + "/" + given
	}
	loc, err := lance.ParseLocation(absolute)
	if err != nil {
		return "", err
	}
	for segment := range strings.SplitSeq(loc.Key(), "/") {
		if len(segment) > lance.MaxNameBytes {
			return "", fmt.Errorf("location %q has a directory name of %d bytes: at most %d are allowed", given[:80]+"…", len(segment), lance.MaxNameBytes)
		}
	}
	if _, ok := c.rootOf(loc); !ok {
		roots := make([]string, len(c.opts.Roots))
		for i, r := range c.opts.Roots {
			roots[i] = r.Location.String()
		}
		return "", fmt.Errorf("location %q lies outside the allowed roots: it must lie below %s", given, strings.Join(roots, " or "))
	}
	return loc.String(), nil
}
