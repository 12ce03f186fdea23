package app

import (
	"context"
	"fmt"
	"time"

	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/check"
)

// besideAge is how long a transaction may be pending under a running server before it counts as left behind.
const besideAge = 3 * time.Minute

// Check compares the catalog of a configuration with its storage, also beside a running server. Where none runs, every pending
// transaction is one that a server left behind; of a shared state nobody knows whether one runs.
func Check(ctx context.Context, config Config, opts check.Options) (check.Summary, error) {
	setDefaults(&config)
	if err := checkState(config); err != nil {
		return check.Summary{}, err
	}
	settings, err := settle(config)
	if err != nil {
		return check.Summary{}, err
	}
	state, beside, err := openStateBeside(ctx, config)
	if err != nil {
		return check.Summary{}, err
	}
	if beside {
		opts.PendingAge, opts.Beside = max(opts.PendingAge, besideAge), true
	}
	a := &App{config: config, settings: settings, store: state}
	defer a.Close()
	if a.roots, err = openRoots(ctx, config, settings); err != nil {
		return check.Summary{}, err
	}
	for _, r := range a.roots {
		if r.Unjudged != "" && beside && opts.Repair {
			return check.Summary{}, fmt.Errorf("a server runs, and the storage at %s can be used by one process at a time, as it does not know %s: stop the server before --repair", r.Location, r.Unjudged)
		}
	}
	own, err := reserved(config)
	if err != nil {
		return check.Summary{}, err
	}
	a.catalog, err = catalog.New(ctx, catalog.Options{Store: state, Roots: a.roots, Reserved: own})
	if err != nil {
		return check.Summary{}, err
	}
	if opts.Repair && !beside {
		if _, err := a.catalog.RestoreUnsynced(ctx); err != nil {
			return check.Summary{}, err
		}
	}
	return a.catalog.Check(ctx, opts)
}
