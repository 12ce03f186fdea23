package sqlstore

import (
	"context"
	"fmt"
	"io"

	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore/dumpfile"
)

// Export writes the whole state of a store of this package to w, from one snapshot and in bounded memory, and returns the number of rows.
// What was written counts for nothing if it returns an error. The dump holds the catalog's secret and all that callers have stored.
func Export(ctx context.Context, s store.Store, w io.Writer) (int64, error) {
	var rows int64
	err := s.View(ctx, func(r store.Reader) error {
		own, ok := r.(*reader)
		if !ok {
			return fmt.Errorf("a reader of type %T is not of this package", r)
		}
		var err error
		rows, err = dumpfile.Write(ctx, dumped{own}, w)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("export the state: %w", err)
	}
	return rows, nil
}

// Import fills an empty store of this package with a dump in one transaction and returns the number of rows. Where it returns an error
// nothing stays, except for store.ErrUnknown: then either all of it is there or nothing. The error wraps dumpfile.ErrRefused if the dump is at
// fault, dumpfile.ErrNotEmpty if the catalog holds anything already.
func Import(ctx context.Context, s store.Store, r io.Reader) (int64, error) {
	var rows int64
	begun := false
	err := s.Update(ctx, func(t store.Tx) error {
		own, ok := t.(*tx)
		if !ok {
			return fmt.Errorf("a transaction of type %T is not of this package", t)
		}
		if begun { // what was read from r is gone
			return fmt.Errorf("another process has used the database meanwhile; stop it and import again: %w", store.ErrContention)
		}
		begun = true
		var err error
		rows, err = dumpfile.Read(ctx, dumped{own}, r)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("import a state: %w", err)
	}
	return rows, nil
}

// dumped implements dumpfile.Database on the statements of one transaction.
type dumped struct{ statements }

// Schema implements dumpfile.Database.
func (d dumped) Schema() (int64, error) { return schemaNumber(d.statements) }

// Query implements dumpfile.Database.
func (d dumped) Query(sql string, args []any, scan func(dumpfile.Row) error) error {
	return d.query(sql, [][]any{args}, func(_ int, r row) error { return scan(r) })
}

// Exec implements dumpfile.Database.
func (d dumped) Exec(sql string, args [][]any) error {
	_, err := d.exec(sql, args)
	return err
}
