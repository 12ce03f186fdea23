package catalog_test

import (
	"errors"

	"github.com/lancerest/lancerest/internal/store"
)

// openPostgres is for systems where the tests can start a PostgreSQL server.
func openPostgres(string, string) (store.Store, error) { return nil, errors.ErrUnsupported }
