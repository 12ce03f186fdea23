package sqlstore_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

var update = flag.Bool("update", false, "write what a catalog of the newest schema holds, and what is read from upgraded ones, into testdata/upgrade")

// fixture is a catalog as the binaries left it whose newest migration has a number: testdata/upgrade has one for each of them, with rows in
// every table, in the form of an export. Those of numbers 1 and 2 were made by the binaries of that time, of real operations.
type fixture struct {
	name   string // of the migration
	number int
	rows   []sqlstore.OldRow
}

// dumped is a line of an export: its header, or a row.
type dumped struct {
	Tables map[string][]string `json:"tables"`
	Table  string              `json:"table"`
	Row    []any               `json:"row"`
}

func dumpedLines(t *testing.T, text string) []dumped {
	t.Helper()
	var lines []dumped
	for line := range strings.Lines(text) {
		var d dumped
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.UseNumber()
		if err := decoder.Decode(&d); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines = append(lines, d)
	}
	return lines
}

// fixtures reads those of all migrations.
func fixtures(t *testing.T) []fixture {
	t.Helper()
	names, err := sqlstore.MigrationNames()
	if err != nil {
		t.Fatal(err)
	}
	list := make([]fixture, len(names))
	for i, name := range names {
		if i+1 == len(names) && *update {
			writeMissing(t, name)
		}
		list[i] = readFixture(t, name, i+1)
	}
	return list
}

func fixturePath(name string) string { return filepath.Join("testdata", "upgrade", name+".jsonl") }

