package place

import (
	"context"
	"errors"
	"fmt"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/objstore"
)

// StorageError translates a failure of the storage that tables live in, what being said of what was attempted: code 13 for a name that it
// cannot have, 15 where it refuses, else 17. An outage is never "not found" (case C4). That a context ended has no code: it is the caller's doing.
func StorageError(what string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", what, err) // the caller's doing, not the storage's
	}
	if errors.Is(err, objstore.ErrInvalidKey) {
		return api.Errorf(api.CodeInvalidInput, "%s: the storage cannot have an object of that name", what).Because(err)
	}
	if errors.Is(err, objstore.ErrDenied) {
		return api.Errorf(api.CodePermissionDenied, "%s: the storage refuses the catalog access", what).Because(err)
	}
	return api.Errorf(api.CodeServiceUnavailable, "%s: the storage did not answer as it should; try again", what).Because(err)
}
