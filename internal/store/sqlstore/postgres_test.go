//go:build unix

package sqlstore_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
	"github.com/lancerest/lancerest/internal/store/storetest"
)

func TestPostgres(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{})
	storetest.Run(t, func(t *testing.T, o storetest.Options) store.Store {
		t.Helper()
		po := sqlstore.PostgresOptions{URL: schema(t, cluster, o.Dir), RunTwice: o.RunTwice, QueueLength: o.QueueLength, Now: o.Now, Writers: o.Writers}
		return openPostgres(t, po)
	})
}

// schema returns the address of a schema that belongs to a name, which may be long.
func schema(t testing.TB, cluster *pgtest.Cluster, name string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(name))
	return cluster.Schema(t, hex.EncodeToString(sum[:12]))
}

// openPostgres opens a catalog that the test closes.
func openPostgres(t testing.TB, o sqlstore.PostgresOptions) *sqlstore.Postgres {
	t.Helper()
	s, err := sqlstore.OpenPostgres(t.Context(), o)
	if err != nil {
		t.Fatalf("OpenPostgres: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}
