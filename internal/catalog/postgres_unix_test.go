//go:build unix

package catalog_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
)

// openPostgres opens the state that belongs to a name in a database.
func openPostgres(database, name string) (store.Store, error) {
	sum := sha256.Sum256([]byte(name))
	url, err := pgtest.SchemaAt(context.Background(), database, hex.EncodeToString(sum[:12]))
	if err != nil {
		return nil, err
	}
	return sqlstore.OpenPostgres(context.Background(), sqlstore.PostgresOptions{URL: url, MaxConns: 8, RunTwice: true})
}