// writeMissing writes the fixture of the newest migration, unless there is one: it stays what the binary of its time left.
func writeMissing(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Stat(fixturePath(name)); err == nil {
		return
	}
	s := fresh(t)
	fill(t, s, 3)
	err := s.Update(t.Context(), func(tx store.Tx) error {
		warm := lance.Namespace{ID: tx.NewID(), Path: lance.NamespaceID{"warm"}, Location: "s3://lake/warm", CreatedAt: tx.Now()}
		return errors.Join(declare(tx, "t"), tx.InsertNamespace(warm))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fixturePath(name), []byte(export(t, s)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readFixture(t *testing.T, name string, number int) fixture {
	t.Helper()
	path := fixturePath(name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: a migration comes with what a catalog holds after it, so that the next one is tried on that: go test ./internal/store/sqlstore -run Upgrade -update writes it", err)
	}
	f := fixture{name: name, number: number}
	lines := dumpedLines(t, string(text))
	types := columnTypes(t, number)
	for _, d := range lines[1 : len(lines)-1] {
		row := sqlstore.OldRow{Table: d.Table, Columns: lines[0].Tables[d.Table], Values: d.Row}
		for i, value := range row.Values {
			row.Values[i] = bound(t, value, types[d.Table][row.Columns[i]])
		}
		f.rows = append(f.rows, row)
	}
	for table := range types {
		if !slices.ContainsFunc(f.rows, func(r sqlstore.OldRow) bool { return r.Table == table }) {
			t.Errorf("%s has no row of table %s", path, table)
		}
	}
	return f
}

// bound turns a value of JSON into one that a statement takes for a column of a type.
func bound(t *testing.T, value any, ofType string) any {
	t.Helper()
	var err error
	switch v := value.(type) {
	case json.Number:
		value, err = v.Int64()
	case string:
		if ofType == "BLOB" {
			value, err = base64.StdEncoding.DecodeString(v)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// columnTypes returns the tables that there are after a migration, with the types of their columns.
func columnTypes(t *testing.T, number int) map[string]map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "catalog.db")
	if err := sqlstore.LeaveSQLite(t.Context(), path, sqlstore.Old{Steps: number}); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	rows, _, err := db.Prepare(`
SELECT m.name, c.name, c.type FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name <> 'schema_migrations'`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	types := map[string]map[string]string{}
	for rows.Step() {
		table := rows.ColumnText(0)
		if types[table] == nil {
			types[table] = map[string]string{}
		}
		types[table][rows.ColumnText(1)] = rows.ColumnText(2)
	}
	return types
}

// dialect is how a test makes an old catalog, and opens it.
type dialect struct {
	leave  func(old sqlstore.Old) error
	open   func() (store.Store, error)
	beside func() (store.Store, error)
}

// TestUpgrade opens what binaries of every earlier migration left: all of it is there and can be read, and life goes on. A binary of that
// time refuses what has become of it.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "catalog.db")
			f.upgrade(t, dialect{
				leave: func(old sqlstore.Old) error { return sqlstore.LeaveSQLite(t.Context(), path, old) },
				open:  func() (store.Store, error) { return sqlstore.OpenSQLite(t.Context(), sqlstore.Options{Path: path}) },
				beside: func() (store.Store, error) {
					return sqlstore.OpenSQLite(t.Context(), sqlstore.Options{Path: path, Beside: true})
				},
			})
		})
	}
}

func (f fixture) upgrade(t *testing.T, d dialect) {
	if err := d.leave(sqlstore.Old{Steps: f.number, Rows: f.rows}); err != nil {
		t.Fatalf("make the old catalog: %v", err)
	}
	names, err := sqlstore.MigrationNames()
	if err != nil {
		t.Fatal(err)
	}
	older := f.number < len(names)
	if older {
		_, err := d.beside()
		if want := fmt.Sprintf("the catalog's schema is number %d, this binary needs %d: start it anew to migrate", f.number, len(names)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("opened beside nobody: got error %v, want one that says %q", err, want)
		}
	}
	for range 2 { // the second finds nothing to do
		s, err := d.open()
		if err != nil {
			t.Fatalf("open the old catalog: %v", err)
		}
		if diff := cmp.Diff(f.lines(t), f.lines(t, export(t, s))); diff != "" {
			t.Errorf("rows (-before the upgrade +after it):\n%s", diff)
		}
		f.golden(t, f.read(t, s))
		if err := errors.Join(s.Ping(t.Context()), s.Close()); err != nil {
			t.Error(err)
		}
	}
	s, err := d.open()
	if err != nil {
		t.Fatal(err)
	}
	f.goOn(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if older {
		err := d.leave(sqlstore.Old{Steps: f.number})
		if want := fmt.Sprintf("the catalog's schema is number %d, this binary knows up to %d: use the newer binary that wrote it", len(names), f.number); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the old binary: got error %v, want one that says %q", err, want)
		}
	}
}

// lines returns the rows of the fixture, or of a dump, as sorted text. Of a dump it leaves out tables and columns that the fixture does not have.
func (f fixture) lines(t *testing.T, dump ...string) []string {
	t.Helper()
	columns := map[string][]string{}
	var lines []string
	for _, r := range f.rows {
		columns[r.Table] = r.Columns
		if dump == nil {
			lines = append(lines, fmt.Sprintf("%s %v", r.Table, r.Values))
		}
	}
	if dump != nil {
		all := dumpedLines(t, dump[0])
		types := columnTypes(t, f.number)
		for _, d := range all[1 : len(all)-1] {
			var values []any
			for _, c := range columns[d.Table] {
				i := slices.Index(all[0].Tables[d.Table], c)
				values = append(values, bound(t, d.Row[i], types[d.Table][c]))
			}
			if values != nil {
				lines = append(lines, fmt.Sprintf("%s %v", d.Table, values))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// column returns a column of a fixture's row.
func column[T any](r sqlstore.OldRow, name string) T {
	return r.Values[slices.Index(r.Columns, name)].(T)
}

// read returns all that the fixture holds as the Store's own methods read it.
func (f fixture) read(t *testing.T, s store.Store) string {
	t.Helper()
	var out strings.Builder
	err := s.View(t.Context(), func(r store.Reader) error {
		out.Reset()
		say := func(what string, value any, err error) {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			text, err := json.Marshal(value)
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(&out, "%s: %s\n", what, text)
		}
		f.readLists(r, say)
		for _, row := range f.rows {
			f.readRow(r, row, say)
		}
		return nil
	})
	if err != nil {
		t.Errorf("View: %v", err)
	}
	return out.String()
}

// readLists reads what is found without knowing it.
func (f fixture) readLists(r store.Reader, say func(what string, value any, err error)) {
	parents := []lance.ObjectID{0}
	for i := 0; i < len(parents); i++ {
		children, err := r.ListNamespaces(parents[i], "", 100)
		say(fmt.Sprint("namespaces below ", parents[i]), children, err)
		for _, ns := range children {
			parents = append(parents, ns.ID)
		}
		tables, err := r.ListTables(parents[i], store.TablePage{Limit: 100})
		say(fmt.Sprint("tables below ", parents[i]), tables, err)
		for _, table := range tables {
			again, err := r.Tables([]lance.TableID{table.Path})
			say(fmt.Sprintf("table %q", table.Path), again[0].ID, err)
		}
	}
	pending, err := r.PendingTransactions(time.UnixMilli(1<<42), 100)
	say("pending", pending, err)
	due, err := r.JobsDue([]string{"purge_table", "forget_table", "delete_manifests", "drop_detached", "clean_aborted", "k"}, time.UnixMilli(1<<42))
	say("jobs are due", due, err)
}

// readRow reads what a row of the fixture is about.
func (f fixture) readRow(r store.Reader, row sqlstore.OldRow, say func(what string, value any, err error)) {
	slot := func() lance.Slot {
		chain := lance.Chain{Table: lance.ObjectID(column[int64](row, "table_id")), Branch: lance.Branch(column[string](row, "branch"))}
		return lance.Slot{Chain: chain, Number: lance.VersionNumber(column[int64](row, "version"))}
	}
	switch row.Table {
	case "objects":
		if column[int64](row, "kind") == 2 {
			id := lance.ObjectID(column[int64](row, "id"))
			table, err := r.TableByID(id)
			say("table", table, err)
			branches, err := r.Branches(id)
			say("its branches", branches, err)
		}
	case "versions":
		versions, err := r.Versions([]lance.Slot{slot()})
		say("version", versions, err)
		heads, err := r.Heads([]lance.Chain{slot().Chain})
		say("its head", heads[0].Number, err)
		list, err := r.ListVersions(slot().Chain, store.VersionPage{Limit: 100})
		numbers := make([]lance.VersionNumber, len(list))
		for i, v := range list {
			numbers[i] = v.Number
		}
		say("its chain", numbers, err)
	case "transactions":
		transaction, err := r.Transaction(lance.TransactionID(column[string](row, "id")))
		say("transaction", transaction, err)
	case "aborted":
		content := store.Content{Slot: slot(), Digest: lance.Digest(column[[]byte](row, "digest"))}
		aborted, err := r.Aborted([]store.Content{content})
		say("aborted", aborted, err)
		burnt, err := r.Burnt([]lance.Slot{content.Slot})
		say("burnt", burnt, err)
	case "jobs":
		jobs, err := r.Jobs(column[string](row, "kind"), 0, 100)
		say("jobs", jobs, err)
	case "meta":
		value, err := r.Meta(column[string](row, "key"))
		say("meta", value, err)
	case "answers":
		answer, err := r.Answer(column[string](row, "key"))
		say("answer", answer, err)
	case "unsynced":
		manifests, err := r.Unsynced(lance.ObjectID(column[int64](row, "id")-1), 1)
		say("unsynced", manifests, err)
	default:
		say(row.Table, nil, errors.New("this test does not know how the Store reads this table: teach it"))
	}
}

// golden compares what was read with testdata/upgrade: the same in every dialect.
func (f fixture) golden(t *testing.T, got string) {
	t.Helper()
	path := filepath.Join("testdata", "upgrade", f.name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(bytes.TrimSpace(want)), strings.TrimSpace(got)); diff != "" {
		t.Errorf("what is read (-want +got):\n%s", diff)
	}
}

// goOn commits the next version to every chain that has a committed head, and declares a table.
func (f fixture) goOn(t *testing.T, s store.Store) {
	t.Helper()
	var next []lance.Version
	err := s.Update(t.Context(), func(tx store.Tx) error {
		next = nil
		for _, row := range f.rows {
			if row.Table != "versions" {
				continue
			}
			chain := lance.Chain{Table: lance.ObjectID(column[int64](row, "table_id")), Branch: lance.Branch(column[string](row, "branch"))}
			heads, err := tx.Heads([]lance.Chain{chain})
			if err != nil {
				return err
			}
			if heads[0].Number == lance.VersionNumber(column[int64](row, "version")) && heads[0].State == lance.VersionCommitted && heads[0].Number < 1<<62 {
				heads[0].Number++
				next = append(next, heads[0])
			}
		}
		return errors.Join(tx.InsertVersions(next), declare(tx, "after the upgrade"))
	})
	if err != nil {
		t.Fatalf("Update: %v", err)
	}
	if len(next) == 0 {
		t.Error("no chain of the fixture goes on: it shows nothing of versions")
	}
	err = s.View(t.Context(), func(r store.Reader) error {
		for _, v := range next {
			heads, err := r.Heads([]lance.Chain{v.Chain})
			if err != nil {
				return err
			}
			if diff := cmp.Diff(v, heads[0]); diff != "" {
				t.Errorf("the next version (-written +read):\n%s", diff)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
