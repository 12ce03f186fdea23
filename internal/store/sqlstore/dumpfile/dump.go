// Package dumpfile knows the form in which a whole state is written down: as lines of JSON, a header, one line a row, and a last line that holds how many rows
// there are of each table and the SHA-256 of all lines before it. The same state gives the same bytes in every dialect.
//
// What does not live here: databases and their transactions, which package sqlstore has.
package dumpfile

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Database is one transaction of a database that has the newest schema. Parameters are written $1, $2, … and bound from int64, string, []byte and
// nil only.
type Database interface {
	// Schema returns the number of the schema.
	Schema() (int64, error)
	// Query runs sql with args and calls scan for every row. It stops at the first error, scan's included.
	Query(sql string, args []any, scan func(Row) error) error
	// Exec runs sql once for each list of arguments, in order.
	Exec(sql string, args [][]any) error
}

// Row reads the columns of one row by position. It is valid only inside the call of scan.
type Row interface {
	Int(column int) int64
	Text(column int) string
	// Bytes returns a slice that the caller must not keep.
	Bytes(column int) []byte
}

// dumpFormat is the version of the form of the lines. A reader refuses any other.
const dumpFormat = 1

const (
	// dumpPage is how many rows one query reads.
	dumpPage = 1000
	// importRows and importBytes bound what is sent to the database at once.
	importRows  = 500
	importBytes = 4 << 20
	// lineMax bounds a line. The longest are transactions, whose entries arrived in one request.
	lineMax = 256 << 20
)

// ErrRefused is the error of a dump that cannot be imported as it is: cut off, changed, or of another version.
var ErrRefused = errors.New("the file cannot be imported")

// ErrNotEmpty is the error of an import into a catalog that holds something already.
var ErrNotEmpty = errors.New("the catalog is not empty")

// columnType is what a column holds.
type columnType int

const (
	integerColumn columnType = iota
	textColumn
	blobColumn // in base64
	nullableColumn
)

// dumpColumn is one column of a table.
type dumpColumn struct {
	name  string
	holds columnType
}

// dumpTable is one table. Its rows are in the order of their primary key, which is its first columns.
type dumpTable struct {
	name    string
	key     int // how many of the columns
	columns []dumpColumn
}

// dumpTables returns all tables of the newest schema but the one of its number. A test holds them to the schema.
func dumpTables() []dumpTable {
	return []dumpTable{
		{"objects", 1, []dumpColumn{
			{"id", integerColumn}, {"kind", integerColumn}, {"parent", integerColumn}, {"name", textColumn}, {"state", integerColumn},
			{"path", nullableColumn}, {"location", nullableColumn}, {"properties", textColumn}, {"created_at", integerColumn},
		}},
		{"versions", 3, []dumpColumn{
			{"table_id", integerColumn}, {"branch", textColumn}, {"version", integerColumn}, {"state", integerColumn}, {"origin", integerColumn}, {"txn", textColumn},
			{"scheme", integerColumn}, {"staged", textColumn}, {"size", integerColumn}, {"e_tag", textColumn}, {"digest", blobColumn}, {"ts", integerColumn}, {"metadata", textColumn},
			{"live_rows", integerColumn}, {"deleted_rows", integerColumn}, {"fragments", integerColumn}, {"data_files", integerColumn}, {"deletion_files", integerColumn},
			{"data_bytes", integerColumn}, {"reader_flags", integerColumn}, {"schema_digest", textColumn}, {"change_uuid", textColumn},
		}},
		{"transactions", 1, []dumpColumn{
			{"id", textColumn}, {"state", integerColumn}, {"principal", textColumn}, {"created_at", integerColumn}, {"resolved_at", integerColumn}, {"context", textColumn},
			{"entries", textColumn}, {"status", textColumn}, {"properties", textColumn},
		}},
		{"aborted", 4, []dumpColumn{
			{"table_id", integerColumn}, {"branch", textColumn}, {"version", integerColumn}, {"digest", blobColumn}, {"txn", textColumn}, {"seen", integerColumn},
		}},
		{"jobs", 1, []dumpColumn{
			{"id", integerColumn}, {"kind", textColumn}, {"payload", textColumn}, {"run_at", integerColumn}, {"attempts", integerColumn}, {"last_err", textColumn},
		}},
		{"meta", 1, []dumpColumn{{"key", textColumn}, {"value", textColumn}}},
		{"answers", 1, []dumpColumn{
			{"key", textColumn}, {"fingerprint", blobColumn}, {"status", integerColumn}, {"body", textColumn}, {"created_at", integerColumn},
		}},
		{"unsynced", 1, []dumpColumn{
			{"id", integerColumn}, {"table_id", integerColumn}, {"branch", textColumn}, {"version", integerColumn}, {"scheme", integerColumn}, {"location", textColumn}, {"data", blobColumn},
		}},
	}
}

