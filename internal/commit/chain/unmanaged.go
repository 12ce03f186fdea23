package chain

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/memory"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/store"
)

// A table whose property managed_versioning is false is unmanaged: the catalog gives it a name and a place and has no say in its versions. Clients
// commit to storage by themselves, as if there were no catalog, and whatever is asked of its versions is read there. The rows that it has
// are those that were found when it was registered or looked at; they only tell that it has data.
//
// A table is the one or the other for the whole life of an incarnation: registering it again, in mode Overwrite, makes it the other, with
// all versions that storage has by then.

// ManagedProperty is the property of a table, or of a namespace for the tables that are made in it, that says whether the catalog manages versions.
const ManagedProperty = "managed_versioning"

// Managed reports whether the versions of a table are committed through the catalog.
func Managed(t lance.Table) bool { return lance.Fold(t.Properties[ManagedProperty]) != "false" }

// Inherited returns the properties of something that is made in a namespace: where they do not say whether versions are managed, the namespace
// does. From then on it does not matter where the table is.
func Inherited(properties map[string]string, from lance.Namespace) map[string]string {
	word, said := from.Properties[ManagedProperty]
	if _, own := properties[ManagedProperty]; own || !said {
		return properties
	}
	with := map[string]string{ManagedProperty: word}
	maps.Copy(with, properties)
	return with
}

// UnmanagedRefusal is the answer, of code 19, to who wants to make or delete versions of an unmanaged table through the catalog.
func UnmanagedRefusal(t lance.Table) *api.Error {
	return api.Errorf(api.CodeInvalidTableState, "the versions of table %q are not managed by the catalog (its property %s is false): commit to its location, %s, as without a catalog; or register it again, in mode Overwrite and with the property true, so that the catalog manages them",
		lance.ShowID(t.Path), ManagedProperty, t.Location)
}

// storedVersion reads a version of an unmanaged table from storage. Errors: 11.
func (c *Chains) storedVersion(ctx context.Context, t lance.Table, slot lance.Slot) (lance.Version, error) {
	cp, err := c.Of(t, slot.Chain.Branch)
	if err != nil {
		return lance.Version{}, err
	}
	for _, scheme := range []lance.NamingScheme{lance.SchemeV2, lance.SchemeV1} {
		key := cp.Place.Final(cp.Chain.Branch, slot.Number, scheme)
		info, err := cp.Place.Objects.Head(ctx, key)
		if errors.Is(err, objstore.ErrNotFound) {
			continue
		}
		if err != nil {
			return lance.Version{}, place.StorageError("look at "+key, err)
		}
		read, err := c.readStored(ctx, cp, []objstore.Info{info})
		return first(read), orMissing(read, err, missingVersion(t, slot))
	}
	return lance.Version{}, cp.Place.Proven(ctx, missingVersion(t, slot))
}

// orMissing returns err, or that nothing readable was there.
func orMissing(read []lance.Version, err, missing error) error {
	if err == nil && len(read) == 0 {
		return missing
	}
	return err
}

// storedPage is versionPage for an unmanaged table: what storage has at this moment. A version whose manifest cannot be read is left out.
func (c *Chains) storedPage(ctx context.Context, t lance.Table, branch lance.Branch, want store.VersionPage) ([]lance.Version, bool, error) {
	cp, err := c.Of(t, branch)
	if err != nil {
		return nil, false, err
	}
	infos, err := c.ManifestsAbove(ctx, cp, 0)
	if err != nil {
		return nil, false, err
	}
	if len(infos) == 0 {
		return nil, false, c.emptyChain(ctx, t, cp)
	}
	slices.SortFunc(infos, func(a, b objstore.Info) int {
		if want.Descending {
			a, b = b, a
		}
		return int(numberOf(a) - numberOf(b))
	})
	if want.After != 0 {
		infos = slices.DeleteFunc(infos, func(i objstore.Info) bool {
			return want.Descending && numberOf(i) >= want.After || !want.Descending && numberOf(i) <= want.After
		})
	}
	infos, more := Cut(infos, want.Limit)
	page, err := c.readStored(ctx, cp, infos)
	if err == nil && branch == lance.Main {
		err = c.noteStored(ctx, cp, page)
	}
	return page, more, err
}

// numberOf is the number of the version whose manifest an object is, by its name.
func numberOf(info objstore.Info) lance.VersionNumber {
	v, _, _ := lance.ParseManifestName(info.Key[strings.LastIndexByte(info.Key, '/')+1:])
	return v
}

// readStored reads the manifests of an unmanaged table's versions; those that were read before, and are still the same objects, are remembered.
func (c *Chains) readStored(ctx context.Context, cp Located, infos []objstore.Info) ([]lance.Version, error) {
	versions := make([]*lance.Version, len(infos))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.places.AtOnce())
	for i, info := range infos {
		g.Go(func() (err error) {
			key := memory.Key{What: memory.OfStored, Digest: sha256.Sum256([]byte(fmt.Sprintf("%d\x00%s\x00%s\x00%s\x00%d", cp.Chain.Table, cp.Place.Location, info.Key, info.ETag, info.Size)))}
			versions[i], err = memory.Remembered(c.memory, key, func() (*lance.Version, int64, error) {
				f, err := c.inspectOne(gctx, cp, info, AsItIs)
				if err != nil || f == nil {
					return nil, 0, err
				}
				return &f.Version, storedBytes, nil
			})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var read []lance.Version
	for _, v := range versions {
		if v != nil {
			read = append(read, *v)
		}
	}
	return read, nil
}

// storedBytes is about what a version takes in memory.
const storedBytes = 600

// noteStored gives an unmanaged table that has no row yet one, so that lists without declared tables show it.
func (c *Chains) noteStored(ctx context.Context, cp Located, found []lance.Version) error {
	if len(found) == 0 {
		return nil
	}
	head, err := c.state.Head(ctx, cp.Chain)
	if err != nil || head.Number != 0 {
		return err
	}
	return c.state.Update(ctx, func(tx store.Tx) error {
		_, err := tx.AdoptVersions(found[:1])
		return err
	})
}
