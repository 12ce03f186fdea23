package sqlstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Old is what a binary that knew the first Steps migrations left.
type Old struct {
	Steps int
	Rows  []OldRow
}

// OldRow is a row of a table as it was then, with values of the types that the package binds.
type OldRow struct {
	Table   string
	Columns []string
	Values  []any
}

// MigrationNames returns the names of the migrations' files without their endings, in order.
func MigrationNames() ([]string, error) {
	files, err := migrationFiles.ReadDir("migrations")
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(f.Name(), ".sql")
	}
	return names, err
}

// LeaveSQLite does what the old binary did with the file at path: migrate, and write its rows.
func LeaveSQLite(ctx context.Context, path string, old Old) error {
	o := Options{Path: path, unsynced: true}
	conn, err := openSQLiteConn(ctx, o, writerPragmas)
	if err != nil {
		return err
	}
	return errors.Join(leave(conn, old), conn.close())
}

// LeavePostgres is LeaveSQLite for a PostgreSQL database.
func LeavePostgres(ctx context.Context, url string, old Old) error {
	o := PostgresOptions{URL: url}
	o.setDefaults()
	p, err := newPostgres(ctx, o)
	if err != nil {
		return err
	}
	s, err := p.begin(ctx, beginUpdate)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	err = leave(&pgSchemaConn{s}, old)
	s.end()
	return errors.Join(err, p.Close())
}

func leave(c schemaConn, old Old) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	if err := migrateTo(c, steps[:old.Steps], time.Now); err != nil {
		return err
	}
	return c.atomically(func() error {
		if _, err := c.exec(`DELETE FROM objects WHERE id = 0`, [][]any{nil}); err != nil { // the rows hold the root
			return err
		}
		for _, row := range old.Rows {
			list := make([]string, len(row.Columns))
			for i := range list {
				list[i] = "$" + strconv.Itoa(i+1)
			}
			sql := "INSERT INTO " + row.Table + " (" + strings.Join(row.Columns, ", ") + ") VALUES (" + strings.Join(list, ", ") + ")"
			if _, err := c.exec(sql, [][]any{row.Values}); err != nil {
				return err
			}
		}
		return nil
	})
}
