package storetest

import (
	"errors"
	"testing"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// committed is what Commit returned.
type committed struct {
	Versions []lance.Version
	OK       bool
	At       int64 // of the transaction that did it, in milliseconds
}

func (h *harness) commit(c store.Commitment) committed {
	h.Helper()
	return wrote(h, func(tx store.Tx) (committed, error) {
		versions, ok, err := tx.Commit(c)
		return committed{versions, ok, tx.Now().UnixMilli()}, err
	})
}

// pendingVersions describes pending versions of main that belong to a transaction.
func pendingVersions(id lance.TransactionID, numbers ...lance.VersionNumber) []lance.Version {
	list := make([]lance.Version, len(numbers))
	for i, n := range numbers {
		list[i] = version(mainChain, n, lance.VersionPending)
		list[i].Transaction = id
	}
	return list
}

func (s suite) look(t *testing.T) {
	s.run(t, "Look/answers as the single methods do", lookAtOnce)
	s.run(t, "Reserve/a transaction with its versions", func(h *harness) {
		want, versions := transaction("a"), pendingVersions("a", 1, 2)
		h.update(func(tx store.Tx) error { return tx.Reserve(want, versions) })
		h.equal("transaction", h.transaction("a"), want)
		h.equal("versions", h.versions(versions[0].Slot, versions[1].Slot), versions)
	})
	s.run(t, "Reserve/ErrExists for a slot leaves nothing", func(h *harness) {
		h.insert(pendingVersions("other", 2)...)
		taken := pendingVersions("a", 1, 2, 3)
		h.update(func(tx store.Tx) error {
			if err := tx.Reserve(transaction("a"), taken); !errors.Is(err, store.ErrExists) {
				h.Errorf("got error %v, want ErrExists", err)
			}
			// The caller may go on in the same transaction.
			return tx.Reserve(transaction("b"), pendingVersions("b", 1))
		})
		h.refuse(store.ErrNotFound, func(tx store.Tx) error {
			_, err := tx.Transaction("a")
			return err
		})
		h.equal("versions", h.versions(taken[0].Slot, taken[1].Slot, taken[2].Slot),
			[]lance.Version{pendingVersions("b", 1)[0], pendingVersions("other", 2)[0], {}})
	})
	s.run(t, "Reserve/ErrExists for the id leaves nothing", func(h *harness) {
		h.update(func(tx store.Tx) error { return tx.InsertTransaction(transaction("a")) })
		versions := pendingVersions("a", 1)
		h.update(func(tx store.Tx) error {
			if err := tx.Reserve(lance.Transaction{ID: "a"}, versions); !errors.Is(err, store.ErrExists) {
				h.Errorf("got error %v, want ErrExists", err)
			}
			return nil
		})
		h.equal("transaction", h.transaction("a"), transaction("a"))
		h.equal("versions", h.versions(versions[0].Slot), []lance.Version{{}})
	})
	s.run(t, "Commit/publishes, resolves and reads", commitAtOnce)
	s.run(t, "Commit/false for what is not pending", func(h *harness) {
		h.update(func(tx store.Tx) error { return tx.Reserve(transaction("a"), pendingVersions("a", 1)) })
		foreign := store.Commitment{ID: "a", Publish: pendingVersions("b", 1)}
		foreign.Publish[0].State = lance.VersionCommitted
		giveUp := errors.New("give up")
		for name, c := range map[string]store.Commitment{"another's version": foreign, "a version that is not there": {ID: "a", Publish: pendingVersions("a", 2)}} {
			err := h.Update(h.Context(), func(tx store.Tx) error {
				if _, ok, err := tx.Commit(c); ok || err != nil {
					h.Errorf("%s: got %t and error %v, want false", name, ok, err)
				}
				return giveUp
			})
			if !errors.Is(err, giveUp) {
				h.Errorf("%s: Update: %v", name, err)
			}
		}
		h.equal("transaction", h.transaction("a"), transaction("a"))
		wrote(h, func(tx store.Tx) (bool, error) { return tx.ResolveTransaction("a", lance.TransactionAborted, nil) })
		if c := h.commit(store.Commitment{ID: "a"}); c.OK {
			h.Errorf("an aborted transaction was committed")
		}
	})
	s.run(t, "Commit/ErrNotFound", func(h *harness) {
		h.refuse(store.ErrNotFound, func(tx store.Tx) error {
			_, _, err := tx.Commit(store.Commitment{ID: "none"})
			return err
		})
	})
}

func commitAtOnce(h *harness) {
	want, versions := transaction("a"), pendingVersions("a", 1, 2)
	h.update(func(tx store.Tx) error { return tx.Reserve(want, versions) })
	c := store.Commitment{
		ID: "a", Publish: pendingVersions("a", 1, 2), Entries: []lance.Entry{{Kind: lance.EntryDeleteVersions, Table: 7, Count: 3}},
		Read: []lance.Slot{versions[1].Slot, versions[0].Slot, {Chain: mainChain, Number: 3}},
	}
	for i := range versions {
		versions[i].State, versions[i].ETag, versions[i].Size = lance.VersionCommitted, "new", 99
		c.Publish[i].State, c.Publish[i].ETag, c.Publish[i].Size = lance.VersionCommitted, "new", 99
	}
	got := h.commit(c)
	h.equal("versions", got.Versions, []lance.Version{versions[1], versions[0], {}})
	h.equal("ok", got.OK, true)
	h.equal("versions afterwards", h.versions(versions[0].Slot, versions[1].Slot), versions)
	resolved := h.transaction("a")
	h.equal("resolved at", resolved.ResolvedAt.UnixMilli(), got.At)
	want.State, want.ResolvedAt, want.Entries = lance.TransactionCommitted, resolved.ResolvedAt, c.Entries
	h.equal("transaction", resolved, want)
}

func lookAtOnce(h *harness) {
	h.namespace("a")
	table := h.table("a", "t")
	versions := []lance.Version{version(mainChain, 1, lance.VersionCommitted), version(mainChain, 2, lance.VersionPending), version(branchChain, 5, lance.VersionCommitted)}
	h.insert(versions...)
	aborted := []store.Content{{Slot: lance.Slot{Chain: mainChain, Number: 3}, Digest: lance.Digest{1}, Seen: true}, {Slot: lance.Slot{Chain: mainChain, Number: 4}, Digest: lance.Digest{2}}}
	h.update(func(tx store.Tx) error { return tx.RecordAborted("x", aborted) })
	named := version(lance.Chain{Table: table.ID, Branch: "b"}, 3, lance.VersionPending)
	h.insert(named)
	q := store.Question{
		Tables: []lance.TableID{{"a", "none"}, {"a", "t"}},
		Named: []store.NamedSlot{
			{Table: lance.TableID{"a", "t"}, Branch: "b", Number: 2}, {Table: lance.TableID{"a", "t"}, Branch: "b", Number: 3},
			{Table: lance.TableID{"a", "t"}, Number: 3}, {Table: lance.TableID{"t"}, Branch: "b", Number: 3}, {},
		},
		Slots:  []lance.Slot{versions[1].Slot, {Chain: otherChain, Number: 1}, versions[0].Slot},
		Chains: []lance.Chain{branchChain, otherChain, mainChain},
		Contents: []store.Content{
			aborted[1], {Slot: aborted[0].Slot, Digest: lance.Digest{9}}, aborted[0],
		},
		Burnt: []lance.Slot{aborted[0].Slot, aborted[1].Slot},
	}
	got := read(h, func(r store.Reader) (store.Findings, error) { return r.Look(q) })
	h.equal("findings", got, store.Findings{
		Tables: []lance.Table{{}, table}, Named: []lance.Version{{}, named, {}, {}, {}}, Versions: []lance.Version{versions[1], {}, versions[0]},
		Heads: []lance.Version{versions[2], {}, versions[1]}, Aborted: []bool{true, false, true}, Burnt: []bool{true, false},
	})
	none := read(h, func(r store.Reader) (store.Findings, error) { return r.Look(store.Question{}) })
	h.equal("nothing", none, store.Findings{})
}
