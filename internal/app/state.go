package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// state is a store that counts what it does.
type state interface {
	store.Store
	Stats() sqlstore.Stats
}

// StatePool says how a server uses the database of its state.
type StatePool struct {
	// MaxConns bounds the server's connections (default 24).
	MaxConns int
	// StatementTimeout bounds a statement, LockTimeout its wait for another transaction (default 30 s and 5 s).
	StatementTimeout, LockTimeout time.Duration
	// SlowStatement is how long a statement takes at least to be logged (default 1 s).
	SlowStatement time.Duration
}

func (p *StatePool) setDefaults() {
	if p.MaxConns == 0 {
		p.MaxConns = 24
	}
	if p.StatementTimeout == 0 {
		p.StatementTimeout = 30 * time.Second
	}
	if p.LockTimeout == 0 {
		p.LockTimeout = 5 * time.Second
	}
	if p.SlowStatement == 0 {
		p.SlowStatement = time.Second
	}
}

// checkState refuses a state of which this package knows nothing.
func checkState(c Config) error {
	if c.State == "" || onPostgres(c) {
		return nil
	}
	// It is not repeated: it may hold a password.
	return errors.New("state: it must be a URL that begins with postgres:// (leave it out for a file in the data directory)")
}

// onPostgres reports whether the state is shared by any number of servers.
func onPostgres(c Config) bool {
	return strings.HasPrefix(c.State, "postgres://") || strings.HasPrefix(c.State, "postgresql://")
}

// openState opens the state to serve from it.
func openState(ctx context.Context, c Config) (state, error) {
	if !onPostgres(c) {
		return openedSQLite(sqlstore.OpenSQLite(ctx, sqlstore.Options{Path: stateFile(c)}))
	}
	return openedPostgres(sqlstore.OpenPostgres(ctx, postgresOptions(c)))
}

// reserved is where the state of a configuration lies on this machine, if it does: no table may.
func reserved(c Config) ([]lance.Location, error) {
	if onPostgres(c) {
		return nil, nil
	}
	dir, err := filepath.Abs(c.Data)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	at, err := lance.ParseLocation(filepath.ToSlash(dir))
	return []lance.Location{at}, err
}

// openStateBeside opens the state for a tool and reports whether servers may be at work on it.
func openStateBeside(ctx context.Context, c Config) (s state, beside bool, err error) {
	if onPostgres(c) {
		o := postgresOptions(c)
		o.Beside = true
		s, err = openedPostgres(sqlstore.OpenPostgres(ctx, o))
		return s, true, err
	}
	o := sqlstore.Options{Path: stateFile(c), Readers: 2}
	if _, err := os.Stat(o.Path); err != nil {
		return nil, false, fmt.Errorf("there is no catalog in %s: %w", c.Data, err)
	}
	// Never with the lock: a server that starts meanwhile must not be kept out.
	o.Beside = true
	if beside, err = sqlstore.InUse(o.Path); err != nil {
		return nil, false, err
	}
	s, err = openedSQLite(sqlstore.OpenSQLite(ctx, o))
	return s, beside, err
}

// openedSQLite keeps a nil pointer from becoming a state that is not nil.
func openedSQLite(s *sqlstore.SQLite, err error) (state, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openedPostgres is openedSQLite for the other one.
func openedPostgres(s *sqlstore.Postgres, err error) (state, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func stateFile(c Config) string { return filepath.Join(c.Data, "catalog.db") }

func postgresOptions(c Config) sqlstore.PostgresOptions {
	return sqlstore.PostgresOptions{
		URL: c.State, MaxConns: c.StatePool.MaxConns, StatementTimeout: c.StatePool.StatementTimeout, LockTimeout: c.StatePool.LockTimeout,
		SlowStatement: c.StatePool.SlowStatement,
		OnSlow: func(ctx context.Context, s sqlstore.SlowStatement) {
			c.Logger.LogAttrs(ctx, slog.LevelWarn, "slow statement", slog.String("operation", store.OperationFrom(ctx)),
				slog.Duration("took", s.Took), slog.Int("times", s.Times), slog.String("sql", strings.Join(strings.Fields(s.SQL), " ")))
		},
	}
}