// dumpHeader is the first line.
type dumpHeader struct {
	Lancerest string              `json:"lancerest"` // what the file is: dumpKind
	Format    int                 `json:"format"`
	Schema    int64               `json:"schema"`
	Tables    map[string][]string `json:"tables"` // their columns, in the order of the rows
}

const dumpKind = "state"

// dumpRow is a line of a row.
type dumpRow struct {
	Table string            `json:"table"`
	Row   []json.RawMessage `json:"row"`
}

// dumpEnd is the last line.
type dumpEnd struct {
	Rows   map[string]int64 `json:"rows"`
	SHA256 string           `json:"sha256"`
}

func headerOf(schema int64) dumpHeader {
	h := dumpHeader{Lancerest: dumpKind, Format: dumpFormat, Schema: schema, Tables: map[string][]string{}}
	for _, t := range dumpTables() {
		h.Tables[t.name] = t.names()
	}
	return h
}

func (t dumpTable) names() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}

// page is the statement that reads rows after a key, or the first rows. After the columns come, for those that may be NULL, columns that
// say whether they are.
func (t dumpTable) page(first bool) string {
	columns := strings.Join(t.names(), ", ")
	for _, c := range t.columns {
		if c.holds == nullableColumn {
			columns += ", CAST(CASE WHEN " + c.name + " IS NULL THEN 1 ELSE 0 END AS BIGINT)"
		}
	}
	key := strings.Join(t.names()[:t.key], ", ")
	where, limit := "", 1
	if !first {
		where, limit = " WHERE ("+key+") > ("+parameters(t.key)+")", t.key+1
	}
	return "SELECT " + columns + " FROM " + t.name + where + " ORDER BY " + key + " LIMIT $" + strconv.Itoa(limit)
}

func (t dumpTable) insert() string {
	return "INSERT INTO " + t.name + " (" + strings.Join(t.names(), ", ") + ") VALUES (" + parameters(len(t.columns)) + ")"
}

// parameters returns "$1, $2, …" up to n.
func parameters(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = "$" + strconv.Itoa(i+1)
	}
	return strings.Join(list, ", ")
}

// Write writes the whole state in a database to w, in bounded memory, and returns the number of rows. What was written counts for nothing if it
// returns an error, which is that of the database, of w, or of ctx, or says which value cannot be written.
func Write(ctx context.Context, d Database, w io.Writer) (int64, error) {
	buffered := bufio.NewWriterSize(w, 1<<16)
	rows, err := (&exporter{ctx: ctx, database: d, w: buffered, sum: sha256.New()}).run()
	if err != nil {
		return 0, err
	}
	return rows, buffered.Flush()
}

// exporter writes one dump.
type exporter struct {
	ctx      context.Context
	database Database
	w        io.Writer
	sum      hash.Hash
}

func (e *exporter) run() (int64, error) {
	schema, err := e.database.Schema()
	if err != nil {
		return 0, err
	}
	if err := e.line(headerOf(schema)); err != nil {
		return 0, err
	}
	end := dumpEnd{Rows: map[string]int64{}}
	var total int64
	for _, t := range dumpTables() {
		n, err := e.table(t)
		if err != nil {
			return 0, fmt.Errorf("table %s: %w", t.name, err)
		}
		end.Rows[t.name] = n
		total += n
	}
	end.SHA256 = hex.EncodeToString(e.sum.Sum(nil))
	return total, e.line(end)
}

