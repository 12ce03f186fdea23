//go:build unix

package faults_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
)

// place is where servers keep their state and their tables.
type place struct {
	data  string
	state string // the address of a database; "" for a file in data
}

// eachState runs a test with the state in SQLite and in PostgreSQL.
func eachState(t *testing.T, test func(t *testing.T, p place)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, place{data: newFolder(t).data})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, place{data: newFolder(t).data, state: pgtest.Start(t, pgtest.Options{}).URL()})
	})
}

// flags say it to a server, beside the data directory.
func (p place) flags() []string {
	if p.state == "" {
		return nil
	}
	return []string{"--state", p.state}
}

// open opens the state in this process. The test closes it, if nobody has before.
func (p place) open(t *testing.T) store.Store {
	t.Helper()
	var s store.Store
	var err error
	if p.state == "" {
		s, err = sqlstore.OpenSQLite(context.Background(), sqlstore.Options{Path: filepath.Join(p.data, "catalog.db")})
	} else {
		s, err = sqlstore.OpenPostgres(context.Background(), sqlstore.PostgresOptions{URL: p.state, MaxConns: 4})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
