package app

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// dumpTimeout is how long a statement of a dump may take, and how long the database waits for the other end of a pipe.
const dumpTimeout = time.Hour

// Export writes the whole state of a configuration to w, also beside running servers, and returns the number of rows. The dump is only good
// if there is no error. It holds the catalog's secret and whatever callers have stored in metadata.
func Export(ctx context.Context, config Config, w io.Writer) (int64, error) {
	setDefaults(&config)
	config.StatePool.StatementTimeout = dumpTimeout
	if err := checkState(config); err != nil {
		return 0, err
	}
	state, _, err := openStateBeside(ctx, config)
	if err != nil {
		return 0, err
	}
	rows, err := sqlstore.Export(ctx, state, w)
	return rows, errors.Join(err, state.Close())
}

// ImportState fills the empty state of a configuration from a dump, making the state if it is missing, and returns the number of rows.
// Where it returns an error, that of a lost answer to the commit aside, the state is as empty as before.
func ImportState(ctx context.Context, config Config, r io.Reader) (int64, error) {
	setDefaults(&config)
	config.StatePool.StatementTimeout = dumpTimeout
	if err := checkState(config); err != nil {
		return 0, err
	}
	state, err := openState(ctx, config)
	if err != nil {
		return 0, err
	}
	rows, err := sqlstore.Import(ctx, state, r)
	return rows, errors.Join(err, state.Close())
}