// table writes the rows of a table and returns their number.
func (e *exporter) table(t dumpTable) (int64, error) {
	var total int64
	var after []any
	for {
		n := 0
		last := after
		err := e.database.Query(t.page(after == nil), append(slices.Clip(after), int64(dumpPage)), func(r Row) error {
			values, err := t.read(r)
			if err != nil {
				return err
			}
			n++
			last = values[:t.key]
			return e.line(map[string]any{"table": t.name, "row": values})
		})
		total += int64(n)
		if err == nil {
			err = e.ctx.Err()
		}
		if err != nil || n < dumpPage {
			return total, err
		}
		after = last
	}
}

// read returns a row's values as int64, string, []byte and nil.
func (t dumpTable) read(r Row) ([]any, error) {
	values := make([]any, len(t.columns))
	null := len(t.columns) // the next column that says whether one is NULL
	for i, c := range t.columns {
		switch c.holds {
		case integerColumn:
			values[i] = r.Int(i)
		case blobColumn:
			values[i] = slices.Concat([]byte{}, r.Bytes(i)) // never nil, which would be NULL
		case textColumn:
			values[i] = r.Text(i)
		case nullableColumn:
			if r.Int(null) == 0 {
				values[i] = r.Text(i)
			}
			null++
		}
		if s, ok := values[i].(string); ok && !utf8.ValidString(s) { // JSON would change it
			return nil, fmt.Errorf("column %s of row %v holds %q, which is not UTF-8", c.name, values[:t.key], s)
		}
	}
	return values, nil
}

func (e *exporter) line(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	e.sum.Write(data)
	_, err = e.w.Write(data)
	return err
}

// Read fills an empty database with a dump and returns the number of rows. Where it returns an error nothing of what it wrote may stay. The error
// wraps ErrRefused if the dump is at fault, ErrNotEmpty if the database holds anything already; any other is that of the database, of r, or of ctx.
func Read(ctx context.Context, d Database, r io.Reader) (int64, error) {
	return (&importer{ctx: ctx, database: d, r: bufio.NewReaderSize(r, 1<<16), sum: sha256.New(), rows: map[string]int64{}}).run()
}

// importer reads one dump.
type importer struct {
	ctx      context.Context
	database Database
	r        *bufio.Reader
	sum      hash.Hash // of the lines before the one read last
	number   int       // of the line read last
	rows     map[string]int64

	table   dumpTable // whose rows wait to be inserted
	waiting [][]any
	bytes   int
}

func (i *importer) run() (int64, error) {
	if err := i.empty(); err != nil {
		return 0, err
	}
	if err := i.header(); err != nil {
		return 0, err
	}
	for {
		line, err := i.line()
		if err != nil {
			return 0, err
		}
		if bytes.HasPrefix(line, []byte(`{"rows":`)) {
			break
		}
		if err := i.row(line); err != nil {
			return 0, err
		}
	}
	if err := i.flush(); err != nil {
		return 0, err
	}
	var total int64
	for n := range maps.Values(i.rows) {
		total += n
	}
	return total, nil
}

// empty makes sure that the catalog holds nothing, and takes away the root namespace, which the dump brings along.
func (i *importer) empty() error {
	for _, t := range dumpTables() {
		where := ""
		if t.name == "objects" {
			where = " WHERE id <> 0"
		}
		found := false
		err := i.database.Query("SELECT "+t.columns[0].name+" FROM "+t.name+where+" LIMIT 1", nil, func(Row) error {
			found = true
			return nil
		})
		if err != nil {
			return err
		}
		if found {
			return fmt.Errorf("%w: table %s has rows; a state can only be imported where no server has ever run", ErrNotEmpty, t.name)
		}
	}
	return i.database.Exec(`DELETE FROM objects WHERE id = 0`, [][]any{nil})
}

func (i *importer) header() error {
	line, err := i.line()
	if err != nil {
		return err
	}
	var h dumpHeader
	if err := json.Unmarshal(line, &h); err != nil || h.Lancerest != dumpKind {
		return i.refuse("it does not begin as what lancerest export writes")
	}
	if h.Format != dumpFormat {
		return i.refuse("its format is %d, this binary knows %d: use the version of lancerest that wrote it", h.Format, dumpFormat)
	}
	schema, err := i.database.Schema()
	if err != nil {
		return err
	}
	if h.Schema != schema {
		return i.refuse("its schema is number %d, this binary's is %d: import it with the version of lancerest that wrote it, then start this one, which migrates", h.Schema, schema)
	}
	if want := headerOf(schema); !maps.EqualFunc(h.Tables, want.Tables, slices.Equal) {
		return i.refuse("its tables are %v, this binary's are %v", h.Tables, want.Tables)
	}
	return nil
}

