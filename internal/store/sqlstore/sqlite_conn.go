package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/lancerest/lancerest/internal/store"
)

// The settings of connections. A reader's cache is small, because there are several: the system's own cache serves the rest. The
// writer moves the log into the database itself, after it has answered (see sqliteWriter.checkpoint).
const (
	writerPragmas = `
PRAGMA busy_timeout = 5000;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA cache_size = -32768;
PRAGMA temp_store = MEMORY;`

	readerPragmas = `
PRAGMA busy_timeout = 5000;
PRAGMA query_only = ON;
PRAGMA cache_size = -4096;
PRAGMA temp_store = MEMORY;`
)

// sqliteConn is one connection with its prepared statements. It is used by one goroutine at a time.
type sqliteConn struct {
	db       *sqlite3.Conn
	prepared map[string]*sqliteStmt
	// failed is the first error of the driver since the transaction began. A closure that hides it does not commit.
	failed error
}

// sqliteStmt is a prepared statement. positions[i] is where SQLite put parameter $(i+1): it numbers them by appearance.
type sqliteStmt struct {
	*sqlite3.Stmt
	positions []int
}

func openSQLiteConn(ctx context.Context, o Options, pragmas string) (*sqliteConn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, err
	}
	// As a URI, a path may hold any character and begin with any word.
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	if runtime.GOOS != "windows" {
		// The log gets the owner and the mode of the catalog. SQLite knows no "+" for a space.
		uri.RawQuery = "modeof=" + strings.ReplaceAll(url.QueryEscape(path), "+", "%20")
	}
	if o.vfs != "" {
		uri.RawQuery += "&vfs=" + o.vfs
	}
	db, err := sqlite3.OpenFlags(uri.String(), sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE|sqlite3.OPEN_URI)
	if err != nil {
		return nil, fmt.Errorf("open connection: %w", err)
	}
	c := &sqliteConn{db: db, prepared: map[string]*sqliteStmt{}}
	if err := db.Exec(pragmas); err != nil {
		return nil, errors.Join(fmt.Errorf("set up connection: %w", err), c.close())
	}
	return c, nil
}

func (c *sqliteConn) close() error {
	var errs error
	for _, s := range c.prepared {
		errs = errors.Join(errs, s.Close())
	}
	return errors.Join(errs, c.db.Close())
}

// query implements statements.
func (c *sqliteConn) query(sql string, args [][]any, scan func(i int, r row) error) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	for i := range args {
		if err := c.each(s, args[i], func() error { return scan(i, sqliteRow{s.Stmt}) }); err != nil {
			return err
		}
	}
	return nil
}

// each runs s once and calls scan for each row.
func (c *sqliteConn) each(s *sqliteStmt, args []any, scan func() error) error {
	if err := s.bind(args); err != nil {
		return c.fail(s.SQL(), err)
	}
	for s.Step() {
		if err := scan(); err != nil {
			_ = s.Reset() // repeats the error of the last step, and there was none
			return err
		}
	}
	err := s.Err()
	if err := errors.Join(err, s.Reset()); err != nil {
		return c.fail(s.SQL(), err)
	}
	return nil
}

// exec implements statements.
func (c *sqliteConn) exec(sql string, args [][]any) ([]int64, error) {
	s, err := c.prepare(sql)
	if err != nil {
		return nil, err
	}
	changed := make([]int64, len(args))
	for i := range args {
		if err := s.bind(args[i]); err != nil {
			return nil, c.fail(sql, err)
		}
		if err := s.Exec(); err != nil {
			return nil, c.fail(sql, err)
		}
		changed[i] = c.db.Changes()
	}
	return changed, nil
}

