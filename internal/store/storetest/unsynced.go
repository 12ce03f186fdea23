package storetest

import (
	"cmp"
	"slices"
	"testing"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

func (s suite) unsynced(t *testing.T) {
	// manifests keeps n of them, of versions 1 to n of one chain, and returns them in the order of their ids.
	manifests := func(h *harness, n int) []store.Unsynced {
		return wrote(h, func(tx store.Tx) ([]store.Unsynced, error) {
			all := make([]store.Unsynced, n)
			for i := range all {
				all[i] = store.Unsynced{
					ID:     tx.NewID(),
					Slot:   lance.Slot{Chain: lance.Chain{Table: 7, Branch: "é"}, Number: lance.VersionNumber(i + 1)},
					Scheme: lance.SchemeV1, Location: "file:///data/a%20b.lance", Data: []byte{0, 0xff, byte(i), 'x'},
				}
			}
			slices.SortFunc(all, func(a, b store.Unsynced) int { return cmp.Compare(a.ID, b.ID) })
			return all, tx.InsertUnsynced(all)
		})
	}
	page := func(h *harness, after lance.ObjectID, limit int) []store.Unsynced {
		return read(h, func(r store.Reader) ([]store.Unsynced, error) { return r.Unsynced(after, limit) })
	}
	ids := func(h *harness, after lance.ObjectID, limit int) []lance.ObjectID {
		return read(h, func(r store.Reader) ([]lance.ObjectID, error) { return r.UnsyncedIDs(after, limit) })
	}
	s.run(t, "Unsynced/gives back what was kept, in pages", func(h *harness) {
		all := manifests(h, 3)
		h.equal("first page", page(h, 0, 2), all[:2])
		h.equal("second page", page(h, all[1].ID, 2), all[2:])
		h.equal("third page", page(h, all[2].ID, 2), []store.Unsynced(nil))
		h.equal("ids", ids(h, all[0].ID, 9), []lance.ObjectID{all[1].ID, all[2].ID})
	})
	s.run(t, "DeleteUnsynced/lets go of those named and no others", func(h *harness) {
		all := manifests(h, 3)
		for range 2 { // the second time they are gone already
			h.update(func(tx store.Tx) error { return tx.DeleteUnsynced([]lance.ObjectID{all[0].ID, all[2].ID}) })
		}
		h.equal("what is left", page(h, 0, 9), all[1:2])
	})
}
