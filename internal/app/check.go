package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/objstore/local"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// besideAge is how long a transaction may be pending under a running server before it counts as left behind.
const besideAge = 3 * time.Minute

// Check compares the catalog of a configuration with its storage, also beside a running server. Where none runs, every pending
// transaction is one that a server left behind.
func Check(ctx context.Context, config Config, opts catalog.CheckOptions) (catalog.CheckSummary, error) {
	setDefaults(&config)
	path := filepath.Join(config.Data, "catalog.db")
	if _, err := os.Stat(path); err != nil {
		return catalog.CheckSummary{}, fmt.Errorf("there is no catalog in %s: %w", config.Data, err)
	}
	state, err := sqlstore.OpenSQLite(ctx, sqlstore.Options{Path: path, Readers: 2})
	if errors.Is(err, sqlstore.ErrLocked) {
		opts.PendingAge = max(opts.PendingAge, besideAge)
		state, err = sqlstore.OpenSQLite(ctx, sqlstore.Options{Path: path, Readers: 2, Beside: true})
	}
	if err != nil {
		return catalog.CheckSummary{}, err
	}
	a := &App{config: config, store: state}
	defer a.Close()
	if err := a.openRoot(); err != nil {
		return catalog.CheckSummary{}, err
	}
	objects, err := local.New(local.Options{})
	if err != nil {
		return catalog.CheckSummary{}, err
	}
	a.catalog, err = catalog.New(ctx, catalog.Options{Store: state, Roots: a.rootsOn(objects)})
	if err != nil {
		return catalog.CheckSummary{}, err
	}
	return a.catalog.Check(ctx, opts)
}
