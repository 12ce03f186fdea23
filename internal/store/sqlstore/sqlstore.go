// Package sqlstore keeps the catalog's state in SQL: one text of every statement and of every migration for two dialects.
//
// Files named for a noun hold the statements and turn rows into the words of package lance; they know no driver. All that a
// dialect does in its own way (connections, transactions, error codes, locks) stands in the files named for it: sqlite*.go.
// What does not live here: any rule about what may be done to a namespace, a table or a version (package catalog).
package sqlstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// errRunAgain makes Update run the closure again: an id drawn by chance is taken, so the next run draws another.
var errRunAgain = errors.New("id drawn twice")

// errEnded is what a Reader or Tx answers that was kept beyond its closure.
var errEnded = errors.New("the transaction has ended")

// statements runs the package's SQL inside one transaction of one connection. Parameters are written $1, $2, … and bound from
// int64, string, []byte and nil only. The plural form is the only one, so that a dialect with a round trip per statement
// can send all of them at once.
type statements interface {
	// query runs sql once for each list of arguments, in order, and calls scan for every row with the index of its list. It
	// stops at the first error, scan's included.
	query(sql string, args [][]any, scan func(i int, r row) error) error
	// exec runs sql once for each list of arguments, in order, and returns how many rows each changed.
	exec(sql string, args [][]any) ([]int64, error)
	// together runs several statements as query and exec would, one after the other, in one round trip where the dialect has those.
	together(list ...*statement) error
}

// statement is one of several that run together.
type statement struct {
	sql  string
	args [][]any
	// scan is that of query; nil for a statement that changes rows, whose counts come to changed.
	scan    func(i int, r row) error
	changed []int64
}

// row reads the columns of one row by position. It is valid only inside the call of scan.
type row interface {
	Int(column int) int64
	Text(column int) string
	// Bytes returns a slice that the caller must not keep.
	Bytes(column int) []byte
}

// reader implements store.Reader on any dialect.
type reader struct{ statements }

// tx implements store.Tx on any dialect.
type tx struct {
	reader
	now time.Time
	ids *idSource
	// again is set when an id was drawn twice, so that a closure that hides the error is run again all the same.
	again bool
}

// Now implements store.Tx.
func (t *tx) Now() time.Time { return t.now }

// NewID implements store.Tx.
func (t *tx) NewID() lance.ObjectID { return t.ids.next(t.now) }

// runAgain is the error of a method that found its id taken.
func (t *tx) runAgain(kind string, id any) error {
	t.again = true
	return fmt.Errorf("insert %s %v: %w", kind, id, errRunAgain)
}

// ended stands in place of the statements of a transaction that is over.
type ended struct{}

func (ended) query(string, [][]any, func(int, row) error) error { return errEnded }
func (ended) exec(string, [][]any) ([]int64, error)             { return nil, errEnded }
func (ended) together(...*statement) error                      { return errEnded }

// one runs a query for a single list of arguments and reports whether it gave a row.
func one(s statements, sql string, args []any, scan func(row) error) (bool, error) {
	found := false
	err := s.query(sql, [][]any{args}, func(_ int, r row) error {
		found = true
		return scan(r)
	})
	return found, err
}

// exists reports whether a query for a single list of arguments gives a row.
func exists(s statements, sql string, args ...any) (bool, error) {
	return one(s, sql, args, func(row) error { return nil })
}

// change runs a statement for a single list of arguments and returns how many rows it changed.
func change(s statements, sql string, args ...any) (int64, error) {
	n, err := s.exec(sql, [][]any{args})
	if err != nil {
		return 0, err
	}
	return n[0], nil
}

// pathSeparator joins the names of a namespace's path in its column. It is a control character, which no name contains.
const pathSeparator = "\x1f"

// encodePath returns the column's form of a namespace's path. It reports false for a path that no namespace can have.
func encodePath(path []string) (string, bool) {
	for _, name := range path {
		if name == "" || strings.Contains(name, pathSeparator) {
			return "", false
		}
	}
	return strings.Join(path, pathSeparator), true
}

// decodePath is the inverse of encodePath, with room for one more name.
func decodePath(column string) []string {
	if column == "" {
		return nil
	}
	names := make([]string, 0, strings.Count(column, pathSeparator)+2)
	for name := range strings.SplitSeq(column, pathSeparator) {
		names = append(names, name)
	}
	return names
}

// encodeBool is 1 or 0: not every dialect has a type for it that drivers agree on.
func encodeBool(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// encodeTime returns milliseconds since 1970; the zero time is 0, and 0 is the zero time again.
func encodeTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func decodeTime(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// encodeMap returns a map as JSON, "" for an empty one.
func encodeMap(m map[string]string) (string, error) {
	if len(m) == 0 {
		return "", nil
	}
	text, err := json.Marshal(m)
	return string(text), err
}

// decodeMap is the inverse of encodeMap; an empty map comes back as nil.
func decodeMap(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	var m map[string]string
	err := json.Unmarshal([]byte(text), &m)
	return m, err
}

// notFound names what was looked for in an error that wraps store.ErrNotFound.
func notFound(kind string, id any) error {
	return fmt.Errorf("%s %v: %w", kind, id, store.ErrNotFound)
}
