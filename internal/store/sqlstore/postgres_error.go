package sqlstore

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lancerest/lancerest/internal/store"
)

// errSerialization makes Update run the closure again: the transaction met another one and lost.
var errSerialization = errors.New("lost against another transaction")

// errLost makes Update run the closure again on another connection, a few times: the connection broke before COMMIT was sent, so
// that nothing was written. It comes with store.ErrUnavailable.
var errLost = errors.New("the connection broke")

// The codes that mean something to this package beyond their class, which is their first two characters.
const (
	serializationFailure       = "40001"
	deadlockDetected           = "40P01"
	statementCompletionUnknown = "40003"
	uniqueViolation            = "23505" // an index's answer to a race where ON CONFLICT DO NOTHING does not help: an UPDATE's
	cachedPlanMustNotChange    = "0A000" // a newer replica has migrated the schema; the driver forgets the plan
	invalidStatementName       = "26000"
	readOnlyTransaction        = "25006" // the server is a standby
	idleInTransaction          = "25P03"
	lockNotAvailable           = "55P03"
	duplicateTable             = "42P07"
	duplicateObject            = "42710"
	queryCanceled              = "57014"
	adminShutdown              = "57P01"
)

// postgresError classifies an error that the server answered with, by its code alone: errSerialization where running again helps,
// store.ErrUnavailable where the database cannot serve now; anything else is a mistake of this package and stays as it is.
func postgresError(err error) error {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	switch answer.Code {
	case serializationFailure, deadlockDetected, uniqueViolation, cachedPlanMustNotChange, invalidStatementName:
		return fmt.Errorf("%w: %w", errSerialization, err)
	case readOnlyTransaction, idleInTransaction, lockNotAvailable:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	switch answer.Code[:2] {
	// Connection; resources; operator intervention, statement timeouts among it; system; internal.
	case "08", "53", "57", "58", "XX":
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}
