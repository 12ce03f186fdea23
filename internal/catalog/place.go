package catalog

import (
	"context"
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

// newLocation returns a directory of its own for an incarnation of a table (C1, design section 6), in the place of its namespace, or of the
// first root where that has none ("" in space): its id, which is never reused, then as much of its name as is harmless in a path, a URI
// and an access policy. The error is of code InvalidTableState where the namespace's place is in no allowed root any more.
func (c *Catalog) newLocation(id lance.ObjectID, name, space string) (string, error) {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], uint64(id))
	short := strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(raw[:]))
	at := c.opts.Roots[0].Location
	if space != "" {
		var err error
		if at, err = lance.ParseLocation(space); err != nil {
			return "", err
		}
	}
	loc, err := at.Join(short + "_" + harmless(name) + ".lance")
	if _, ok := c.rootOf(loc); err == nil && !ok {
		err = api.Errorf(api.CodeInvalidTableState, "tables of this namespace go to %s, which is in none of the roots that this server may use: allow its root again", at)
	}
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

// parseGiven reads a location that a caller asks for: a URI, an absolute path, or a path relative to the first root.
func (c *Catalog) parseGiven(given string) (lance.Location, error) {
	absolute := given
	if given != "" && !strings.HasPrefix(given, "/") && !strings.Contains(given, ":") {
		absolute = c.opts.Roots[0].Location.String() + "/" + given
	}
	loc, err := lance.ParseLocation(absolute)
	if err != nil {
		return loc, err
	}
	for segment := range strings.SplitSeq(loc.Key(), "/") {
		if len(segment) > lance.MaxNameBytes {
			return loc, fmt.Errorf("location %q has a directory name of %d bytes: at most %d are allowed", given[:80]+"…", len(segment), lance.MaxNameBytes)
		}
	}
	return loc, nil
}

// givenLocation checks the location that a caller asks for a table, and returns its canonical form. It lies below an allowed root, away
// from the root's marker, and around no other root.
func (c *Catalog) givenLocation(ctx context.Context, given string) (string, error) {
	loc, err := c.parseGiven(given)
	if err == nil {
		err = c.checkPlace(loc, given)
	}
	if err != nil {
		return "", api.Errorf(api.CodeInvalidInput, "%v", err)
	}
	return loc.String(), c.checkGiven(ctx, loc)
}

// checkPlace refuses a location for a table that has the wrong place among the roots.
func (c *Catalog) checkPlace(loc lance.Location, given string) error {
	if _, ok := c.rootOf(loc); !ok {
		return c.outside(given, "below")
	}
	for _, r := range c.opts.Roots {
		if loc.Covers(r.Location) {
			return fmt.Errorf("location %q is, or contains, the root %s, which is for many tables: choose one of its own", given, r.Location)
		}
	}
	return c.besideMarkers(loc)
}

// checkSpace refuses a place for the tables of a namespace that is not an allowed root or inside one.
func (c *Catalog) checkSpace(loc lance.Location) error {
	for _, r := range c.opts.Roots {
		if r.Location.Covers(loc) {
			return c.besideMarkers(loc)
		}
	}
	return c.outside(loc.String(), "in")
}

// outside is the error for a location that is not where it must be.
func (c *Catalog) outside(given, where string) error {
	roots := make([]string, len(c.opts.Roots))
	for i, r := range c.opts.Roots {
		roots[i] = r.Location.String()
	}
	return fmt.Errorf("location %q lies outside the allowed roots: it must lie %s %s", given, where, strings.Join(roots, " or "))
}

// besideMarkers refuses a location at or below the marker of a root: on an object store it would be a place like any other.
func (c *Catalog) besideMarkers(loc lance.Location) error {
	for _, r := range c.opts.Roots {
		if key := r.marker(); loc.Scheme == r.Location.Scheme && loc.Authority == r.Location.Authority && (loc.Key() == key || strings.HasPrefix(loc.Key(), key+"/")) {
			return fmt.Errorf("location %s is the marker of the root %s: choose another name than %s", loc, r.Location, Marker)
		}
	}
	return nil
}
