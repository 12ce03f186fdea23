package place

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

// Place is a table's directory in its storage.
type Place struct {
	Objects  objstore.Store // of the root
	Dir      string         // the directory's key
	Root     Root           // the allowed root that it lies in
	Location lance.Location
}

// Final returns the key under which a version's manifest is published.
func (p Place) Final(b lance.Branch, v lance.VersionNumber, s lance.NamingScheme) string {
	return lance.ManifestKey(p.Dir, b, v, s)
}

// Staged returns the key of a staged manifest of a chain.
func (p Place) Staged(b lance.Branch, name string) string {
	return lance.VersionsPrefix(p.Dir, b) + name
}

// At finds the storage of a location. Errors: 19 (the location lies in no allowed root); an error without a code says that it is none.
func (ps *Places) At(location string) (Place, error) {
	loc, err := lance.ParseLocation(location)
	if err != nil {
		return Place{}, err
	}
	root, ok := ps.rootOf(loc)
	if !ok {
		return Place{}, api.Errorf(api.CodeInvalidTableState, "the table lies at %s, which is in none of the roots that this server may use: allow its root again", location)
	}
	return Place{Objects: root.Objects, Dir: loc.Key(), Root: root, Location: loc}, nil
}

// rootOf returns the allowed root that a location lies strictly inside of; of roots that lie in one another the innermost.
func (ps *Places) rootOf(loc lance.Location) (Root, bool) {
	var in Root
	found := false
	for _, r := range ps.opts.Roots {
		if r.Location.Covers(loc) && r.Location != loc && (!found || len(r.Location.Path) > len(in.Location.Path)) {
			in, found = r, true
		}
	}
	return in, found
}

// NewLocation returns a directory of its own for an incarnation of a table (C1, design section 6), in the place of its namespace, or of the
// first root where that has none ("" in space): its id, which is never reused, then as much of its name as is harmless in a path, a URI
// and an access policy. Errors: 19 (the namespace's place is in no allowed root any more).
func (ps *Places) NewLocation(id lance.ObjectID, name, space string) (string, error) {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], uint64(id))
	short := strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(raw[:]))
	at := ps.opts.Roots[0].Location
	if space != "" {
		var err error
		if at, err = lance.ParseLocation(space); err != nil {
			return "", err
		}
	}
	loc, err := at.Join(short + "_" + harmless(name) + ".lance")
	if _, ok := ps.rootOf(loc); err == nil && !ok {
		err = api.Errorf(api.CodeInvalidTableState, "tables of this namespace go to %s, which is in none of the roots that this server may use: allow its root again", at)
	}
	return loc.String(), err
}

// ProvenAt returns the place of a location whose storage is there: a job that found nothing to remove in one that is away would
// count as done and leave everything behind. Errors: those of At, 15, 17.
func (ps *Places) ProvenAt(ctx context.Context, location string) (Place, error) {
	p, err := ps.At(location)
	if err != nil {
		return p, err
	}
	return p, p.Root.Prove(ctx)
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

// ParseGiven reads a location that a caller asks for: a URI, an absolute path, or a path relative to the first root. The error, which has no
// code, says what is wrong with it; whether it is allowed is not looked at.
func (ps *Places) ParseGiven(given string) (lance.Location, error) {
	absolute := given
	if given != "" && !strings.HasPrefix(given, "/") && !strings.Contains(given, ":") {
		absolute = ps.opts.Roots[0].Location.String() + "/" + given
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

// Given checks the location that a caller asks for a table, and returns its canonical form. It lies below an allowed root, away
// from the root's marker, around no other root, and leads through no symbolic link. Errors: 13, 15, 17.
func (ps *Places) Given(ctx context.Context, given string) (string, error) {
	loc, err := ps.ParseGiven(given)
	if err == nil {
		err = ps.checkPlace(loc, given)
	}
	if err != nil {
		return "", api.Errorf(api.CodeInvalidInput, "%v", err)
	}
	return loc.String(), ps.checkGiven(ctx, loc)
}

// checkPlace refuses a location for a table that has the wrong place among the roots.
func (ps *Places) checkPlace(loc lance.Location, given string) error {
	if _, ok := ps.rootOf(loc); !ok {
		return ps.outside(given, "below")
	}
	for _, r := range ps.opts.Roots {
		if loc.Covers(r.Location) {
			return fmt.Errorf("location %q is, or contains, the root %s, which is for many tables: choose one of its own", given, r.Location)
		}
	}
	return ps.besideMarkers(loc)
}

// CheckSpace refuses a place for the tables of a namespace that is not an allowed root or inside one, or that is a marker. The error, which has
// no code, says where it must be.
func (ps *Places) CheckSpace(loc lance.Location) error {
	for _, r := range ps.opts.Roots {
		if r.Location.Covers(loc) {
			return ps.besideMarkers(loc)
		}
	}
	return ps.outside(loc.String(), "in")
}

// outside is the error for a location that is not where it must be.
func (ps *Places) outside(given, where string) error {
	roots := make([]string, len(ps.opts.Roots))
	for i, r := range ps.opts.Roots {
		roots[i] = r.Location.String()
	}
	return fmt.Errorf("location %q lies outside the allowed roots: it must lie %s %s", given, where, strings.Join(roots, " or "))
}

// besideMarkers refuses a location at or below the marker of a root: on an object store it would be a place like any other.
func (ps *Places) besideMarkers(loc lance.Location) error {
	for _, r := range ps.opts.Roots {
		if key := r.marker(); loc.Scheme == r.Location.Scheme && loc.Authority == r.Location.Authority && (loc.Key() == key || strings.HasPrefix(loc.Key(), key+"/")) {
			return fmt.Errorf("location %s is the marker of the root %s: choose another name than %s", loc, r.Location, Marker)
		}
	}
	return nil
}
