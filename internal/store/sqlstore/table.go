package sqlstore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// Every statement is written so that it can only be carried out with the index that it is meant for. PostgreSQL would take a small partial
// index and read all of it, where another one is there to look up a single row: dear once the small one has grown, and a serializable transaction
// that reads all of an index meets everybody who inserts into it. So a column stands with "+ 0" where an index on it must not be used, or one
// "WHERE state = 1" and the like; and a namespace is looked up in a subquery and not joined. A test looks at the plans.

// tableColumns are the columns that scanTable reads, of a table o, but for the path of its namespace.
const tableColumns = `o.id, o.parent, o.name, o.state, o.location, o.properties, o.created_at`

// namespacePath is the path of the namespace of a table o, NULL if that is gone.
const namespacePath = `(SELECT p.path FROM objects p WHERE p.id = o.parent)`

const (
	tableByPath = `
SELECT ` + tableColumns + `, CAST($1 AS TEXT)
FROM objects o
WHERE o.parent = (SELECT p.id FROM objects p WHERE p.kind = 1 AND p.path = $1) AND o.name = $2 AND o.state = 1
    AND o.kind IN (1, 2) AND o.kind + 0 = 2`

	// The namespace of a table that is no longer live may be gone.
	tableByID = `
SELECT ` + tableColumns + `, COALESCE(` + namespacePath + `, '')
FROM objects o
WHERE o.id = $1 AND o.kind = 2`

	tablesBelow = `
SELECT ` + tableColumns + `, ` + namespacePath + `
FROM objects o
WHERE o.kind = 2 AND o.state = 1 AND o.parent = $1 AND o.name > $2`

	// Answered from the index objects_list alone.
	tableNamesBelow = `
SELECT o.name
FROM objects o
WHERE o.kind = 2 AND o.state = 1 AND o.parent = $1 AND o.name > $2`

	allTables = `
SELECT ` + tableColumns + `, ` + namespacePath + `
FROM objects o
WHERE o.kind = 2 AND o.state = 1 AND (o.parent, o.name) > ($1, $2)`

	// A pending version does not count: nobody sees it before its transaction is resolved (C7). The limit makes the database look for each
	// table's own versions, and keeps it from reading those of all.
	hasVersions = `
AND EXISTS (SELECT 1 FROM versions v WHERE v.table_id = o.id AND v.branch = '' AND v.version > 0 AND v.state > 0 LIMIT 1 OFFSET 0)`

	inNameOrder = `
ORDER BY o.parent, o.name
LIMIT $3`

	// The claimed location at or before $1 and the one at or after it. Claimed locations never overlap, and in this order
	// nothing that does not begin with "a/" stands between "a/" and "a/b/": so an ancestor of $1 can only be the first, and
	// a descendant only the second. The third is the place of a namespace's tables at or after it.
	neighbours = `
SELECT
    COALESCE((SELECT max(location) FROM objects WHERE kind = 2 AND state <> 3 AND location <= $1), ''),
    COALESCE((SELECT min(location) FROM objects WHERE kind = 2 AND state <> 3 AND location >= $1), ''),
    COALESCE((SELECT min(location) FROM objects WHERE kind = 1 AND location >= $1), '')`

	// The namespace is found by its path, in an index of namespaces alone: other tables that are inserted meanwhile do not touch it.
	insertTable = `
INSERT INTO objects (id, kind, parent, name, state, location, properties, created_at)
SELECT $1, 2, p.id, $2, 1, $3, $4, $5
FROM objects p
WHERE p.id = $6 AND p.kind = 1 AND p.path = $7
ON CONFLICT DO NOTHING`

	renameTable = `
UPDATE objects
SET parent = $2, name = $3
WHERE id = $1 AND kind + 0 = 2 AND state + 0 = 1
    AND EXISTS (SELECT 1 FROM objects p WHERE p.id = $2 AND p.kind + 0 = 1)
    AND NOT EXISTS (SELECT 1 FROM objects x WHERE x.kind IN (1, 2) AND x.parent = $2 AND x.name = $3 AND x.state = 1 AND x.id <> $1)`

	tableState = `SELECT state FROM objects WHERE id = $1 AND kind = 2`

	endTable = `UPDATE objects SET state = $2 WHERE id = $1 AND kind + 0 = 2 AND state + 0 = 1`

	forgetVersions = `
DELETE FROM versions
WHERE table_id = $1 AND (branch, version) IN (SELECT branch, version FROM versions WHERE table_id = $1 LIMIT $2)`

	forgetAborted = `
DELETE FROM aborted
WHERE table_id = $1 AND (branch, version, digest) IN (SELECT branch, version, digest FROM aborted WHERE table_id = $1 LIMIT $2)`

	forgetTable = `DELETE FROM objects WHERE id = $1 AND kind = 2 AND state <> 1`
)

