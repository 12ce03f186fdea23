package place

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/store"
)

// A storage that is away looks like an empty one: of a volume that is not mounted every file is "not found". Nothing may be concluded
// from an absence before the storage has proven that it is there (case C4). Every root therefore holds a marker, which is written
// when a catalog first uses the root, and which must be there ever after.

// Marker is the name of the object, right below a root, that proves its presence.
const Marker = ".lancerest"

// Root is a place where tables may live.
type Root struct {
	// Location is the directory or prefix under which every table of the root lies.
	Location lance.Location
	// Objects is the storage that holds it; its keys are those of Location.Key.
	Objects objstore.Store
	// Distant says that every call of Objects is a request over a network, so that one that tells much is better than many.
	Distant bool
	// Unjudged names, in words, the conditions that the storage's server does not judge; "" if it judges all. Objects then judges for this
	// process alone, which must be the only one that uses the root, and versions are looked after once more (commit/chain/late.go).
	Unjudged string
	// Access says what clients are given so that they reach tables by themselves; nil is nothing.
	Access *access.Access
	// Engine says what the engine's workers are given for the same, whatever clients are; nil is nothing.
	Engine *access.Access
}

// Warning says what it means that the storage does not judge all conditions, "" if it does.
func (r Root) Warning() string {
	if r.Unjudged == "" {
		return ""
	}
	return fmt.Sprintf("the storage at %s does not know %s: this server does that by itself, and the row in its state alone decides who has a version. "+
		"Let no writer put versions there past the catalog, such as one that opens tables by their location: it and the catalog could overwrite and remove each other's versions, and nobody would notice. "+
		"Do not run a second server on it", r.Location, r.Unjudged)
}

func (r Root) marker() string {
	if key := r.Location.Key(); key != "" {
		return key + "/" + Marker
	}
	return Marker
}

// Prove returns nil if the root's marker is there. Errors: 15, 17; never that something does not exist.
func (r Root) Prove(ctx context.Context) error {
	_, err := r.Objects.Head(ctx, r.marker())
	if errors.Is(err, objstore.ErrNotFound) {
		return api.Errorf(api.CodeServiceUnavailable, "the storage at %s is not there: its marker %s is missing; is the volume mounted?", r.Location, Marker)
	}
	if err != nil {
		return StorageError("look at the storage at "+r.Location.String(), err)
	}
	return nil
}

// AtOnce returns how many calls one request makes at a time of the storage that holds the given places: more of one that is distant.
func (ps *Places) AtOnce(places ...Place) int {
	if slices.ContainsFunc(places, func(p Place) bool { return p.Root.Distant }) {
		return ps.opts.ParallelDistant
	}
	return ps.opts.Parallel
}

// Proven turns an absence into the given error, nil included, or into the error that the storage is away (15, 17).
func (p Place) Proven(ctx context.Context, absent error) error {
	if err := p.Root.Prove(ctx); err != nil {
		return err
	}
	return absent
}

// rootsMax bounds how many roots a catalog is ever used with.
const rootsMax = 1000

// Registry is where a catalog notes which roots it has used.
type Registry struct {
	Store store.Store
	// Secret is the catalog's: what the markers say of whose roots they are comes from it.
	Secret []byte
	// Shared is told, in a sentence, of a root that another catalog has marked.
	Shared func(ctx context.Context, what string)
}

// Open sees that every root that the catalog was ever used with is allowed, or holds no table, and that the allowed ones are
// there: those known already by their markers; new ones get theirs. Errors: 17 (the storage of a root is not there); others say which root
// is missing, or lies in a table. It is to be called once, before anything is read or written.
func (ps *Places) Open(ctx context.Context, r Registry) error {
	return (&opening{Places: ps, Registry: r}).open(ctx)
}

// Prove reports whether every root is there. Errors: 15, 17.
func (ps *Places) Prove(ctx context.Context) error {
	for _, r := range ps.opts.Roots {
		if err := r.Prove(ctx); err != nil {
			return err
		}
	}
	return nil
}

// opening is one run of Open.
type opening struct {
	*Places
	Registry
}

