package storetest

import (
	"testing"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// transaction describes a pending transaction with every field set.
func transaction(id lance.TransactionID) lance.Transaction {
	return lance.Transaction{
		ID: id, Principal: "ann", CreatedAt: time.UnixMilli(1_750_000_000_123).UTC(), Context: map[string]string{"trace": "1"},
		Entries: []lance.Entry{
			{Kind: lance.EntryDeclare, Table: 7, Path: lance.TableID{"a", "t"}, Location: "mem:///t"},
			{
				Kind: lance.EntryCreateVersion, Table: 7, Path: lance.TableID{"a", "t"}, Location: "mem:///t", Branch: "b",
				Version: -9e18, Scheme: lance.SchemeV1, Staged: "1.manifest-x", Digest: "00ff", Size: 12,
			},
		},
		Status: "running", Properties: map[string]string{"note": "x"},
	}
}

func (s suite) transactions(t *testing.T) {
	s.run(t, "Transaction/gives back what was inserted", func(h *harness) {
		resolved := transaction("b")
		resolved.State, resolved.ResolvedAt = lance.TransactionAborted, time.UnixMilli(1_750_000_001_000).UTC()
		for _, want := range []lance.Transaction{transaction("a"), resolved, {ID: "c"}} {
			h.update(func(tx store.Tx) error { return tx.InsertTransaction(want) })
			h.equal("transaction", h.transaction(want.ID), want)
		}
	})
	s.run(t, "Transaction/ErrNotFound", func(h *harness) {
		h.refuse(store.ErrNotFound, func(tx store.Tx) error {
			_, err := tx.Transaction("none")
			return err
		})
	})
	s.run(t, "InsertTransaction/ErrExists", func(h *harness) {
		h.update(func(tx store.Tx) error { return tx.InsertTransaction(transaction("a")) })
		h.refuse(store.ErrExists, func(tx store.Tx) error { return tx.InsertTransaction(lance.Transaction{ID: "a"}) })
		h.equal("transaction", h.transaction("a"), transaction("a"))
	})
	s.run(t, "ResolveTransaction/only a pending one", func(h *harness) {
		want := transaction("a")
		h.update(func(tx store.Tx) error { return tx.InsertTransaction(want) })
		type outcome struct {
			Was bool
			At  time.Time
		}
		resolve := func(state lance.TransactionState, entries []lance.Entry) outcome {
			return wrote(h, func(tx store.Tx) (outcome, error) {
				was, err := tx.ResolveTransaction("a", state, entries)
				return outcome{was, tx.Now()}, err
			})
		}
		first := resolve(lance.TransactionCommitted, nil)
		h.equal("first", first.Was, true)
		h.equal("second", resolve(lance.TransactionAborted, []lance.Entry{{}}).Was, false)
		want.State, want.ResolvedAt = lance.TransactionCommitted, first.At
		h.equal("transaction", h.transaction("a"), want)
	})
	s.run(t, "ResolveTransaction/replaces the entries", func(h *harness) {
		h.update(func(tx store.Tx) error { return tx.InsertTransaction(transaction("a")) })
		entries := []lance.Entry{{Kind: lance.EntryDeleteVersions, Table: 7, Count: 3}}
		wrote(h, func(tx store.Tx) (bool, error) { return tx.ResolveTransaction("a", lance.TransactionAborted, entries) })
		h.equal("entries", h.transaction("a").Entries, entries)
	})
	s.run(t, "ResolveTransaction/ErrNotFound", func(h *harness) {
		h.refuse(store.ErrNotFound, func(tx store.Tx) error {
			_, err := tx.ResolveTransaction("none", lance.TransactionCommitted, nil)
			return err
		})
	})
	s.run(t, "AlterTransaction/replaces status and properties", func(h *harness) {
		want := transaction("a")
		h.update(func(tx store.Tx) error { return tx.InsertTransaction(want) })
		want.Status, want.Properties = "done", map[string]string{"other": "y"}
		h.update(func(tx store.Tx) error { return tx.AlterTransaction("a", want.Status, want.Properties) })
		h.equal("transaction", h.transaction("a"), want)
		want.Status, want.Properties = "", nil
		h.update(func(tx store.Tx) error { return tx.AlterTransaction("a", "", nil) })
		h.equal("transaction", h.transaction("a"), want)
	})
	s.run(t, "AlterTransaction/ErrNotFound", func(h *harness) {
		h.refuse(store.ErrNotFound, func(tx store.Tx) error { return tx.AlterTransaction("none", "x", nil) })
	})
	s.run(t, "PendingTransactions/oldest first, before a time", s.pendingTransactions)
	s.run(t, "Aborted/by slot and content", s.aborted)
	s.run(t, "Burnt/slots whose aborted content was seen", s.burnt)
	s.run(t, "Meta/gives back what was inserted", func(h *harness) {
		h.update(func(tx store.Tx) error { return tx.InsertMeta("catalog", "é") })
		h.refuse(store.ErrExists, func(tx store.Tx) error { return tx.InsertMeta("catalog", "other") })
		h.equal("value", read(h, func(r store.Reader) (string, error) { return r.Meta("catalog") }), "é")
		h.refuse(store.ErrNotFound, func(tx store.Tx) error {
			_, err := tx.Meta("Catalog")
			return err
		})
	})
}

func (suite) pendingTransactions(h *harness) {
	begin := time.UnixMilli(1_750_000_000_000).UTC()
	for i, id := range []lance.TransactionID{"d", "c", "b", "a", "done"} {
		t := lance.Transaction{ID: id, CreatedAt: begin.Add(time.Duration(i/2) * time.Second)}
		if id == "done" {
			t.State, t.CreatedAt = lance.TransactionCommitted, begin
		}
		h.update(func(tx store.Tx) error { return tx.InsertTransaction(t) })
	}
	pending := func(before time.Time, limit int) []lance.TransactionID {
		return read(h, func(r store.Reader) ([]lance.TransactionID, error) { return r.PendingTransactions(before, limit) })
	}
	h.equal("all", pending(begin.Add(time.Minute), 10), []lance.TransactionID{"c", "d", "a", "b"})
	h.equal("before the second", pending(begin.Add(time.Second), 10), []lance.TransactionID{"c", "d"})
	h.equal("none", pending(begin, 10), []lance.TransactionID(nil))
	h.equal("limit", pending(begin.Add(time.Minute), 3), []lance.TransactionID{"c", "d", "a"})
	wrote(h, func(tx store.Tx) (bool, error) { return tx.ResolveTransaction("c", lance.TransactionCommitted, nil) })
	h.equal("after one was resolved", pending(begin.Add(time.Minute), 1), []lance.TransactionID{"d"})
}

func (suite) aborted(h *harness) {
	content := func(chain lance.Chain, number lance.VersionNumber, digest byte) store.Content {
		return store.Content{Slot: lance.Slot{Chain: chain, Number: number}, Digest: lance.Digest{31: digest}}
	}
	recorded := []store.Content{content(mainChain, 1, 1), content(branchChain, 1, 2)}
	h.update(func(tx store.Tx) error { return tx.RecordAborted("a", recorded) })
	h.update(func(tx store.Tx) error { return tx.RecordAborted("b", append(recorded, content(mainChain, 1, 3))) })
	got := read(h, func(r store.Reader) ([]bool, error) {
		return r.Aborted([]store.Content{
			content(mainChain, 1, 3), content(mainChain, 1, 2), recorded[0], content(mainChain, 2, 1), recorded[1],
			content(otherChain, 1, 1), content(mainChain, 1, 0),
		})
	})
	h.equal("aborted", got, []bool{true, false, true, false, true, false, false})
}

func (suite) burnt(h *harness) {
	slot := func(number lance.VersionNumber) lance.Slot { return lance.Slot{Chain: mainChain, Number: number} }
	h.update(func(tx store.Tx) error {
		return tx.RecordAborted("a", []store.Content{{Slot: slot(1), Digest: lance.Digest{1}, Seen: true}, {Slot: slot(2), Digest: lance.Digest{1}}})
	})
	h.update(func(tx store.Tx) error {
		return tx.RecordAborted("b", []store.Content{{Slot: slot(2), Digest: lance.Digest{2}}, {Slot: slot(3), Digest: lance.Digest{2}}, {Slot: slot(3), Digest: lance.Digest{3}, Seen: true}})
	})
	got := read(h, func(r store.Reader) ([]bool, error) {
		return r.Burnt([]lance.Slot{slot(3), slot(2), slot(1), slot(4), {Chain: branchChain, Number: 1}})
	})
	h.equal("burnt", got, []bool{true, false, true, false, false})
}

func (h *harness) transaction(id lance.TransactionID) lance.Transaction {
	h.Helper()
	return read(h, func(r store.Reader) (lance.Transaction, error) { return r.Transaction(id) })
}