// together implements statements.
func (c *sqliteConn) together(list ...*statement) (err error) {
	for _, s := range list {
		if s.scan != nil {
			err = c.query(s.sql, s.args, s.scan)
		} else {
			s.changed, err = c.exec(s.sql, s.args)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// script implements schemaConn. The package's texts are in SQLite's own words.
func (c *sqliteConn) script(sql string) error { return c.db.Exec(sql) }

// atomically implements schemaConn.
func (c *sqliteConn) atomically(fn func() error) error {
	c.failed = nil
	if err := c.db.Exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return errors.Join(err, c.rollback())
	}
	if err := c.db.Exec(`COMMIT`); err != nil {
		return errors.Join(err, c.rollback())
	}
	return nil
}

// rollback ends the transaction if the driver has not ended it already.
func (c *sqliteConn) rollback() error {
	if c.db.GetAutocommit() {
		return nil
	}
	return c.db.Exec(`ROLLBACK`)
}

// view runs fn on one snapshot.
func (c *sqliteConn) view(ctx context.Context, fn func(store.Reader) error) error {
	r := &reader{c}
	defer func() { r.statements = ended{} }()
	return c.read(ctx, func() error { return fn(r) })
}

// read runs fn in a transaction that only reads and is over when it returns, panics included. ctx interrupts its statements.
func (c *sqliteConn) read(ctx context.Context, fn func() error) (err error) {
	c.failed = nil
	if err := c.run(`BEGIN`); err != nil {
		return err
	}
	defer func() {
		c.db.SetInterrupt(context.Background())
		if end := c.run(`ROLLBACK`); err == nil {
			err = end
		}
	}()
	c.db.SetInterrupt(ctx)
	if err := fn(); err != nil {
		return err
	}
	return c.failed
}

// run runs a statement without parameters and rows.
func (c *sqliteConn) run(sql string) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	if err := s.Exec(); err != nil {
		return c.fail(sql, err)
	}
	return nil
}

// prepare returns the statement for sql, compiled once a connection.
func (c *sqliteConn) prepare(sql string) (*sqliteStmt, error) {
	if s, ok := c.prepared[sql]; ok {
		return s, nil
	}
	stmt, _, err := c.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, c.fail(sql, err)
	}
	s := &sqliteStmt{Stmt: stmt}
	for i := range stmt.BindCount() {
		s.positions = append(s.positions, stmt.BindIndex("$"+strconv.Itoa(i+1)))
	}
	c.prepared[sql] = s
	return s, nil
}

// bind sets the parameters of the next run.
func (s *sqliteStmt) bind(args []any) error {
	if len(args) != len(s.positions) || slices.Contains(s.positions, 0) {
		return fmt.Errorf("%d arguments for %d parameters", len(args), len(s.positions))
	}
	for i, arg := range args {
		var err error
		switch v := arg.(type) {
		case int64:
			err = s.BindInt64(s.positions[i], v)
		case string:
			err = s.BindText(s.positions[i], v)
		case []byte:
			err = s.BindBlob(s.positions[i], v)
		case nil:
			err = s.BindNull(s.positions[i])
		default:
			err = fmt.Errorf("argument %d has type %T", i+1, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fail turns an error of the driver into one of the contract, and keeps the first of a transaction.
func (c *sqliteConn) fail(sql string, err error) error {
	err = sqliteError(err, c.db.GetInterrupt())
	if c.failed == nil {
		c.failed = fmt.Errorf("run %q: %w", sql, err)
	}
	return err
}

// sqliteError classifies an error of the driver by its code: an interrupted statement is ctx's error; what the disk, the
// memory or another process causes is store.ErrUnavailable; anything else is a mistake of this package and stays as it is.
func sqliteError(err error, ctx context.Context) error {
	var code sqlite3.ErrorCode
	if !errors.As(err, &code) {
		return err
	}
	switch code {
	case sqlite3.INTERRUPT:
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case sqlite3.BUSY, sqlite3.LOCKED, sqlite3.NOMEM, sqlite3.READONLY, sqlite3.IOERR, sqlite3.CORRUPT, sqlite3.FULL,
		sqlite3.CANTOPEN, sqlite3.PROTOCOL, sqlite3.NOTADB, sqlite3.PERM, sqlite3.AUTH, sqlite3.NOLFS:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	default:
		return err
	}
}

// sqliteRow reads the columns of a statement's current row.
type sqliteRow struct{ stmt *sqlite3.Stmt }

func (r sqliteRow) Int(column int) int64    { return r.stmt.ColumnInt64(column) }
func (r sqliteRow) Text(column int) string  { return r.stmt.ColumnText(column) }
func (r sqliteRow) Bytes(column int) []byte { return r.stmt.ColumnRawBlob(column) }