// open sees that every root that the catalog was ever used with is allowed, or holds no table, and that the allowed ones are
// there: those known already by their markers; new ones get theirs.
func (o *opening) open(ctx context.Context) error {
	known, err := o.knownRoots(ctx)
	if err != nil {
		return err
	}
	for _, r := range o.opts.Roots {
		if known[r.Location.String()] {
			if err := r.Prove(ctx); err != nil {
				return err
			}
			continue
		}
		if err := o.checkNewRoot(ctx, r); err != nil {
			return err
		}
		if err := o.mark(ctx, r); err != nil {
			return fmt.Errorf("mark root %s: %w", r.Location, err)
		}
		if err := o.rememberRoot(ctx, len(known), r.Location.String()); err != nil {
			return err
		}
		known[r.Location.String()] = true
	}
	return nil
}

// markerText is what a marker holds: who the first catalog there is, which its secret tells without being told itself.
func (o *opening) markerText() string {
	sum := sha256.Sum256(append([]byte("marker "), o.Secret...))
	return "Lancerest keeps tables here. Without this file it takes the storage for absent.\n" + markedBy + hex.EncodeToString(sum[:8]) + "\n"
}

const markedBy = "Catalog "

// mark puts the marker of a root that the catalog has not used before. Where another catalog has put one, both will work, and each may drop
// what the other has: that is told.
func (o *opening) mark(ctx context.Context, r Root) error {
	own := o.markerText()
	_, err := r.Objects.PutIfAbsent(ctx, r.marker(), []byte(own))
	if !errors.Is(err, objstore.ErrExists) {
		return err
	}
	there, _, err := r.Objects.Get(ctx, r.marker(), 0)
	if err != nil {
		return err
	}
	if _, by, ok := strings.Cut(string(there), markedBy); ok && !strings.HasSuffix(own, by) {
		o.Shared(ctx, fmt.Sprintf("another catalog uses the root %s too: a table that both know is lost for one when the other drops it", r.Location))
	}
	return nil
}

// checkNewRoot refuses a root inside a table, which would go with that.
func (o *opening) checkNewRoot(ctx context.Context, r Root) error {
	return o.Store.View(ctx, func(tx store.Reader) error {
		claimed, err := tx.Claimed(r.Location.String())
		if err != nil || claimed == "" {
			return err
		}
		if loc, err := lance.ParseLocation(claimed); err != nil || loc.Covers(r.Location) {
			return errors.Join(err, fmt.Errorf("root %s lies in the table at %s: choose another place", r.Location, claimed))
		}
		return nil
	})
}

func rootKey(i int) string { return "root/" + strconv.Itoa(i) }

// knownRoots reads the roots that the catalog was used with, and refuses to go on where one that holds tables is not allowed any more.
func (o *opening) knownRoots(ctx context.Context) (map[string]bool, error) {
	known := map[string]bool{}
	err := o.Store.View(ctx, func(r store.Reader) error {
		clear(known)
		for i := range rootsMax {
			location, err := r.Meta(rootKey(i))
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			known[location] = true
			claimed, err := r.Claimed(location)
			if err != nil {
				return err
			}
			if claimed != "" && !o.allows(claimed) {
				return fmt.Errorf("the catalog has tables under %s, such as %s: start with that root, or allow it beside the new one", location, claimed)
			}
		}
		return nil
	})
	return known, err
}

// allows reports whether a location lies inside an allowed root.
func (ps *Places) allows(location string) bool {
	loc, err := lance.ParseLocation(location)
	if err != nil {
		return false
	}
	_, ok := ps.rootOf(loc)
	return ok
}

// rememberRoot notes a root under the first free number from the given one on: another server may note one at the same time.
func (o *opening) rememberRoot(ctx context.Context, from int, location string) error {
	for i := from; i < rootsMax; i++ {
		err := o.Store.Update(ctx, func(tx store.Tx) error { return tx.InsertMeta(rootKey(i), location) })
		if !errors.Is(err, store.ErrExists) {
			return err
		}
	}
	return fmt.Errorf("the catalog was used with %d roots; that is the most", rootsMax)
}
