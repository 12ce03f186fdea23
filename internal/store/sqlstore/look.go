package sqlstore

import (
	"fmt"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

const versionByName = `
SELECT ` + versionColumns + `
FROM versions
WHERE table_id = (
        SELECT o.id
        FROM objects o
        WHERE o.parent = (SELECT p.id FROM objects p WHERE p.kind = 1 AND p.path = $1) AND o.name = $2 AND o.state = 1
            AND o.kind IN (1, 2) AND o.kind + 0 = 2)
    AND branch = $3 AND version = $4`

const deleteTransaction = `DELETE FROM transactions WHERE id = $1`

// Look implements store.Looker.
func (s reader) Look(q store.Question) (store.Findings, error) {
	var f store.Findings
	var list [6]*statement
	f.Tables, list[0] = askTables(q.Tables)
	f.Versions, list[1] = askVersions(versionInSlot, slotArgs(q.Slots))
	f.Heads, list[2] = askVersions(headOfChain, chainArgs(q.Chains))
	f.Aborted, list[3] = askWhether(abortedContent, contentArgs(q.Contents))
	f.Burnt, list[4] = askWhether(burntSlot, slotArgs(q.Burnt))
	f.Named, list[5] = askVersions(versionByName, namedArgs(q.Named))
	if err := s.together(list[:]...); err != nil {
		return store.Findings{}, fmt.Errorf("look up %d tables and %d versions: %w", len(q.Tables), len(q.Slots), err)
	}
	return f, nil
}

func namedArgs(slots []store.NamedSlot) [][]any {
	args := make([][]any, len(slots))
	for i, s := range slots {
		path, name := nameArgs(s.Table)
		args[i] = []any{path, name, string(s.Branch), int64(s.Number)}
	}
	return args
}

// Reserve implements store.Committer.
func (t *tx) Reserve(transaction lance.Transaction, versions []lance.Version) error {
	rows, err := insertVersionArgs(versions)
	if err != nil {
		return err
	}
	record, err := insertTransactionArgs(transaction)
	if err != nil {
		return err
	}
	inserted, recorded := &statement{sql: insertVersion, args: rows}, &statement{sql: insertTransaction, args: [][]any{record}}
	if err := t.together(inserted, recorded); err != nil {
		return fmt.Errorf("reserve transaction %s with %d versions: %w", transaction.ID, len(versions), err)
	}
	if recorded.changed[0] == 0 {
		if _, err := t.exec(deleteSlot, slotArgs(written(versions, inserted.changed))); err != nil {
			return fmt.Errorf("take back %d versions: %w", len(versions), err)
		}
		return fmt.Errorf("insert transaction %s: %w", transaction.ID, store.ErrExists)
	}
	err = t.takeBack(versions, inserted.changed)
	if err == nil {
		return nil
	}
	if _, failed := change(t, deleteTransaction, string(transaction.ID)); failed != nil {
		return fmt.Errorf("take back transaction %s: %w", transaction.ID, failed)
	}
	return err
}

// Commit implements store.Committer.
func (t *tx) Commit(c store.Commitment) ([]lance.Version, bool, error) {
	args, err := t.resolveArgs(c.ID, lance.TransactionCommitted, c.Entries)
	if err != nil {
		return nil, false, err
	}
	published := &statement{sql: publishVersion, args: publishArgs(c.Publish)}
	versions, read := askVersions(versionInSlot, slotArgs(c.Read))
	resolved := &statement{sql: resolveTransaction, args: [][]any{args}}
	if err := t.together(published, read, resolved); err != nil {
		return nil, false, fmt.Errorf("commit transaction %s with %d versions: %w", c.ID, len(c.Publish), err)
	}
	ok := resolved.changed[0] == 1 && sum(published.changed) == len(c.Publish)
	return versions, ok, t.known(c.ID, resolved.changed[0])
}
