package catalog

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
	"github.com/lancerest/lancerest/internal/objstore"
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

// managed reports whether the versions of a table are committed through the catalog.
func managed(t lance.Table) bool { return fold(t.Properties[ManagedProperty]) != "false" }

// checkProperties refuses properties that are too large, or say something of versions that nobody could understand. The error is of code
// InvalidInput.
func checkProperties(properties map[string]string) error {
	if err := checkMap("properties", properties); err != nil {
		return err
	}
	if word, said := properties[ManagedProperty]; said && fold(word) != "true" && fold(word) != "false" {
		return api.Errorf(api.CodeInvalidInput, "property %s is %q: it must be true or false", ManagedProperty, word)
	}
	return nil
}

// inherited returns the properties of something that is made in a namespace: where they do not say whether versions are managed, the namespace
// does. From then on it does not matter where the table is.
func inherited(properties map[string]string, from lance.Namespace) map[string]string {
	word, said := from.Properties[ManagedProperty]
	if _, own := properties[ManagedProperty]; own || !said {
		return properties
	}
	with := map[string]string{ManagedProperty: word}
	maps.Copy(with, properties)
	return with
}

// unmanagedRefusal is the answer to who wants to make or delete versions of an unmanaged table through the catalog.
func unmanagedRefusal(t lance.Table) *api.Error {
	return api.Errorf(api.CodeInvalidTableState, "the versions of table %q are not managed by the catalog (its property %s is false): commit to its location, %s, as without a catalog; or register it again, in mode Overwrite and with the property true, so that the catalog manages them",
		show(t.Path), ManagedProperty, t.Location)
}

// refuseUnmanaged finds fault with a step that the catalog cannot do for an unmanaged table, whatever else is wrong with it.
func (w *work) refuseUnmanaged(where naming) {
	makes := w.kind == lance.EntryCreateVersion || w.kind == lance.EntryDeleteVersions
	if makes && !managed(w.table) {
		w.fault = where.wrap(w, unmanagedRefusal(w.table))
	}
}

// storedVersion reads a version of an unmanaged table from storage. Errors: 11.
func (c *Catalog) storedVersion(ctx context.Context, t lance.Table, slot lance.Slot) (lance.Version, error) {
	cp, err := c.chainOf(t, slot.Chain.Branch)
	if err != nil {
		return lance.Version{}, err
	}
	for _, scheme := range []lance.NamingScheme{lance.SchemeV2, lance.SchemeV1} {
		key := cp.place.final(cp.chain.Branch, slot.Number, scheme)
		info, err := cp.place.objects.Head(ctx, key)
		if errors.Is(err, objstore.ErrNotFound) {
			continue
		}
		if err != nil {
			return lance.Version{}, storageError("look at "+key, err)
		}
		read, err := c.readStored(ctx, cp, []objstore.Info{info})
		return first(read), orMissing(read, err, missingVersion(t, slot))
	}
	return lance.Version{}, cp.place.proven(ctx, missingVersion(t, slot))
}

// orMissing returns err, or that nothing readable was there.
func orMissing(read []lance.Version, err, missing error) error {
	if err == nil && len(read) == 0 {
		return missing
	}
	return err
}

// storedPage is versionPage for an unmanaged table: what storage has at this moment. A version whose manifest cannot be read is left out.
func (c *Catalog) storedPage(ctx context.Context, t lance.Table, branch lance.Branch, want store.VersionPage) ([]lance.Version, bool, error) {
	cp, err := c.chainOf(t, branch)
	if err != nil {
		return nil, false, err
	}
	infos, err := c.manifestsAbove(ctx, cp, 0)
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
	infos, more := cut(infos, want.Limit)
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
func (c *Catalog) readStored(ctx context.Context, cp chainPlace, infos []objstore.Info) ([]lance.Version, error) {
	versions := make([]*lance.Version, len(infos))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.atOnce())
	for i, info := range infos {
		g.Go(func() (err error) {
			key := memoryKey{memoryOfStored, sha256.Sum256([]byte(fmt.Sprintf("%d\x00%s\x00%s\x00%s\x00%d", cp.chain.Table, cp.place.location, info.Key, info.ETag, info.Size)))}
			versions[i], err = remembered(c.memory, key, func() (*lance.Version, int64, error) {
				f, err := c.inspectOne(gctx, cp, info, asItIs)
				if err != nil || f == nil {
					return nil, 0, err
				}
				return &f.version, storedBytes, nil
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
func (c *Catalog) noteStored(ctx context.Context, cp chainPlace, found []lance.Version) error {
	if len(found) == 0 {
		return nil
	}
	head, err := c.head(ctx, cp.chain)
	if err != nil || head.Number != 0 {
		return err
	}
	return c.update(ctx, func(tx store.Tx) error {
		_, err := tx.AdoptVersions(found[:1])
		return err
	})
}