// Tables implements store.TableReader.
func (s reader) Tables(ids []lance.TableID) ([]lance.Table, error) {
	tables, statement := askTables(ids)
	if err := s.together(statement); err != nil {
		return nil, fmt.Errorf("look up %d tables: %w", len(ids), err)
	}
	return tables, nil
}

// askTables returns what looks up tables, and where they come to.
func askTables(ids []lance.TableID) ([]lance.Table, *statement) {
	tables := make([]lance.Table, len(ids))
	args := make([][]any, len(ids))
	for i, id := range ids {
		path, name := nameArgs(id)
		args[i] = []any{path, name}
	}
	return tables, &statement{sql: tableByPath, args: args, scan: func(i int, r row) (err error) {
		tables[i], err = scanTable(r)
		return err
	}}
}

// nameArgs returns the path of a table's namespace as in its column, and the table's name.
func nameArgs(id lance.TableID) (namespace, name string) {
	if path, ok := encodePath(id.Namespace()); ok {
		return path, id.Name()
	}
	return "", "" // no table has an empty name
}

// TableByID implements store.TableReader.
func (s reader) TableByID(id lance.ObjectID) (lance.Table, error) {
	var t lance.Table
	found, err := one(s, tableByID, []any{int64(id)}, func(r row) (err error) {
		t, err = scanTable(r)
		return err
	})
	if err != nil {
		return lance.Table{}, fmt.Errorf("look up table %d: %w", id, err)
	}
	if !found {
		return lance.Table{}, notFound("table", id)
	}
	return t, nil
}

// ListTables implements store.TableReader.
func (s reader) ListTables(namespace lance.ObjectID, page store.TablePage) ([]lance.Table, error) {
	list, err := s.listTables(tablesBelow, namespace, page)
	if err != nil {
		return nil, fmt.Errorf("list tables below %d: %w", namespace, err)
	}
	return list, nil
}

