package sqlstore_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
	"github.com/lancerest/lancerest/internal/store/sqlstore/dumpfile"
)

// pages is how many versions take several pages.
const pages = 2500

// fill puts something into every table, and a number of versions.
func fill(t *testing.T, s store.Store, count lance.VersionNumber) {
	t.Helper()
	at := time.UnixMilli(1_700_000_000_123).UTC()
	odd := map[string]string{"ключ \"\\\u001f\u2028<&>": "värde\n\t\U0001F30D"}
	err := s.Update(t.Context(), func(tx store.Tx) error {
		ns := lance.Namespace{ID: tx.NewID(), Path: lance.NamespaceID{"a b"}, Properties: odd, CreatedAt: at}
		table := lance.Table{
			ID: tx.NewID(), Namespace: ns.ID, Path: lance.TableID{"a b", "t"}, State: lance.TableLive, Location: "file:///data/t", Properties: odd, CreatedAt: at,
		}
		chain := lance.Chain{Table: table.ID, Branch: "exp/1"}
		slot := lance.Slot{Chain: chain, Number: math.MinInt64}
		var versions []lance.Version
		for n := range count {
			versions = append(versions, lance.Version{
				Slot: lance.Slot{Chain: chain, Number: math.MaxInt64 - n}, State: lance.VersionCommitted, Transaction: "one", Scheme: lance.SchemeV2,
				Digest: sha256.Sum256(fmt.Append(nil, n)), Timestamp: at, Metadata: odd,
			})
		}
		versions[0].Slot = slot
		return errors.Join(
			tx.InsertNamespace(ns), tx.InsertTable(table), tx.InsertVersions(versions),
			tx.InsertTransaction(lance.Transaction{
				ID: "one", State: lance.TransactionPending, Principal: "somebody", CreatedAt: at, Context: odd,
				Entries: []lance.Entry{{}, {}}, Properties: odd,
			}),
			tx.RecordAborted("two", []store.Content{{Slot: slot, Digest: lance.Digest{0, 255, 10}, Seen: true}, {Slot: slot}}),
			tx.InsertJob(store.Job{ID: tx.NewID(), Kind: "k", Payload: `{"a": 1}`, RunAt: at, LastErr: "x"}),
			tx.InsertMeta("secret", "s3cret"), tx.InsertMeta("root/0", "file:///data"),
			tx.InsertUnsynced([]store.Unsynced{{ID: tx.NewID(), Slot: slot, Scheme: lance.SchemeV2, Location: "file:///data/t", Data: []byte{0, 255, 10}}}),
			tx.InsertAnswer(store.Answer{Key: "who/key", Fingerprint: lance.Digest{1}, Status: 200, Body: "{}", CreatedAt: at}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func export(t *testing.T, s store.Store) string {
	t.Helper()
	var out bytes.Buffer
	rows, err := sqlstore.Export(t.Context(), s, &out)
	if err != nil {
		t.Fatalf("Export: %v", err)
	}
	if lines := int64(strings.Count(out.String(), "\n")); lines != rows+2 {
		t.Errorf("Export said %d rows and wrote %d lines, with the first and the last one", rows, lines)
	}
	return out.String()
}

func fresh(t *testing.T) *sqlstore.SQLite {
	t.Helper()
	return open(t, sqlstore.Unsynced(sqlstore.Options{}))
}

// carried imports a dump into an empty store and returns what that one exports.
func carried(t *testing.T, dump string, into store.Store) string {
	t.Helper()
	rows, err := sqlstore.Import(t.Context(), into, iotest.HalfReader(strings.NewReader(dump)))
	if err != nil {
		t.Fatalf("Import: %v", err)
	}
	if lines := int64(strings.Count(dump, "\n")); lines != rows+2 {
		t.Errorf("Import said %d rows of %d lines", rows, lines)
	}
	return export(t, into)
}

func TestDump(t *testing.T) {
	t.Parallel()
	from := fresh(t)
	fill(t, from, pages)
	dump := export(t, from)
	into := fresh(t)
	if diff := cmp.Diff(dump, carried(t, dump, into)); diff != "" {
		t.Errorf("what was imported is not what was exported (-exported +imported):\n%.2000s", diff)
	}
	// What was imported is of use: a table is found under its name.
	err := into.View(t.Context(), func(r store.Reader) error {
		tables, err := r.Tables([]lance.TableID{{"a b", "t"}})
		if err == nil && tables[0].Location != "file:///data/t" {
			t.Errorf("the imported table is %+v", tables[0])
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := sqlstore.Import(t.Context(), into, strings.NewReader(dump)); !errors.Is(err, dumpfile.ErrNotEmpty) {
		t.Errorf("a second import: got error %v, want %v", err, dumpfile.ErrNotEmpty)
	}
	if diff := cmp.Diff(dump, export(t, into)); diff != "" {
		t.Errorf("a refused import changed the state:\n%.2000s", diff)
	}
}

// TestDumpHoldsEverything holds what is exported to the schema.
func TestDumpHoldsEverything(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog.db")
	s := open(t, sqlstore.Options{Path: path})
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	rows, _, err := db.Prepare(`
SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name <> 'schema_migrations' ORDER BY m.name, c.cid`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	want := map[string][]string{}
	for rows.Step() {
		want[rows.ColumnText(0)] = append(want[rows.ColumnText(0)], rows.ColumnText(1))
	}
	got, err := sqlstore.DumpColumns(export(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the schema has other columns than a dump (-schema +dump):\n%s", diff)
	}
}

// signed replaces the last line of a dump by one that holds what the lines before it really are.
func signed(lines []string, rows string) string {
	body := strings.Join(lines, "")
	return body + fmt.Sprintf(`{"rows":%s,"sha256":"%x"}`+"\n", rows, sha256.Sum256([]byte(body)))
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	from := fresh(t)
	fill(t, from, 8)
	dump := export(t, from)
	lines := strings.SplitAfter(strings.TrimSuffix(dump, "\n"), "\n")
	header, end := lines[0], lines[len(lines)-1]
	counts := end[len(`{"rows":`):strings.Index(end, `,"sha256"`)]
	body := lines[:len(lines)-1]
	changed := func(old, new string) []string {
		return append([]string{strings.Replace(header, old, new, 1)}, body[1:]...)
	}
	without := func(n int) []string { return append(append([]string{}, body[:n]...), body[n+1:]...) }
	other := sha256.Sum256([]byte("other"))
	for name, broken := range map[string]string{
		"nothing":                   "",
		"something else":            "{}\n",
		"no JSON":                   "hello\n",
		"cut off between lines":     strings.Join(lines[:9], ""),
		"cut off in a line":         dump[:len(dump)/2],
		"without the last line":     strings.Join(body, ""),
		"without the last newline":  dump[:len(dump)-1],
		"only the end":              end + "\n",
		"another checksum":          strings.Join(body, "") + end[:len(end)-66] + hex.EncodeToString(other[:]) + "\"}\n",
		"a changed letter":          strings.Replace(dump, "s3cret", "s4cret", 1),
		"a line less":               strings.Join(append(without(7), end+"\n"), ""),
		"a line less, signed":       signed(without(7), counts),
		"the same line twice":       signed(append(body, body[len(body)-1]), counts),
		"something after the end":   dump + "\n",
		"two dumps":                 dump + dump,
		"a format of the future":    signed(changed(`"format":1`, `"format":2`), counts),
		"a schema of the future":    signed(changed(`"schema":`, `"schema":9`), counts),
		"other columns":             signed(changed(`"path"`, `"way"`), counts),
		"a table that is not known": signed(append(body, `{"row":[1],"table":"sqlite_schema"}`+"\n"), counts),
		"a column less":             signed(append(body, `{"row":["k"],"table":"meta"}`+"\n"), counts),
		"a number in a text":        signed(append(body, `{"row":["k",1],"table":"meta"}`+"\n"), counts),
		"no value":                  signed(append(body, `{"row":["k",null],"table":"meta"}`+"\n"), counts),
		"no rows":                   signed(body[:1], `{}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			into := fresh(t)
			empty := export(t, into)
			_, err := sqlstore.Import(t.Context(), into, strings.NewReader(broken))
			if !errors.Is(err, dumpfile.ErrRefused) {
				t.Errorf("got error %v, want %v", err, dumpfile.ErrRefused)
			}
			if diff := cmp.Diff(empty, export(t, into)); diff != "" {
				t.Errorf("a refused import left something:\n%.2000s", diff)
			}
			if got := carried(t, dump, into); got != dump {
				t.Error("after a refused import the true dump is not imported as it is")
			}
		})
	}
}

func TestImportThatCannotRead(t *testing.T) {
	t.Parallel()
	from, into := fresh(t), fresh(t)
	fill(t, from, 8)
	dump, empty := export(t, from), export(t, into)
	broken := errors.New("the pipe broke")
	_, err := sqlstore.Import(t.Context(), into, iotest.DataErrReader(&failing{strings.NewReader(dump), len(dump) / 2, broken}))
	if !errors.Is(err, broken) {
		t.Errorf("got error %v, want %v", err, broken)
	}
	if diff := cmp.Diff(empty, export(t, into)); diff != "" {
		t.Errorf("a broken import left something:\n%.2000s", diff)
	}
}

// failing gives an error after some bytes.
type failing struct {
	r    *strings.Reader
	left int
	err  error
}

func (f *failing) Read(b []byte) (int, error) {
	if f.left == 0 {
		return 0, f.err
	}
	n, _ := f.r.Read(b[:min(len(b), f.left)])
	f.left -= n
	return n, nil
}

// intruder changes the state as soon as something of it has been written.
type intruder struct {
	bytes.Buffer
	once bool
	do   func()
}

func (w *intruder) Write(b []byte) (int, error) {
	if !w.once {
		w.once = true
		w.do()
	}
	return w.Buffer.Write(b)
}

func TestExportIsOneSnapshot(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	fill(t, s, pages)
	want := export(t, s)
	w := &intruder{do: func() {
		if err := put(context.Background(), s, "zzz"); err != nil {
			t.Error(err)
		}
	}}
	if _, err := sqlstore.Export(t.Context(), s, w); err != nil {
		t.Fatal(err)
	}
	if w.String() != want {
		t.Error("the dump has what was written while it was made")
	}
	if export(t, s) == want {
		t.Error("the other writer was kept out: the test shows nothing")
	}
}

// A dump that differs from the state without a word would be worse than none.
func TestExportRefusesWhatJSONWouldChange(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	err := s.Update(t.Context(), func(tx store.Tx) error { return tx.InsertMeta("k", "\xff") })
	if err != nil {
		t.Fatal(err)
	}
	want := `export the state: table meta: column value of row [k] holds "\xff", which is not UTF-8`
	if _, err := sqlstore.Export(t.Context(), s, &bytes.Buffer{}); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}