// row takes the line of a row.
func (i *importer) row(line []byte) error {
	var d dumpRow
	if err := json.Unmarshal(line, &d); err != nil {
		return i.refuse("this is no row: %v", err)
	}
	if d.Table != i.table.name {
		if err := i.flush(); err != nil {
			return err
		}
		k := slices.IndexFunc(dumpTables(), func(t dumpTable) bool { return t.name == d.Table })
		if k < 0 {
			return i.refuse("there is no table %q", d.Table)
		}
		i.table = dumpTables()[k]
	}
	values, err := i.table.parse(d.Row)
	if err != nil {
		return i.refuse("a row of %s: %v", d.Table, err)
	}
	i.rows[d.Table]++
	i.waiting = append(i.waiting, values)
	i.bytes += len(line)
	if len(i.waiting) >= importRows || i.bytes >= importBytes {
		return i.flush()
	}
	return nil
}

// parse is the inverse of read and of JSON.
func (t dumpTable) parse(row []json.RawMessage) ([]any, error) {
	if len(row) != len(t.columns) {
		return nil, fmt.Errorf("it has %d columns where there are %d", len(row), len(t.columns))
	}
	values := make([]any, len(row))
	for i, c := range t.columns {
		null := string(row[i]) == "null"
		if null && c.holds == nullableColumn {
			continue
		}
		var err error
		switch c.holds {
		case integerColumn:
			values[i], err = parse[int64](row[i])
		case blobColumn:
			values[i], err = parse[[]byte](row[i])
		case textColumn, nullableColumn:
			values[i], err = parse[string](row[i])
		}
		if err != nil || null {
			return nil, fmt.Errorf("column %s cannot be %.100s", c.name, row[i])
		}
	}
	return values, nil
}

func parse[T any](data json.RawMessage) (T, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return v, err
}

// flush inserts the rows that wait.
func (i *importer) flush() error {
	if len(i.waiting) == 0 {
		return nil
	}
	if err := i.database.Exec(i.table.insert(), i.waiting); err != nil {
		return fmt.Errorf("insert rows of %s up to line %d: %w", i.table.name, i.number, err)
	}
	i.waiting, i.bytes = i.waiting[:0], 0
	return i.ctx.Err()
}

// line returns the next line. It verifies the last one, so that whoever gets that has a whole dump.
func (i *importer) line() ([]byte, error) {
	i.number++
	var line []byte
	for {
		part, err := i.r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(line) <= lineMax:
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, i.refuse("the line is longer than %d bytes", lineMax)
		case errors.Is(err, io.EOF):
			return nil, i.refuse("it is cut off: the last line that lancerest export writes is missing")
		case err != nil:
			return nil, fmt.Errorf("read line %d: %w", i.number, err)
		}
		break
	}
	if bytes.HasPrefix(line, []byte(`{"rows":`)) {
		return line, i.verify(line)
	}
	i.sum.Write(line)
	return line, nil
}

// verify compares the last line with what was read before it.
func (i *importer) verify(line []byte) error {
	var end dumpEnd
	if err := json.Unmarshal(line, &end); err != nil {
		return i.refuse("the last line cannot be read: %v", err)
	}
	for _, t := range dumpTables() {
		if end.Rows[t.name] != i.rows[t.name] {
			return i.refuse("it should have %d rows of %s and has %d", end.Rows[t.name], t.name, i.rows[t.name])
		}
	}
	if got := hex.EncodeToString(i.sum.Sum(nil)); got != end.SHA256 {
		return i.refuse("its checksum is %s and should be %s: it was changed", got, end.SHA256)
	}
	if i.rows["objects"] == 0 {
		return i.refuse("it has no root namespace")
	}
	if _, err := i.r.ReadByte(); err == nil {
		return i.refuse("something follows the last line")
	} else if !errors.Is(err, io.EOF) {
		return fmt.Errorf("read beyond line %d: %w", i.number, err)
	}
	return nil
}

// refuse says what is wrong with the dump.
func (i *importer) refuse(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrRefused, i.number, fmt.Sprintf(format, args...))
}
