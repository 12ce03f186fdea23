package sqlstore

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

const (
	createMigrations = `
CREATE TABLE IF NOT EXISTS schema_migrations (
    number     INTEGER NOT NULL PRIMARY KEY,
    applied_at INTEGER NOT NULL
) STRICT;`

	newestMigration = `SELECT COALESCE(max(number), 0) FROM schema_migrations`

	recordMigration = `INSERT INTO schema_migrations (number, applied_at) VALUES ($1, $2)`
)

// schemaConn is what a dialect gives to migrate the schema.
type schemaConn interface {
	statements
	// script runs a text of several statements of the schema after it was put into the dialect's words.
	script(sql string) error
	// atomically runs fn in one transaction that is durable when it returns nil and leaves nothing otherwise. fn may run more
	// than once.
	atomically(fn func() error) error
}

// migration is one numbered step of the schema. Its text is never edited after a release: a test holds its checksum.
type migration struct {
	number int64
	text   string
}

// migrations returns the steps that this binary knows, in order: files named "0001_what.sql" and so on without a gap.
func migrations() ([]migration, error) {
	files, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	steps := make([]migration, len(files))
	for i, f := range files {
		number, _, _ := strings.Cut(f.Name(), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n != int64(i+1) {
			return nil, fmt.Errorf("migration %s should have number %04d", f.Name(), i+1)
		}
		text, err := migrationFiles.ReadFile("migrations/" + f.Name())
		if err != nil {
			return nil, fmt.Errorf("read migration %s: %w", f.Name(), err)
		}
		steps[i] = migration{number: n, text: string(text)}
	}
	return steps, nil
}

// migrate brings the schema to the newest step, each step in its own transaction. It returns an error that says what to do
// if the schema is newer than this binary; then nothing was changed.
func migrate(c schemaConn, now func() time.Time) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	return migrateTo(c, steps, now)
}

// migrateTo is migrate for a binary that knows just these steps.
func migrateTo(c schemaConn, steps []migration, now func() time.Time) error {
	var at int64
	err := c.atomically(func() (err error) {
		if err := c.script(createMigrations); err != nil {
			return err
		}
		at, err = schemaNumber(c)
		return err
	})
	if err != nil {
		return fmt.Errorf("look up the schema's number: %w", err)
	}
	if err := checkNotNewer(at, steps); err != nil {
		return err
	}
	for _, m := range steps[at:] {
		if err := applyStep(c, m, now); err != nil {
			return fmt.Errorf("apply migration %d: %w", m.number, err)
		}
	}
	return nil
}

// applyStep makes one step unless another process has made it meanwhile. The number is taken first, so that of several processes
// that get this far one makes the step and the others wait for it.
func applyStep(c schemaConn, m migration, now func() time.Time) error {
	return c.atomically(func() error {
		at, err := schemaNumber(c)
		if err != nil || at >= m.number {
			return err
		}
		if _, err := change(c, recordMigration, m.number, encodeTime(now())); err != nil {
			return err
		}
		return c.script(m.text)
	})
}

// checkSchema returns an error unless the schema is the one that this binary expects.
func checkSchema(s statements) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	at, err := schemaNumber(s)
	if err != nil {
		return err
	}
	if at < int64(len(steps)) {
		return fmt.Errorf("the catalog's schema is number %d, this binary needs %d: start it anew to migrate", at, len(steps))
	}
	return checkNotNewer(at, steps)
}

func checkNotNewer(at int64, steps []migration) error {
	if at > int64(len(steps)) {
		return fmt.Errorf("the catalog's schema is number %d, this binary knows up to %d: use the newer binary that wrote it", at, len(steps))
	}
	return nil
}

func schemaNumber(s statements) (int64, error) {
	var at int64
	_, err := one(s, newestMigration, nil, func(r row) error {
		at = r.Int(0)
		return nil
	})
	return at, err
}
