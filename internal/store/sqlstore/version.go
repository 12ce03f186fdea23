package sqlstore

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

const versionColumns = `table_id, branch, version, state, origin, txn, scheme, staged, size, e_tag, digest, ts, metadata, ` +
	`live_rows, deleted_rows, fragments, data_files, deletion_files, data_bytes, reader_flags, schema_digest, change_uuid`

const (
	versionInSlot = `
SELECT ` + versionColumns + `
FROM versions
WHERE table_id = $1 AND branch = $2 AND version = $3`

	headOfChain = `
SELECT ` + versionColumns + `
FROM versions
WHERE table_id = $1 AND branch = $2 AND version > 0
ORDER BY version DESC
LIMIT 1`

	versionsUp = `
SELECT ` + versionColumns + `
FROM versions
WHERE table_id = $1 AND branch = $2 AND version > $3 AND state < 2
ORDER BY version
LIMIT $4`

	versionsDown = `
SELECT ` + versionColumns + `
FROM versions
WHERE table_id = $1 AND branch = $2 AND version > 0 AND version < $3 AND state < 2
ORDER BY version DESC
LIMIT $4`

	pendingOnTable = `SELECT DISTINCT txn FROM versions WHERE table_id = $1 AND state = 0`

	// One look-up a branch, however many versions each has.
	branchesOfTable = `
WITH RECURSIVE b (branch) AS (
    SELECT min(branch) FROM versions WHERE table_id = $1
    UNION ALL
    SELECT (SELECT min(v.branch) FROM versions v WHERE v.table_id = $1 AND v.branch > b.branch) FROM b WHERE b.branch IS NOT NULL
)
SELECT branch FROM b WHERE branch IS NOT NULL`

	insertVersion = `
INSERT INTO versions (` + versionColumns + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
ON CONFLICT DO NOTHING`

	deleteSlot = `DELETE FROM versions WHERE table_id = $1 AND branch = $2 AND version = $3`

	publishVersion = `
UPDATE versions
SET state = $5, size = $6, e_tag = $7
WHERE table_id = $1 AND branch = $2 AND version = $3 AND txn = $4 AND state + 0 = 0`

	removeVersion = `DELETE FROM versions WHERE table_id = $1 AND branch = $2 AND version = $3 AND txn = $4`

	committedBetween = `
SELECT ` + versionColumns + `
FROM versions
WHERE table_id = $1 AND branch = $2 AND version >= $3 AND version <= $4 AND state = 1
ORDER BY version
LIMIT $5`

	markVersion = `UPDATE versions SET state = $4 WHERE table_id = $1 AND branch = $2 AND version = $3 AND state = 1`

	restoreVersion = `UPDATE versions SET state = 1 WHERE table_id = $1 AND branch = $2 AND version = $3 AND state IN (2, 3)`

	removeChain = `DELETE FROM versions WHERE table_id = $1 AND branch = $2`
)

// Versions implements store.VersionReader.
func (s reader) Versions(slots []lance.Slot) ([]lance.Version, error) {
	versions, statement := askVersions(versionInSlot, slotArgs(slots))
	if err := s.together(statement); err != nil {
		return nil, fmt.Errorf("look up %d versions: %w", len(slots), err)
	}
	return versions, nil
}

// Heads implements store.VersionReader.
func (s reader) Heads(chains []lance.Chain) ([]lance.Version, error) {
	heads, statement := askVersions(headOfChain, chainArgs(chains))
	if err := s.together(statement); err != nil {
		return nil, fmt.Errorf("look up %d heads: %w", len(chains), err)
	}
	return heads, nil
}

// askVersions returns what looks up a version for each list of arguments, and where they come to.
func askVersions(sql string, args [][]any) ([]lance.Version, *statement) {
	versions := make([]lance.Version, len(args))
	return versions, &statement{sql: sql, args: args, scan: func(i int, r row) (err error) {
		versions[i], err = scanVersion(r)
		return err
	}}
}

func chainArgs(chains []lance.Chain) [][]any {
	args := make([][]any, len(chains))
	for i, c := range chains {
		args[i] = []any{int64(c.Table), string(c.Branch)}
	}
	return args
}

// ListVersions implements store.VersionReader.
func (s reader) ListVersions(chain lance.Chain, page store.VersionPage) ([]lance.Version, error) {
	sql, after := versionsUp, max(page.After, 0)
	if page.Descending {
		sql = versionsDown
		if page.After == 0 {
			after = math.MaxInt64
		}
	}
	list, err := s.listVersions(sql, int64(chain.Table), string(chain.Branch), int64(after), int64(page.Limit))
	if err != nil {
		return nil, fmt.Errorf("list versions of table %d, branch %s: %w", chain.Table, chain.Branch, err)
	}
	return list, nil
}

func (s reader) listVersions(sql string, args ...any) ([]lance.Version, error) {
	var list []lance.Version
	err := s.query(sql, [][]any{args}, func(_ int, r row) error {
		v, err := scanVersion(r)
		list = append(list, v)
		return err
	})
	return list, err
}

// PendingOn implements store.VersionReader.
func (s reader) PendingOn(tables []lance.ObjectID) ([]lance.TransactionID, error) {
	args := make([][]any, len(tables))
	for i, id := range tables {
		args[i] = []any{int64(id)}
	}
	var ids []lance.TransactionID
	seen := map[lance.TransactionID]bool{}
	err := s.query(pendingOnTable, args, func(_ int, r row) error {
		if id := lance.TransactionID(r.Text(0)); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look up pending versions of %d tables: %w", len(tables), err)
	}
	return ids, nil
}

// Branches implements store.VersionReader.
func (s reader) Branches(table lance.ObjectID) ([]lance.Branch, error) {
	var branches []lance.Branch
	err := s.query(branchesOfTable, [][]any{{int64(table)}}, func(_ int, r row) error {
		branches = append(branches, lance.Branch(r.Text(0)))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list branches of table %d: %w", table, err)
	}
	return branches, nil
}

// InsertVersions implements store.VersionWriter.
func (t *tx) InsertVersions(versions []lance.Version) error {
	changed, err := t.insertVersions(versions)
	if err != nil {
		return err
	}
	return t.takeBack(versions, changed)
}

// takeBack returns store.ErrExists, and removes what was written of versions, if one of them found its slot taken: the caller may go on in
// this transaction.
func (t *tx) takeBack(versions []lance.Version, changed []int64) error {
	taken := slices.Index(changed, 0)
	if taken < 0 {
		return nil
	}
	if _, err := t.exec(deleteSlot, slotArgs(written(versions, changed))); err != nil {
		return fmt.Errorf("take back %d versions: %w", len(versions), err)
	}
	s := versions[taken].Slot
	return fmt.Errorf("insert version %d of table %d, branch %s: %w", s.Number, s.Chain.Table, s.Chain.Branch, store.ErrExists)
}

// written returns the slots of the versions that were inserted.
func written(versions []lance.Version, changed []int64) []lance.Slot {
	var slots []lance.Slot
	for i, n := range changed {
		if n == 1 {
			slots = append(slots, versions[i].Slot)
		}
	}
	return slots
}

// AdoptVersions implements store.VersionWriter.
func (t *tx) AdoptVersions(versions []lance.Version) (int, error) {
	changed, err := t.insertVersions(versions)
	return sum(changed), err
}

// insertVersions inserts what finds its slot empty and returns 1 or 0 for each version.
func (t *tx) insertVersions(versions []lance.Version) ([]int64, error) {
	args, err := insertVersionArgs(versions)
	if err != nil {
		return nil, err
	}
	changed, err := t.exec(insertVersion, args)
	if err != nil {
		return nil, fmt.Errorf("insert %d versions: %w", len(versions), err)
	}
	return changed, nil
}

func insertVersionArgs(versions []lance.Version) ([][]any, error) {
	args := make([][]any, len(versions))
	for i := range versions {
		v := &versions[i]
		metadata, err := encodeMap(v.Metadata)
		if err != nil {
			return nil, fmt.Errorf("insert version %d of table %d: %w", v.Number, v.Chain.Table, err)
		}
		args[i] = append([]any{
			int64(v.Chain.Table), string(v.Chain.Branch), int64(v.Number), int64(v.State), int64(v.Origin), string(v.Transaction),
			int64(v.Scheme), v.Staged, v.Size, v.ETag, v.Digest[:], encodeTime(v.Timestamp), metadata,
		}, summaryArgs(v.Summary)...)
	}
	return args, nil
}

// PublishVersions implements store.VersionWriter.
func (t *tx) PublishVersions(versions []lance.Version) (int, error) {
	changed, err := t.exec(publishVersion, publishArgs(versions))
	if err != nil {
		return 0, fmt.Errorf("publish %d versions: %w", len(versions), err)
	}
	return sum(changed), nil
}

func publishArgs(versions []lance.Version) [][]any {
	args := make([][]any, len(versions))
	for i := range versions {
		v := &versions[i]
		args[i] = []any{
			int64(v.Chain.Table), string(v.Chain.Branch), int64(v.Number), string(v.Transaction), int64(v.State), v.Size, v.ETag,
		}
	}
	return args
}

// RemoveVersions implements store.VersionWriter.
func (t *tx) RemoveVersions(slots []lance.Slot, transaction lance.TransactionID) error {
	args := slotArgs(slots)
	for i := range args {
		args[i] = append(args[i], string(transaction))
	}
	if _, err := t.exec(removeVersion, args); err != nil {
		return fmt.Errorf("remove %d versions of transaction %s: %w", len(slots), transaction, err)
	}
	return nil
}

// MarkVersions implements store.VersionWriter.
func (t *tx) MarkVersions(
	chain lance.Chain, first, last lance.VersionNumber, state lance.VersionState, limit int,
) ([]lance.Version, error) {
	if state != lance.VersionPruned && state != lance.VersionDeleted {
		return nil, fmt.Errorf("mark versions of table %d: %d is not a state in which a version ends", chain.Table, state)
	}
	marked, err := t.listVersions(committedBetween, int64(chain.Table), string(chain.Branch), int64(first), int64(last), int64(limit))
	if err != nil {
		return nil, fmt.Errorf("look up versions %d to %d of table %d, branch %s: %w", first, last, chain.Table, chain.Branch, err)
	}
	args := make([][]any, len(marked))
	for i, v := range marked {
		args[i] = []any{int64(chain.Table), string(chain.Branch), int64(v.Number), int64(state)}
	}
	if _, err := t.exec(markVersion, args); err != nil {
		return nil, fmt.Errorf("mark versions %d to %d of table %d, branch %s: %w", first, last, chain.Table, chain.Branch, err)
	}
	return marked, nil
}

// RestoreVersion implements store.VersionWriter.
func (t *tx) RestoreVersion(slot lance.Slot) (bool, error) {
	n, err := change(t, restoreVersion, int64(slot.Chain.Table), string(slot.Chain.Branch), int64(slot.Number))
	if err != nil {
		return false, fmt.Errorf("restore version %d of table %d, branch %s: %w", slot.Number, slot.Chain.Table, slot.Chain.Branch, err)
	}
	return n > 0, nil
}

// RemoveChain implements store.VersionWriter.
func (t *tx) RemoveChain(chain lance.Chain) error {
	if _, err := change(t, removeChain, int64(chain.Table), string(chain.Branch)); err != nil {
		return fmt.Errorf("remove branch %s of table %d: %w", chain.Branch, chain.Table, err)
	}
	return nil
}

func slotArgs(slots []lance.Slot) [][]any {
	args := make([][]any, len(slots))
	for i, s := range slots {
		args[i] = []any{int64(s.Chain.Table), string(s.Chain.Branch), int64(s.Number)}
	}
	return args
}

func sum(changed []int64) int {
	var total int64
	for _, n := range changed {
		total += n
	}
	return int(total)
}

func scanVersion(r row) (lance.Version, error) {
	v := lance.Version{
		Slot: lance.Slot{
			Chain:  lance.Chain{Table: lance.ObjectID(r.Int(0)), Branch: lance.Branch(r.Text(1))},
			Number: lance.VersionNumber(r.Int(2)),
		},
		State:       lance.VersionState(r.Int(3)),
		Origin:      lance.Origin(r.Int(4)),
		Transaction: lance.TransactionID(r.Text(5)),
		Scheme:      lance.NamingScheme(r.Int(6)),
		Staged:      r.Text(7),
		Size:        r.Int(8),
		ETag:        r.Text(9),
		Timestamp:   decodeTime(r.Int(11)),
	}
	if n := copy(v.Digest[:], r.Bytes(10)); n != len(v.Digest) {
		return v, fmt.Errorf("version %d of table %d has a digest of %d bytes", v.Number, v.Chain.Table, n)
	}
	var err error
	if v.Metadata, err = decodeMap(r.Text(12)); err == nil {
		v.Summary, err = scanSummary(r)
	}
	return v, err
}

// summaryColumn is where the columns of the summary begin among versionColumns.
const summaryColumn = 13

func summaryArgs(s *lance.VersionSummary) []any {
	if s == nil {
		return []any{int64(-1), int64(-1), int64(-1), int64(-1), int64(-1), int64(-1), int64(-1), "", ""}
	}
	return []any{
		s.Rows, s.DeletedRows, s.Fragments, s.DataFiles, s.DeletionFiles, s.DataBytes, int64(s.ReaderFlags),
		hex.EncodeToString(s.Schema[:]), s.TransactionUUID,
	}
}

// scanSummary returns nil where the row has none.
func scanSummary(r row) (*lance.VersionSummary, error) {
	const c = summaryColumn
	digest := r.Text(c + 7)
	if digest == "" {
		return nil, nil
	}
	s := &lance.VersionSummary{
		Rows: r.Int(c), DeletedRows: r.Int(c + 1), Fragments: r.Int(c + 2), DataFiles: r.Int(c + 3), DeletionFiles: r.Int(c + 4),
		DataBytes: r.Int(c + 5), ReaderFlags: lance.FeatureFlags(r.Int(c + 6)), TransactionUUID: r.Text(c + 8),
	}
	if n, err := hex.Decode(s.Schema[:], []byte(digest)); err != nil || n != len(s.Schema) {
		return nil, fmt.Errorf("a version has %q for the digest of its schema", digest)
	}
	return s, nil
}
