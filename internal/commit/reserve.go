package commit

import (
	"context"
	"errors"
	"slices"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/commit/finish"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// verdict is what reserving came to. Exactly one of reserved, outcome, pending, refusal, burnt and stale is set.
type verdict struct {
	reserved bool
	// outcome is the answer where nothing has to be published: to a replay, or to a batch without versions.
	outcome *Outcome
	// same says that every slot holds what the works want to put there, resolved or not: the request was reserved before.
	same bool
	// pending are unfinished transactions that must end before this one can be judged (C7, C8).
	pending []lance.TransactionID
	refusal *api.Error
	// behind is a chain that must be looked up in storage before refusal may be answered (C9).
	behind *chain.Located
	// burnt is a chain whose next number must be an echo of its head before anything else may follow (C5).
	burnt *burntChain
	// stale says that a table was dropped, declared or renamed since the commit looked.
	stale bool
}

// reserve judges the works and, where nothing stands against them, inserts all their rows and the transaction's, all or nothing,
// in one database transaction (C5).
func (c *Committer) reserve(ctx context.Context, t *lance.Transaction, works []*work, req Request) (*verdict, error) {
	var v *verdict
	err := c.state.Update(ctx, func(tx store.Tx) error {
		v = &verdict{}
		j := judge{c: c, tx: tx, works: works, where: req.Where, v: v}
		if err := j.run(); err != nil {
			return err
		}
		if v.refusal != nil || v.stale || v.burnt != nil || len(v.pending) > 0 || v.outcome != nil {
			return state.ErrRolledBack
		}
		if err := c.reserving(ctx, tx, t.ID); err != nil {
			return err
		}
		if err := j.insert(t); err != nil || v.outcome == nil {
			return err
		}
		return req.noted(tx, v.outcome)
	})
	if errors.Is(err, state.ErrRolledBack) {
		err = nil
		if v.outcome != nil {
			c.completer.Counters().Replays.Add(1)
		}
	}
	return v, err
}

// judge holds what one run of the reserving transaction has read.
type judge struct {
	c       *Committer
	tx      store.Tx
	works   []*work
	where   Naming
	v       *verdict
	creates []*work
	found   store.Findings
	rows    []lance.Version // at the slots of creates
	same    []bool          // the row holds what the work wants to put there
	chains  []lance.Chain   // that get or lose versions
	heads   map[lance.Chain]lance.Version
}

// look asks all that there is to ask at once: the tables, what stands in the slots and before them, the heads, and what was aborted.
func (j *judge) look() error {
	j.creates = creating(j.works)
	var q store.Question
	seen := map[lance.Chain]bool{}
	for _, w := range j.works {
		q.Tables = append(q.Tables, w.ID)
		if (w.Kind == lance.EntryCreateVersion || w.Kind == lance.EntryDeleteVersions) && !seen[w.slot.Chain] {
			seen[w.slot.Chain] = true
			q.Chains = append(q.Chains, w.slot.Chain)
		}
	}
	for _, w := range j.creates {
		q.Slots = append(q.Slots, w.slot)
		q.Contents = append(q.Contents, store.Content{Slot: w.slot, Digest: w.digest})
		q.Burnt = append(q.Burnt, lance.Slot{Chain: w.slot.Chain, Number: w.Version - 1})
	}
	var err error
	j.found, err = j.tx.Look(q)
	j.rows, j.chains = j.found.Versions, q.Chains
	return err
}

// run fills in the verdict; an empty one means that the works may be inserted.
func (j *judge) run() error {
	if err := j.look(); err != nil {
		return err
	}
	if j.checkTables(); j.v.stale {
		return nil
	}
	j.compare()
	j.v.same = len(j.creates) > 0 && len(j.creates) == len(j.works) && !slices.Contains(j.same, false)
	if len(j.v.pending) > 0 {
		return nil
	}
	if done, err := j.replay(); done || err != nil {
		return err
	}
	for i, w := range j.creates {
		if j.rows[i].Number != 0 {
			j.v.refusal = j.where.wrap(w, conflictWith(j.rows[i]))
			return nil
		}
	}
	for _, w := range j.works {
		if w.absent && w.fault == nil {
			w.fault = j.where.wrap(w, api.Errorf(api.CodeInvalidInput, "there is no staged manifest at %q: write it before asking to publish it", w.ManifestPath))
		}
		if w.fault != nil {
			j.v.refusal = w.fault
			return nil
		}
	}
	if err := j.checkDeclares(); err != nil || j.v.refusal != nil || j.v.stale {
		return err
	}
	if j.checkNumbers(); j.v.refusal != nil || len(j.v.pending) > 0 {
		return nil
	}
	if j.checkAborted(); j.v.refusal != nil {
		return nil
	}
	if j.checkBurnt(); j.v.burnt != nil {
		return nil
	}
	return j.checkEnds()
}

// checkTables sees that every id still leads to the table that was looked at: each incarnation is its own (C1).
func (j *judge) checkTables() {
	for i, w := range j.works {
		if w.live && j.found.Tables[i].ID != w.table.ID {
			j.v.stale = true
		}
	}
}

// compare tells which rows hold what the works want to put there: by the staged path, or by the bytes (C5). Pending rows
// must be resolved before anything can be said of them.
func (j *judge) compare() {
	j.same = make([]bool, len(j.rows))
	for i, row := range j.rows {
		if row.Number == 0 {
			continue
		}
		if row.State == lance.VersionPending {
			j.wait(row.Transaction)
		}
		w := j.creates[i]
		j.same[i] = row.Staged != "" && row.Staged == w.staged || !w.absent && row.Digest == w.digest
	}
}

func (j *judge) wait(id lance.TransactionID) {
	if !slices.Contains(j.v.pending, id) {
		j.v.pending = append(j.v.pending, id)
	}
}

// replay answers a commit that was made before as it was answered then (C5). A batch with other steps than new versions has no
// identity of its own: it is recognised by the record of the transaction that made its versions.
func (j *judge) replay() (bool, error) {
	if len(j.creates) == 0 || slices.Contains(j.same, false) {
		return false, nil
	}
	id := j.rows[0].Transaction
	if len(j.creates) == len(j.works) {
		o := &Outcome{Transaction: id}
		for i, w := range j.works {
			o.Results = append(o.Results, Result{Table: w.table, Version: j.rows[i]})
		}
		j.v.outcome = o
		return true, nil
	}
	if id == "" {
		return false, nil
	}
	t, err := j.tx.Transaction(id)
	if err != nil || !j.matches(t) {
		return false, state.IgnoreNotFound(err)
	}
	o := &Outcome{Transaction: id}
	next := 0
	for i, e := range t.Entries {
		r := Result{Table: lance.Table{ID: e.Table, Path: e.Path, Location: e.Location, Properties: e.Properties}, Count: e.Count}
		if j.works[i].Kind == lance.EntryCreateVersion {
			r.Version = j.rows[next]
			next++
		}
		o.Results = append(o.Results, r)
	}
	j.v.outcome = o
	return true, nil
}

// matches reports whether a recorded transaction did just what the works ask for.
func (j *judge) matches(t lance.Transaction) bool {
	if len(t.Entries) != len(j.works) || t.State != lance.TransactionCommitted {
		return false
	}
	for i, e := range t.Entries {
		w := j.works[i]
		if e.Kind != w.Kind || !slices.Equal(e.Path, w.ID) {
			return false
		}
		switch w.Kind {
		case lance.EntryCreateVersion:
			if e.Branch != w.Branch || e.Version != w.Version || w.fault != nil {
				return false
			}
		case lance.EntryDeleteVersions:
			if !slices.Equal(e.Ranges, w.Ranges) {
				return false
			}
		}
	}
	return true
}

// checkDeclares refuses, before anything is published, to declare a table where its namespace is gone or its name is a
// namespace's. The name's uniqueness is a constraint that resolving meets (C2).
func (j *judge) checkDeclares() error {
	for _, w := range j.works {
		if w.Kind != lance.EntryDeclare {
			continue
		}
		if _, err := j.tx.TableByID(w.table.ID); !errors.Is(err, store.ErrNotFound) {
			j.v.stale = err == nil // another process drew the same id: look again, with a new one
			return err
		}
		if _, err := j.tx.Namespace(w.ID.Namespace()); err != nil {
			j.v.refusal = j.where.wrap(w, state.MissingNamespace(w.ID.Namespace()))
			return state.IgnoreNotFound(err)
		}
		_, err := j.tx.Namespace(lance.NamespaceID(w.ID))
		if err == nil {
			j.v.refusal = j.where.wrap(w, nameIsNamespace(w.ID))
			return nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}

// checkNumbers sees that each version is the next of its chain, counting those that stand before it in the batch: the first
// of main is 1, the first of a branch the version it forks from; detached versions have no order (C5, C13).
func (j *judge) checkNumbers() {
	heads := j.headsOf()
	if len(j.v.pending) > 0 {
		return
	}
	for _, w := range j.works {
		head := heads[w.slot.Chain]
		switch {
		case w.Kind == lance.EntryDeleteVersions:
			if e := finish.LatestDeleted(w.Ranges, head.number, w.Branch); e != nil {
				j.v.refusal = j.where.wrap(w, e)
				return
			}
		case w.Kind == lance.EntryCreateVersion && !w.Version.Detached():
			if e := w.checkNumber(head); e != nil {
				j.v.refusal = j.where.wrap(w, e)
				cp := w.chainPlace()
				j.v.behind = &cp
				return
			}
			heads[w.slot.Chain] = headNumber{number: w.Version, own: true}
		}
	}
}

// headNumber is the highest number of a chain; own says that this very batch puts it there.
type headNumber struct {
	number lance.VersionNumber
	own    bool
}

func (j *judge) headsOf() map[lance.Chain]headNumber {
	heads := map[lance.Chain]headNumber{}
	j.heads = map[lance.Chain]lance.Version{}
	for i, row := range j.found.Heads {
		if row.Number != 0 && row.State == lance.VersionPending {
			j.wait(row.Transaction)
		}
		j.heads[j.chains[i]] = row
		heads[j.chains[i]] = headNumber{number: row.Number}
	}
	return heads
}

// checkNumber says why a version cannot be the next of its chain, nil if it can.
func (w *work) checkNumber(head headNumber) *api.Error {
	first := head.number == 0
	switch {
	case !first && w.Version != head.number+1:
		return api.Errorf(api.CodeConcurrentModification, "the latest version of %s is %d, so the next is %d", w.Branch, head.number, head.number+1)
	case !first && w.Branch != lance.Main && !w.branched.Registered && !head.own:
		return api.Errorf(api.CodeTableBranchNotFound, "branch %q has versions but no reference in _refs/branches: it was deleted, or its creation was not finished; create it again", w.Branch)
	case first && w.Branch == lance.Main && w.Version != 1:
		return api.Errorf(api.CodeConcurrentModification, "the table has no version yet, so the first is 1")
	case first && w.branched.Registered && w.Version != w.branched.Parent && w.Version != w.branched.Parent+1:
		return api.Errorf(api.CodeConcurrentModification, "branch %q forks from version %d and has none of its own yet, so its first is %d", w.Branch, w.branched.Parent, w.branched.Parent)
	}
	return nil
}

// checkAborted refuses bytes that belong to an aborted transaction's entry for the slot: the writer must stage anew, so that
// one content never belongs to two transactions (C5).
func (j *judge) checkAborted() {
	if i := slices.Index(j.found.Aborted, true); i >= 0 {
		j.v.refusal = j.where.wrap(j.creates[i], api.Errorf(api.CodeConcurrentModification,
			"this very manifest was part of a commit that another writer beat: read the table again and stage a new one"))
	}
}

// checkEnds waits for transactions that still have to finish on a table that is about to be deregistered, or to lose versions. So a
// transaction only ever waits, when it is resolved, for such as were reserved after it, and no two wait for each other.
func (j *judge) checkEnds() error {
	var ending []lance.ObjectID
	for _, w := range j.works {
		if (w.Kind == lance.EntryDeregister || w.Kind == lance.EntryDeleteVersions) && w.live {
			ending = append(ending, w.table.ID)
		}
	}
	if len(ending) == 0 {
		return nil
	}
	var err error
	j.v.pending, err = j.tx.PendingOn(ending)
	return err
}

// insert writes the transaction: pending with all its rows, or, where it makes no version and so has nothing to publish,
// committed with all its effects.
func (j *judge) insert(t *lance.Transaction) error {
	t.State, t.CreatedAt = lance.TransactionPending, j.tx.Now()
	for i := range t.Entries {
		t.Entries[i].Timestamp = t.CreatedAt.UnixMilli()
	}
	if len(j.creates) == 0 {
		return j.apply(t)
	}
	rows := make([]lance.Version, len(j.creates))
	for i, w := range j.creates {
		rows[i] = lance.Version{
			Slot: w.slot, State: lance.VersionPending, Origin: lance.OriginCatalog, Transaction: t.ID, Scheme: w.Scheme,
			Staged: w.staged, Size: w.size, Digest: w.digest, Timestamp: t.CreatedAt, Metadata: w.Metadata, Summary: w.summary,
		}
	}
	if err := j.tx.Reserve(*t, rows); err != nil {
		return err
	}
	for _, w := range j.creates {
		if err := chain.NoteClone(j.tx, w.table.ID, w.bases); err != nil {
			return err
		}
	}
	j.v.reserved = true
	return nil
}

// apply performs a batch that makes no version, in this one transaction.
func (j *judge) apply(t *lance.Transaction) error {
	f, err := finish.ApplyAtOnce(j.tx, t)
	if err != nil {
		return err
	}
	if f.Refusal != nil {
		j.v.refusal = j.where.wrap(j.works[f.Index], f.Refusal)
		return state.ErrRolledBack
	}
	o := &Outcome{Transaction: t.ID}
	for i, w := range j.works {
		o.Results = append(o.Results, Result{Table: w.table, Count: f.Entries[i].Count})
	}
	j.v.outcome = o
	return nil
}
