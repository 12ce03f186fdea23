package finish

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// effects makes the entries of a transaction visible, in their order, inside the database transaction that resolves it: later
// entries see earlier ones, and nobody sees some without the others (C7).
type effects struct {
	tx      store.Tx
	t       *lance.Transaction
	entries []lance.Entry // a copy of the transaction's, to which counts are added

	rows     []lance.Version       // to publish
	versions []lance.Version       // by entry
	waiting  []lance.TransactionID // others that must end before this one can
	index    int                   // of the entry that refusal is about
	refusal  *api.Error
	counted  bool
	queued   bool // jobs were added
	unsynced bool // manifests were kept
}

// finished is the end that the effects bring about.
func (e *effects) finished() *Finished {
	return &Finished{State: lance.TransactionCommitted, Entries: e.entries, Versions: e.versions}
}

// ApplyAtOnce performs a transaction that makes no version, and so has nothing to publish, in the one database transaction tx, and puts it
// on record as committed. Where an entry cannot be carried out, Refusal and Index of the result say why and which: tx must be rolled back
// then. Errors: the store's.
func ApplyAtOnce(tx store.Tx, t *lance.Transaction) (*Finished, error) {
	e := effects{tx: tx, t: t, entries: slices.Clone(t.Entries)}
	if err := e.run(nil); err != nil {
		return nil, err
	}
	if e.refusal != nil {
		return &Finished{State: lance.TransactionAborted, Entries: e.entries, Index: e.index, Refusal: e.refusal}, nil
	}
	done := *t
	done.State, done.ResolvedAt, done.Entries = lance.TransactionCommitted, tx.Now(), e.entries
	return e.finished(), tx.InsertTransaction(done)
}

// run performs all entries; done says what was published, by entry (nil if the transaction makes no version). Versions after the last other
// entry are left to commit.
func (e *effects) run(done []published) error {
	e.versions = make([]lance.Version, len(e.entries))
	for i, entry := range e.entries {
		if entry.Kind == lance.EntryCreateVersion {
			e.rows = append(e.rows, publishedRow(entry, e.t, done[i].info))
			continue
		}
		if err := e.flush(); err != nil {
			return err
		}
		if err := e.other(i, entry); err != nil || e.refusal != nil || len(e.waiting) > 0 {
			e.index = i
			return err
		}
	}
	return e.keepUnsynced(done)
}

// flush publishes the versions before another entry.
func (e *effects) flush() error {
	if len(e.rows) == 0 {
		return nil
	}
	n, err := e.tx.PublishVersions(e.rows)
	if err == nil && n != len(e.rows) {
		err = errNotPending // somebody else has ended the transaction
	}
	e.rows = nil
	return err
}

// commit publishes what is left, marks the transaction committed, and reads the rows as they are then, for the answer.
func (e *effects) commit() error {
	c := store.Commitment{ID: e.t.ID, Publish: e.rows, Entries: e.changed()}
	var at []int
	for i, entry := range e.entries {
		if entry.Kind == lance.EntryCreateVersion {
			c.Read, at = append(c.Read, SlotOf(entry)), append(at, i)
		}
	}
	rows, ok, err := e.tx.Commit(c)
	if err == nil && !ok {
		err = errNotPending
	}
	if err != nil {
		return err
	}
	for k, row := range rows {
		e.versions[at[k]] = row
	}
	return nil
}

// changed returns the entries if they say more than when they were reserved.
func (e *effects) changed() []lance.Entry {
	if e.counted {
		return e.entries
	}
	return nil
}

// other performs an entry that makes no version.
func (e *effects) other(i int, entry lance.Entry) error {
	switch entry.Kind {
	case lance.EntryDeclare:
		return e.declare(entry)
	case lance.EntryDeregister:
		return e.deregister(entry)
	case lance.EntryDeleteVersions:
		n, err := e.deleteVersions(entry)
		e.entries[i].Count, e.counted = n, true
		return err
	}
	return fmt.Errorf("entry %d of transaction %s is of unknown kind %q", i, e.t.ID, entry.Kind)
}

