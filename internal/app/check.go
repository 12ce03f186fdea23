package app

import (
	"context"
	"fmt"
	"time"

	"github.com/lancerest/lancerest/internal/catalog"
)

// besideAge is how long a transaction may be pending under a running server before it counts as left behind.
const besideAge = 3 * time.Minute

// Check compares the catalog of a configuration with its storage, also beside a running server. Where none runs, every pending
// transaction is one that a server left behind; of a shared state nobody knows whether one runs.
func Check(ctx context.Context, config Config, opts catalog.CheckOptions) (catalog.CheckSummary, error) {
	setDefaults(&config)
	if err := checkState(config); err != nil {
		return catalog.CheckSummary{}, err
	}
	settings, err := settle(config)
	if err != nil {
		return catalog.CheckSummary{}, err
	}
	state, beside, err := openStateBeside(ctx, config)
	if err != nil {
		return catalog.CheckSummary{}, err
	}
	if beside {
		opts.PendingAge, opts.Beside = max(opts.PendingAge, besideAge), true
	}
	a := &App{config: config, settings: settings, store: state}
	defer a.Close()
	if a.roots, err = openRoots(ctx, config, settings); err != nil {
		return catalog.CheckSummary{}, err
	}
	for _, r := range a.roots {
		if r.Unjudged != "" && beside && opts.Repair {
			return catalog.CheckSummary{}, fmt.Errorf("a server runs, and the storage at %s can be used by one process at a time, as it does not know %s: stop the server before --repair", r.Location, r.Unjudged)
		}
	}
	own, err := reserved(config)
	if err != nil {
		return catalog.CheckSummary{}, err
	}
	a.catalog, err = catalog.New(ctx, catalog.Options{Store: state, Roots: a.roots, Reserved: own})
	if err != nil {
		return catalog.CheckSummary{}, err
	}
	if opts.Repair && !beside {
		if _, err := a.catalog.RestoreUnsynced(ctx); err != nil {
			return catalog.CheckSummary{}, err
		}
	}
	return a.catalog.Check(ctx, opts)
}
