package place

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
)

// What a caller names as a location is purged when the table is dropped. It must therefore be a place that holds nothing else: not the
// catalog's own state, not what a symbolic link leads to, not files of others.

// checkGiven checks what a caller names as a table's location beyond its form.
func (ps *Places) checkGiven(ctx context.Context, loc lance.Location) error {
	for _, reserved := range ps.opts.Reserved {
		if loc.Covers(reserved) {
			return api.Errorf(api.CodeInvalidInput, "location %s holds %s, where the catalog keeps its own state: choose another place", loc, reserved)
		}
	}
	return ps.CheckShared(ctx, loc)
}

// CheckShared checks what a caller names as the place of a table, or of many, beyond its form. It lies in no reserved directory, unless
// in a root that does: the default root is a directory of the data directory. It leads through no symbolic link. Errors: 13, 15, 17.
func (ps *Places) CheckShared(ctx context.Context, loc lance.Location) error {
	for _, reserved := range ps.opts.Reserved {
		within := func(r Root) bool {
			return reserved.Covers(r.Location) && r.Location != reserved && r.Location.Covers(loc)
		}
		if reserved.Covers(loc) && !slices.ContainsFunc(ps.opts.Roots, within) {
			return api.Errorf(api.CodeInvalidInput, "location %s lies in %s, where the catalog keeps its own state: choose another place", loc, reserved)
		}
	}
	return ps.checkUnlinked(ctx, loc)
}

// checkUnlinked refuses a location that leads through a symbolic link: of two names of one place, each would pass for a place of its own.
func (ps *Places) checkUnlinked(ctx context.Context, loc lance.Location) error {
	root, ok := ps.rootAt(loc)
	if !ok {
		return nil
	}
	linked, ok := root.Objects.(objstore.Linked)
	if !ok {
		return nil
	}
	real, err := linked.Real(ctx, loc.Key())
	if err != nil {
		return StorageError("follow the symbolic links of "+loc.String(), err)
	}
	if real != loc.Key() {
		return api.Errorf(api.CodeInvalidInput, "location %s leads through a symbolic link to %s: give that place, or one without links", loc, lance.Location{Scheme: loc.Scheme, Authority: loc.Authority, Path: "/" + real})
	}
	return nil
}

// rootAt is rootOf for a place that may be the root itself.
func (ps *Places) rootAt(loc lance.Location) (Root, bool) {
	for _, r := range ps.opts.Roots {
		if r.Location == loc {
			return r, true
		}
	}
	return ps.rootOf(loc)
}

// lanceDirectories are what a dataset consists of.
func lanceDirectories() []string {
	return []string{"_deletions", "_indices", "_refs", "_transactions", "_versions", "data", "tree"}
}

// listingMarks are the files with which directory catalogs declare a table, and take one off their list.
func listingMarks() []string { return []string{".lance-reserved", ".lance-deregistered"} }

// CheckVacant refuses to declare a table where anything lies that is no part of a Lance dataset: dropping the table would remove it. What a
// writer has staged there already may stay. Errors: 13, 15, 17.
func (p Place) CheckVacant(ctx context.Context) error {
	prefix := p.Dir + "/"
	for after := ""; ; {
		known, foreign, err := p.nextForeign(ctx, prefix, after)
		if err != nil {
			return StorageError("list "+p.Location.String(), err)
		}
		if foreign != "" {
			return api.Errorf(api.CodeInvalidInput, "location %s is not empty: it holds %s, which would be removed with the table; choose an empty place, or register a dataset where it is", p.Location, strings.TrimPrefix(foreign, prefix))
		}
		if known == "" {
			return nil
		}
		after = prefix + known + "0" // the character after the slash
	}
}

// nextForeign returns the first object after a key that is no part of a dataset, or else the directory of a dataset that comes first.
func (p Place) nextForeign(ctx context.Context, prefix, after string) (known, foreign string, err error) {
	for info, err := range p.Objects.List(ctx, prefix, after) {
		if err != nil {
			return "", "", err
		}
		name, _, inside := strings.Cut(strings.TrimPrefix(info.Key, prefix), "/")
		switch {
		case inside && slices.Contains(lanceDirectories(), name):
			return name, "", nil
		case inside || !slices.Contains(listingMarks(), name):
			return "", info.Key, nil
		}
	}
	return "", "", nil
}

// CheckPurge sees that a table's directory still is what it was when the table got it. The error says why nothing may be removed there.
func (ps *Places) CheckPurge(ctx context.Context, p Place) error {
	if err := ps.checkGiven(ctx, p.Location); err != nil {
		return fmt.Errorf("nothing is removed: %w", err)
	}
	return nil
}
