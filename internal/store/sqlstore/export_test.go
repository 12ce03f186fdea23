package sqlstore

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/lancerest/lancerest/internal/lance"
)

// Unsynced returns o for a catalog that is fast to make and does not survive the machine's crash.
func Unsynced(o Options) Options {
	o.unsynced = true
	return o
}

// OnVFS returns o for a catalog on a file system that was registered with the driver.
func OnVFS(o Options, vfs string) Options {
	o.vfs = vfs
	return o
}

// IDSource draws ids.
type IDSource struct {
	Next        func(time.Time) lance.ObjectID
	Transaction func(time.Time) lance.TransactionID
}

// GrowingIDs is the source of SQLite.
func GrowingIDs() IDSource {
	s := &idSource{}
	return IDSource{s.next, s.transaction}
}

// SpreadIDs is the source of PostgreSQL.
func SpreadIDs() IDSource {
	s := &idSource{spread: true}
	return IDSource{s.next, s.transaction}
}

// MigrationSums returns the SHA-256 of every migration's text.
func MigrationSums() ([]string, error) {
	steps, err := migrations()
	sums := make([]string, len(steps))
	for i, m := range steps {
		sum := sha256.Sum256([]byte(m.text))
		sums[i] = hex.EncodeToString(sum[:])
	}
	return sums, err
}

// Plans returns what SQLite would do for each statement that the store has prepared so far. No other goroutine may use the store.
func Plans(s *SQLite) (map[string][]string, error) {
	conns := []*sqliteConn{s.writer.conn}
	for range s.total {
		conns = append(conns, <-s.readers)
	}
	defer func() {
		for _, c := range conns[1:] {
			s.readers <- c
		}
	}()
	plans := map[string][]string{}
	for _, c := range conns {
		for sql := range c.prepared {
			plan, err := explain(c.db, sql)
			if err != nil {
				return nil, err
			}
			plans[sql] = plan
		}
	}
	return plans, nil
}

func explain(db *sqlite3.Conn, sql string) ([]string, error) {
	stmt, _, err := db.Prepare("EXPLAIN QUERY PLAN " + sql)
	if err != nil || stmt == nil {
		return nil, err
	}
	defer func() { _ = stmt.Close() }()
	var plan []string
	for stmt.Step() {
		plan = append(plan, stmt.ColumnText(3))
	}
	slices.Sort(plan)
	return plan, stmt.Err()
}