// TableNames implements store.TableReader.
func (s reader) TableNames(namespace lance.ObjectID, page store.TablePage) ([]string, error) {
	names := make([]string, 0, min(page.Limit, maxNamesAhead))
	err := s.query(pageSQL(tableNamesBelow, page), pageArgs(namespace, page), func(_ int, r row) error {
		names = append(names, r.Text(0))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list names of tables below %d: %w", namespace, err)
	}
	return names, nil
}

// maxNamesAhead bounds the room that is made for a page before its names are there.
const maxNamesAhead = 1024

// ListAllTables implements store.TableReader.
func (s reader) ListAllTables(page store.TablePage) ([]lance.Table, error) {
	list, err := s.listTables(allTables, page.AfterNamespace, page)
	if err != nil {
		return nil, fmt.Errorf("list all tables after %q below %d: %w", page.AfterName, page.AfterNamespace, err)
	}
	return list, nil
}

func (s reader) listTables(sql string, namespace lance.ObjectID, page store.TablePage) ([]lance.Table, error) {
	var list []lance.Table
	err := s.query(pageSQL(sql, page), pageArgs(namespace, page), func(_ int, r row) error {
		t, err := scanTable(r)
		list = append(list, t)
		return err
	})
	return list, err
}

func pageSQL(sql string, page store.TablePage) string {
	if page.WithoutDeclared {
		sql += hasVersions
	}
	return sql + inNameOrder
}

func pageArgs(namespace lance.ObjectID, page store.TablePage) [][]any {
	return [][]any{{int64(namespace), page.AfterName, int64(page.Limit)}}
}

// InsertTable implements store.TableWriter.
func (t *tx) InsertTable(table lance.Table) error {
	name := table.Path.Name()
	namespace, ok := encodePath(table.Path.Namespace())
	if !ok || name == "" || table.Location == "" || strings.HasSuffix(table.Location, "/") {
		return fmt.Errorf("insert table %q at %q: a table has a name and a location without a trailing slash", table.Path, table.Location)
	}
	properties, err := encodeMap(table.Properties)
	if err != nil {
		return fmt.Errorf("insert table %q: %w", table.Path, err)
	}
	around, err := t.around(table.Location)
	if err != nil {
		return fmt.Errorf("insert table %q: %w", table.Path, err)
	}
	overlap := cmp.Or(around[0], around[1], around[2])
	if overlap == "" {
		n, err := change(t, insertTable,
			int64(table.ID), name, table.Location+"/", properties, encodeTime(table.CreatedAt), int64(table.Namespace), namespace)
		if err != nil {
			return fmt.Errorf("insert table %q: %w", table.Path, err)
		}
		if n == 1 {
			return nil
		}
	}
	// A taken name is told before a taken location: whoever repeats a call has both.
	if err := t.checkName(table.Namespace, name); err != nil {
		return fmt.Errorf("insert table %q: %w", table.Path, err)
	}
	if overlap != "" {
		return fmt.Errorf("insert table %q at %q, which overlaps %q: %w", table.Path, table.Location, overlap, store.ErrLocationTaken)
	}
	return t.runAgain("table", table.ID)
}

// checkName returns store.ErrNotFound if the namespace is gone and store.ErrExists if the name is taken there.
func (t *tx) checkName(namespace lance.ObjectID, name string) error {
	if found, err := exists(t, namespaceLives, int64(namespace)); err != nil || !found {
		return errOr(err, notFound("namespace", namespace))
	}
	if taken, err := exists(t, nameTaken, int64(namespace), name); err != nil || taken {
		return errOr(err, store.ErrExists)
	}
	return nil
}

// around returns the locations that overlap one, with their slashes, "" where there is none: of a table that is at it or above, of a table
// at it or below, and of a namespace's tables at it or below.
func (s reader) around(location string) (found [3]string, err error) {
	claim := location + "/"
	_, err = one(s, neighbours, []any{claim}, func(r row) error {
		for i := range found {
			if other := r.Text(i); strings.HasPrefix(claim, other) || strings.HasPrefix(other, claim) {
				found[i] = other
			}
		}
		return nil
	})
	return found, err
}

// Claimed implements store.TableReader.
func (s reader) Claimed(location string) (string, error) {
	found, err := s.around(location)
	if err != nil {
		return "", fmt.Errorf("look for locations around %q: %w", location, err)
	}
	return strings.TrimSuffix(cmp.Or(found[0], found[1]), "/"), nil
}

// RenameTable implements store.TableWriter.
func (t *tx) RenameTable(id lance.ObjectID, namespace lance.ObjectID, name string) error {
	n, err := change(t, renameTable, int64(id), int64(namespace), name)
	if err != nil {
		return fmt.Errorf("rename table %d to %q: %w", id, name, err)
	}
	if n == 1 {
		return nil
	}
	state, err := t.tableState(id)
	if err != nil {
		return err
	}
	if state != lance.TableLive {
		return notFound("live table", id)
	}
	if err := t.checkName(namespace, name); err != nil {
		return fmt.Errorf("rename table %d to %q: %w", id, name, err)
	}
	return fmt.Errorf("rename table %d to %q: nothing stands in the way, yet it was not renamed", id, name)
}

// EndTable implements store.TableWriter.
func (t *tx) EndTable(id lance.ObjectID, state lance.TableState) error {
	if state != lance.TableDropped && state != lance.TableDeregistered {
		return fmt.Errorf("end table %d: %d is not a state in which a table ends", id, state)
	}
	n, err := change(t, endTable, int64(id), int64(state))
	if err != nil {
		return fmt.Errorf("end table %d: %w", id, err)
	}
	if n == 0 {
		return notFound("live table", id)
	}
	return nil
}

// ForgetTable implements store.TableWriter. The record of the table's aborted contents goes too.
func (t *tx) ForgetTable(id lance.ObjectID, limit int) (bool, error) {
	state, err := t.tableState(id)
	if err != nil || state == 0 {
		return err == nil, err
	}
	if state == lance.TableLive {
		return false, fmt.Errorf("forget table %d: it is live: %w", id, store.ErrExists)
	}
	left := int64(limit)
	for _, sql := range []string{forgetVersions, forgetAborted} {
		n, err := change(t, sql, int64(id), left)
		if err != nil {
			return false, fmt.Errorf("forget table %d: %w", id, err)
		}
		if left -= n; left <= 0 {
			return false, nil
		}
	}
	if _, err := change(t, forgetTable, int64(id)); err != nil {
		return false, fmt.Errorf("forget table %d: %w", id, err)
	}
	return true, nil
}

// tableState returns the state of a table, 0 if its row is gone.
func (t *tx) tableState(id lance.ObjectID) (lance.TableState, error) {
	var state lance.TableState
	_, err := one(t, tableState, []any{int64(id)}, func(r row) error {
		state = lance.TableState(r.Int(0))
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("look up the state of table %d: %w", id, err)
	}
	return state, nil
}

func scanTable(r row) (lance.Table, error) {
	t := lance.Table{
		ID:        lance.ObjectID(r.Int(0)),
		Namespace: lance.ObjectID(r.Int(1)),
		State:     lance.TableState(r.Int(3)),
		Location:  strings.TrimSuffix(r.Text(4), "/"),
		CreatedAt: decodeTime(r.Int(6)),
	}
	if t.State == lance.TableLive {
		t.Path = slices.Clip(append(lance.TableID(decodePath(r.Text(7))), r.Text(2)))
	}
	var err error
	t.Properties, err = decodeMap(r.Text(5))
	return t, err
}
