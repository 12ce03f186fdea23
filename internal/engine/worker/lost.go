package worker

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/engine"
)

// cutError says that a worker's answer broke off.
type cutError struct{ because error }

func (e *cutError) Error() string { return "the answer broke off: " + e.because.Error() }

// followed reports whether all that an operation does is one commit of a version, so that it is done once that is.
func followed(operation string) bool {
	switch operation {
	case "CreateTable", "InsertIntoTable", "MergeInsertIntoTable", "UpdateTable", "DeleteFromTable", "RestoreTable", "AlterTableAddColumns",
		"AlterTableAlterColumns", "AlterTableDropColumns", "UpdateTableSchemaMetadata", "UpdateFieldMetadata":
		return true
	}
	return false
}

// loseTime bounds how long a commit is waited for whose worker is gone.
const loseTime = 30 * time.Second

// lose says what became of an operation whose worker gives no answer any more, and keeps it from committing later. Clients send an error
// again by themselves, so that one for what was done would do it twice.
func (e *Engine) lose(ctx context.Context, a asked, rows *rowStream, err error) (any, error) {
	plain := lost(ctx, a.op.Name, rows, err)
	if a.id == "" {
		return nil, plain
	}
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), loseTime)
	defer cancel()
	version, known := e.opts.Commits.Lose(waiting, a.id)
	switch {
	case !known || api.CodeOf(plain) != api.CodeInternal:
		return nil, plain
	case version == 0:
		return nil, api.Errorf(api.CodeServiceUnavailable, "the worker ended in the middle of %s; nothing was changed; try again", a.op.Name).Because(err)
	}
	if response, ok := done(a.op, version); ok {
		return response, nil
	}
	return nil, &engine.DoneError{Shown: api.Errorf(api.CodeInternal, "%s was done, as version %d of the table; the worker ended before it could tell the rest of its result: do not send it again", a.op.Name, version).Because(err)}
}

// done returns the response to an operation of which nothing is known but its version; ok is false where it must tell more.
func done(op api.Operation, version int64) (response any, ok bool) {
	switch op.Name {
	case "CreateTable":
		return &api.CreateTableResponse{Version: &version}, true
	case "InsertIntoTable":
		return &api.InsertIntoTableResponse{Version: &version}, true
	case "MergeInsertIntoTable":
		return &api.MergeInsertIntoTableResponse{Version: &version}, true
	case "DeleteFromTable":
		return &api.DeleteFromTableResponse{Version: &version}, true
	case "RestoreTable":
		return reflect.New(reflect.TypeOf(op.Response)).Interface(), true
	case "AlterTableAddColumns":
		return &api.AlterTableAddColumnsResponse{Version: version}, true
	case "AlterTableAlterColumns":
		return &api.AlterTableAlterColumnsResponse{Version: version}, true
	case "AlterTableDropColumns":
		return &api.AlterTableDropColumnsResponse{Version: version}, true
	}
	return nil, false
}

// lost says what it means that a worker gave no answer.
func lost(ctx context.Context, operation string, rows *rowStream, err error) error {
	var told *api.Error
	switch {
	case errors.As(err, &told):
		return told // by prepare
	case errors.Is(err, errNoWorker):
		return api.Errorf(api.CodeServiceUnavailable, "the engine has no worker running now; nothing was done; try again").Because(err)
	case rows != nil && rows.broken.Load():
		return api.Errorf(api.CodeInvalidInput, "the stream of rows broke off before its end; nothing was changed").Because(err)
	case !changes(operation) && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return api.Errorf(api.CodeServiceUnavailable, "%s took too long and was stopped: ask for less, or make an index that it can use", operation).Because(err)
	case ctx.Err() != nil && !changes(operation):
		return ctx.Err()
	case !changes(operation) || rows != nil && !rows.ended.Load():
		return api.Errorf(api.CodeServiceUnavailable, "the worker ended in the middle of %s; nothing was changed; try again", operation).Because(err)
	}
	return api.Errorf(api.CodeInternal, "the worker ended in the middle of %s, and whether it changed the table is not known: look at its latest version before trying again", operation).Because(err)
}
