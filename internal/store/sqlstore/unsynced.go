package sqlstore

import (
	"bytes"
	"fmt"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

const (
	unsyncedAfter = `SELECT id, table_id, branch, version, scheme, location, data FROM unsynced WHERE id > $1 ORDER BY id LIMIT $2`

	unsyncedIDsAfter = `SELECT id FROM unsynced WHERE id > $1 ORDER BY id LIMIT $2`

	insertUnsynced = `
INSERT INTO unsynced (id, table_id, branch, version, scheme, location, data)
VALUES ($1, $2, $3, $4, $5, $6, $7)`

	deleteUnsynced = `DELETE FROM unsynced WHERE id = $1`
)

// Unsynced implements store.UnsyncedReader.
func (s reader) Unsynced(after lance.ObjectID, limit int) ([]store.Unsynced, error) {
	var all []store.Unsynced
	err := s.query(unsyncedAfter, [][]any{{int64(after), int64(limit)}}, func(_ int, r row) error {
		all = append(all, store.Unsynced{
			ID: lance.ObjectID(r.Int(0)),
			Slot: lance.Slot{
				Chain:  lance.Chain{Table: lance.ObjectID(r.Int(1)), Branch: lance.Branch(r.Text(2))},
				Number: lance.VersionNumber(r.Int(3)),
			},
			Scheme: lance.NamingScheme(r.Int(4)), Location: r.Text(5), Data: bytes.Clone(r.Bytes(6)),
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list unsynced manifests: %w", err)
	}
	return all, nil
}

// UnsyncedIDs implements store.UnsyncedReader.
func (s reader) UnsyncedIDs(after lance.ObjectID, limit int) ([]lance.ObjectID, error) {
	var ids []lance.ObjectID
	err := s.query(unsyncedIDsAfter, [][]any{{int64(after), int64(limit)}}, func(_ int, r row) error {
		ids = append(ids, lance.ObjectID(r.Int(0)))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list unsynced manifests: %w", err)
	}
	return ids, nil
}

// InsertUnsynced implements store.UnsyncedWriter.
func (t *tx) InsertUnsynced(manifests []store.Unsynced) error {
	args := make([][]any, len(manifests))
	for i, m := range manifests {
		args[i] = []any{int64(m.ID), int64(m.Slot.Chain.Table), string(m.Slot.Chain.Branch), int64(m.Slot.Number), int64(m.Scheme), m.Location, m.Data}
	}
	if _, err := t.exec(insertUnsynced, args); err != nil {
		return fmt.Errorf("keep %d unsynced manifests: %w", len(manifests), err)
	}
	return nil
}

// DeleteUnsynced implements store.UnsyncedWriter.
func (t *tx) DeleteUnsynced(ids []lance.ObjectID) error {
	args := make([][]any, len(ids))
	for i, id := range ids {
		args[i] = []any{int64(id)}
	}
	if _, err := t.exec(deleteUnsynced, args); err != nil {
		return fmt.Errorf("let go of %d synced manifests: %w", len(ids), err)
	}
	return nil
}
