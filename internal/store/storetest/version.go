package storetest

import (
	"fmt"
	"testing"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// The chains that the tests of versions use. A chain needs no table's row.
var (
	mainChain   = lance.Chain{Table: 7}
	branchChain = lance.Chain{Table: 7, Branch: "exp/1"}
	otherChain  = lance.Chain{Table: 8}
)

func (s suite) versions(t *testing.T) {
	s.run(t, "Versions/in order, zero where the slot is empty", func(h *harness) {
		one, detached := version(mainChain, 1, lance.VersionCommitted), version(mainChain, -9e18, lance.VersionPruned)
		branch := version(branchChain, 1, lance.VersionPending)
		h.insert(one, branch, detached)
		got := read(h, func(r store.Reader) ([]lance.Version, error) {
			return r.Versions([]lance.Slot{
				branch.Slot, {Chain: otherChain, Number: 1}, one.Slot, detached.Slot, {Chain: mainChain, Number: 2}, one.Slot,
			})
		})
		h.equal("versions", got, []lance.Version{branch, {}, one, detached, {}, one})
	})
	s.run(t, "Versions/a version without the fields that may be empty", func(h *harness) {
		bare := lance.Version{Slot: lance.Slot{Chain: mainChain, Number: 1}, Scheme: lance.SchemeV1, Origin: lance.OriginImport}
		h.insert(bare)
		got := read(h, func(r store.Reader) ([]lance.Version, error) { return r.Versions([]lance.Slot{bare.Slot}) })
		h.equal("version", got, []lance.Version{bare})
	})
	for _, state := range []lance.VersionState{lance.VersionPending, lance.VersionCommitted, lance.VersionPruned, lance.VersionDeleted} {
		s.run(t, fmt.Sprintf("Heads/the highest counts in state %d", state), func(h *harness) {
			want := version(mainChain, 10, state)
			h.insert(version(mainChain, 9, lance.VersionCommitted), want, version(branchChain, 11, lance.VersionCommitted))
			h.equal("heads", h.heads(mainChain), []lance.Version{want})
		})
	}
	s.run(t, "Heads/in order, zero where there is none", func(h *harness) {
		a, b := version(mainChain, 3, lance.VersionCommitted), version(branchChain, 2, lance.VersionCommitted)
		h.insert(a, b)
		h.equal("heads", h.heads(branchChain, otherChain, mainChain), []lance.Version{b, {}, a})
	})
	s.run(t, "Heads/detached versions do not count", func(h *harness) {
		one := version(mainChain, 1, lance.VersionCommitted)
		h.insert(one, version(mainChain, -1, lance.VersionCommitted), version(otherChain, -1, lance.VersionCommitted))
		h.equal("heads", h.heads(mainChain, otherChain), []lance.Version{one, {}})
	})
	s.run(t, "ListVersions/every limit, both ways", s.listVersions)
	s.run(t, "PendingOn/each transaction once", func(h *harness) {
		a, b := version(mainChain, 1, lance.VersionPending), version(branchChain, 1, lance.VersionPending)
		c, d := version(otherChain, 1, lance.VersionPending), version(otherChain, 2, lance.VersionPending)
		d.Transaction = "second"
		done := version(mainChain, 2, lance.VersionCommitted)
		done.Transaction = "third"
		h.insert(a, b, c, d, done)
		pending := func(tables ...lance.ObjectID) []lance.TransactionID {
			return read(h, func(r store.Reader) ([]lance.TransactionID, error) { return r.PendingOn(tables) })
		}
		h.equal("on 7", pending(7), []lance.TransactionID{a.Transaction})
		h.equal("number on 7 and 8", len(pending(7, 8, 7)), 2)
		h.equal("on 9", pending(9), []lance.TransactionID(nil))
		h.update(func(tx store.Tx) error {
			a.State, b.State = lance.VersionCommitted, lance.VersionCommitted
			_, err := tx.PublishVersions([]lance.Version{a, b})
			return err
		})
		h.equal("on 7 once published", pending(7), []lance.TransactionID(nil))
	})
	s.run(t, "Branches/in order of their names", func(h *harness) {
		for _, branch := range []lance.Branch{"b", "B", lance.Main, "é"} {
			chain := lance.Chain{Table: 7, Branch: branch}
			h.insert(version(chain, 1, lance.VersionPruned), version(chain, 2, lance.VersionPending))
		}
		h.insert(version(lance.Chain{Table: 8, Branch: "x"}, -1, lance.VersionCommitted))
		h.equal("of 7", h.branches(7), []lance.Branch{lance.Main, "B", "b", "é"})
		h.equal("of 8", h.branches(8), []lance.Branch{"x"})
		h.equal("of 9", h.branches(9), []lance.Branch(nil))
	})
}

func (suite) listVersions(h *harness) {
	var up []lance.VersionNumber
	for n := lance.VersionNumber(1); n <= 9; n++ {
		state := []lance.VersionState{lance.VersionCommitted, lance.VersionPending, lance.VersionPruned, lance.VersionDeleted}[n%4]
		h.insert(version(mainChain, n, state), version(branchChain, n+100, lance.VersionCommitted), version(mainChain, -n, lance.VersionCommitted))
		if state <= lance.VersionCommitted {
			up = append(up, n)
		}
	}
	down := make([]lance.VersionNumber, len(up))
	for i, n := range up {
		down[len(up)-1-i] = n
	}
	for limit := 1; limit <= len(up)+1; limit++ {
		for _, want := range []struct {
			numbers []lance.VersionNumber
			page    store.VersionPage
		}{{up, store.VersionPage{Limit: limit}}, {down, store.VersionPage{Limit: limit, Descending: true}}} {
			var got []lance.VersionNumber
			page := want.page
			for more := true; more; {
				list := read(h, func(r store.Reader) ([]lance.Version, error) { return r.ListVersions(mainChain, page) })
				got = append(got, numbers(list)...)
				if more = len(list) == limit; more {
					page.After = list[limit-1].Number
				}
			}
			h.equal(fmt.Sprintf("limit %d, descending %t", limit, page.Descending), got, want.numbers)
		}
	}
}

func (s suite) versionWrites(t *testing.T) {
	s.run(t, "InsertVersions/ErrExists, whatever the state; none was written", s.insertTaken)
	s.run(t, "InsertVersions/ErrExists for one slot twice", func(h *harness) {
		h.update(func(tx store.Tx) error {
			v := version(mainChain, 1, lance.VersionPending)
			if err := tx.InsertVersions([]lance.Version{v, v}); err == nil {
				h.Error("got no error, want ErrExists")
			}
			return nil
		})
		h.equal("heads", h.heads(mainChain), []lance.Version{{}})
	})
	s.run(t, "AdoptVersions/only empty slots", func(h *harness) {
		first := version(mainChain, 2, lance.VersionPending)
		h.insert(first)
		adopted := []lance.Version{
			version(mainChain, 1, lance.VersionCommitted), version(mainChain, 2, lance.VersionCommitted), version(mainChain, 3, lance.VersionCommitted),
		}
		n := wrote(h, func(tx store.Tx) (int, error) { return tx.AdoptVersions(adopted) })
		h.equal("adopted", n, 2)
		h.equal("versions", h.versions(adopted[0].Slot, first.Slot, adopted[2].Slot), []lance.Version{adopted[0], first, adopted[2]})
	})
	s.run(t, "PublishVersions/only pending ones of their transaction", func(h *harness) {
		mine, other := version(mainChain, 1, lance.VersionPending), version(mainChain, 2, lance.VersionPending)
		done, gone := version(mainChain, 3, lance.VersionCommitted), version(mainChain, 4, lance.VersionPending)
		other.Transaction = "another"
		h.insert(mine, other, done)
		published := []lance.Version{mine, other, done, gone}
		for i := range published {
			published[i].Transaction = mine.Transaction
			published[i].State, published[i].Size, published[i].ETag = lance.VersionCommitted, 999, "new"
		}
		n := wrote(h, func(tx store.Tx) (int, error) { return tx.PublishVersions(published) })
		h.equal("published", n, 1)
		h.equal("versions", h.versions(mine.Slot, other.Slot, done.Slot, gone.Slot), []lance.Version{published[0], other, done, {}})
	})
	s.run(t, "RemoveVersions/only those of the transaction", func(h *harness) {
		mine, other := version(mainChain, 1, lance.VersionPending), version(mainChain, 2, lance.VersionPending)
		other.Transaction = "another"
		h.insert(mine, other)
		h.update(func(tx store.Tx) error {
			return tx.RemoveVersions([]lance.Slot{mine.Slot, other.Slot, {Chain: otherChain, Number: 1}}, mine.Transaction)
		})
		h.equal("versions", h.versions(mine.Slot, other.Slot), []lance.Version{{}, other})
	})
	s.run(t, "MarkVersions/committed ones in the range, in chunks", s.markVersions)
	s.run(t, "RemoveChain/every row of it alone", func(h *harness) {
		kept := []lance.Version{version(mainChain, 1, lance.VersionCommitted), version(lance.Chain{Table: 8, Branch: branchChain.Branch}, 1, lance.VersionPending)}
		h.insert(kept...)
		h.insert(version(branchChain, 1, lance.VersionCommitted), version(branchChain, 2, lance.VersionPruned), version(branchChain, -1, lance.VersionDeleted))
		h.update(func(tx store.Tx) error { return tx.RemoveChain(branchChain) })
		h.equal("branches", h.branches(7), []lance.Branch{lance.Main})
		h.equal("kept", h.versions(kept[0].Slot, kept[1].Slot), kept)
	})
}

func (suite) insertTaken(h *harness) {
	states := []lance.VersionState{lance.VersionPending, lance.VersionCommitted, lance.VersionPruned, lance.VersionDeleted}
	for i, state := range states {
		taken := version(mainChain, lance.VersionNumber(i+1), state)
		h.insert(taken)
		before, after := version(branchChain, 1, lance.VersionPending), version(otherChain, 1, lance.VersionPending)
		attempt := version(taken.Chain, taken.Number, lance.VersionPending)
		attempt.ETag = "late"
		h.refuse(store.ErrExists, func(tx store.Tx) error { return tx.InsertVersions([]lance.Version{before, attempt, after}) })
		// Also where the transaction goes on.
		h.update(func(tx store.Tx) error {
			if err := tx.InsertVersions([]lance.Version{before, attempt, after}); err == nil {
				h.Errorf("state %d: got no error, want ErrExists", state)
			}
			return nil
		})
		h.equal(fmt.Sprintf("state %d", state), h.versions(before.Slot, taken.Slot, after.Slot), []lance.Version{{}, taken, {}})
	}
}

func (suite) markVersions(h *harness) {
	var all []lance.Version
	for n := lance.VersionNumber(1); n <= 8; n++ {
		state := lance.VersionCommitted
		if n == 4 {
			state = lance.VersionPending
		}
		all = append(all, version(mainChain, n, state))
	}
	h.insert(all...)
	h.insert(version(branchChain, 3, lance.VersionCommitted))
	mark := func(first, last lance.VersionNumber, state lance.VersionState, limit int) []lance.Version {
		return wrote(h, func(tx store.Tx) ([]lance.Version, error) {
			return tx.MarkVersions(mainChain, first, last, state, limit)
		})
	}
	h.equal("first chunk", mark(2, 6, lance.VersionDeleted, 3), []lance.Version{all[1], all[2], all[4]})
	h.equal("second chunk", mark(2, 6, lance.VersionPruned, 3), []lance.Version{all[5]})
	h.equal("nothing left", mark(2, 6, lance.VersionPruned, 3), []lance.Version(nil))
	for i, state := range map[int]lance.VersionState{1: lance.VersionDeleted, 2: lance.VersionDeleted, 4: lance.VersionDeleted, 5: lance.VersionPruned} {
		all[i].State = state
	}
	var slots []lance.Slot
	for _, v := range all {
		slots = append(slots, v.Slot)
	}
	h.equal("versions", h.versions(slots...), all)
	h.equal("branch", h.heads(branchChain)[0].State, lance.VersionCommitted)
	restore := func(slot lance.Slot) bool {
		return wrote(h, func(tx store.Tx) (bool, error) { return tx.RestoreVersion(slot) })
	}
	h.equal("restore a deleted one", restore(all[1].Slot), true)
	h.equal("restore a pruned one", restore(all[5].Slot), true)
	h.equal("restore a committed one", restore(all[0].Slot), false)
	h.equal("restore a pending one", restore(all[3].Slot), false)
	all[1].State, all[5].State = lance.VersionCommitted, lance.VersionCommitted
	h.equal("versions after restoring", h.versions(slots...), all)
}

func (h *harness) heads(chains ...lance.Chain) []lance.Version {
	h.Helper()
	return read(h, func(r store.Reader) ([]lance.Version, error) { return r.Heads(chains) })
}

func (h *harness) versions(slots ...lance.Slot) []lance.Version {
	h.Helper()
	return read(h, func(r store.Reader) ([]lance.Version, error) { return r.Versions(slots) })
}

func (h *harness) branches(table lance.ObjectID) []lance.Branch {
	h.Helper()
	return read(h, func(r store.Reader) ([]lance.Branch, error) { return r.Branches(table) })
}