func (e *effects) declare(entry lance.Entry) error {
	ns, err := e.tx.Namespace(entry.Path.Namespace())
	if errors.Is(err, store.ErrNotFound) {
		e.refusal = state.MissingNamespace(entry.Path.Namespace())
		return nil
	}
	if err != nil {
		return err
	}
	err = e.tx.InsertTable(lance.Table{
		ID: entry.Table, Namespace: ns.ID, Path: entry.Path, State: lance.TableLive,
		Location: entry.Location, Properties: entry.Properties, CreatedAt: e.tx.Now(),
	})
	e.refusal = state.DeclareRefusal(err, entry.Path, entry.Location)
	if e.refusal != nil {
		return nil
	}
	return err
}

func (e *effects) deregister(entry lance.Entry) error {
	pending, err := e.tx.PendingOn([]lance.ObjectID{entry.Table})
	if err != nil {
		return err
	}
	for _, id := range pending {
		if id != e.t.ID {
			e.waiting = append(e.waiting, id)
		}
	}
	if len(e.waiting) > 0 {
		return nil
	}
	err = e.tx.EndTable(entry.Table, lance.TableDeregistered)
	if errors.Is(err, store.ErrNotFound) {
		e.refusal = api.Errorf(api.CodeTableNotFound, "table %q was dropped or deregistered meanwhile", lance.ShowID(entry.Path))
		return nil
	}
	if err != nil {
		return err
	}
	e.queued = true
	return InsertJob(e.tx, JobForget, ForgetPayload{Table: entry.Table})
}

// deleteVersions marks versions deleted and queues the removal of their manifests. The latest of a chain is never deleted.
func (e *effects) deleteVersions(entry lance.Entry) (int64, error) {
	chain := lance.Chain{Table: entry.Table, Branch: entry.Branch}
	heads, err := e.tx.Heads([]lance.Chain{chain})
	if err != nil {
		return 0, err
	}
	head := heads[0]
	if head.Number != 0 && head.State == lance.VersionPending && head.Transaction != e.t.ID {
		e.waiting = append(e.waiting, head.Transaction)
		return 0, nil
	}
	var count int64
	if e.refusal = LatestDeleted(entry.Ranges, head.Number, entry.Branch); e.refusal != nil {
		return 0, nil
	}
	for _, r := range entry.Ranges {
		last := r[1]
		for r[0] <= last {
			marked, err := e.tx.MarkVersions(chain, r[0], last, lance.VersionDeleted, deleteChunk)
			if err != nil {
				return 0, err
			}
			count += int64(len(marked))
			if err := e.queueManifests(entry, marked); err != nil {
				return 0, err
			}
			if len(marked) < deleteChunk {
				break
			}
		}
	}
	return count, nil
}

// deleteChunk is how many versions one job's payload names.
const deleteChunk = 1000

func (e *effects) queueManifests(entry lance.Entry, marked []lance.Version) error {
	if len(marked) == 0 {
		return nil
	}
	payload := ManifestsPayload{Table: entry.Table, Location: entry.Location, Branch: entry.Branch}
	for _, v := range marked {
		payload.Versions = append(payload.Versions, DeletedVersion{Number: v.Number, Scheme: v.Scheme, Digest: lance.HexDigest(v.Digest)})
	}
	e.queued = true
	return InsertJob(e.tx, JobDeleteManifests, payload)
}

// LatestDeleted refuses ranges, both ends included, that hold the latest version of a chain, of the given number (0 where there is none): readers
// would fall back to an older one, and writers could not find the next number. The refusal is of code 19; nil where there is nothing against them.
func LatestDeleted(ranges [][2]lance.VersionNumber, head lance.VersionNumber, b lance.Branch) *api.Error {
	for _, r := range ranges {
		if head != 0 && r[0] <= head && head <= r[1] {
			return api.Errorf(api.CodeInvalidTableState, "version %d is the latest of %s and cannot be deleted: end the range before it, or drop the table", head, b)
		}
	}
	return nil
}
