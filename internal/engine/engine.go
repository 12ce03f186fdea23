// Package engine is the contract of the data operations: those that make or interpret data files, indices and new manifests. The
// catalog works whole without an engine; None then answers for it.
package engine

import (
	"context"

	"github.com/lancerest/lancerest/api"
)

// Engine performs data operations.
type Engine interface {
	// Do performs the operation of the given name (api.Operation.Name). request is a pointer to its request struct, the answer one
	// to its response struct; of a QueryTableResponse the caller closes Data. ctx carries who asks (package auth) and ends when nobody
	// waits for the answer any more.
	//
	// Errors are *api.Error. Besides those that the specification lists for the operation:
	//   - CodeUnsupported: the engine does not offer the operation, or not with these parameters; nothing was done.
	//   - CodeInvalidInput: a condition, a column, a vector or a stream of rows is wrong or broken; nothing was done.
	//   - CodeServiceUnavailable: there is no worker, or it ended before it can have changed anything; nothing was done.
	//   - CodeInternal: the operation was lost under way; where it changes something, whether it did is not known, unless the error is a
	//     *DoneError: then it did.
	Do(ctx context.Context, operation string, request any) (any, error)
}

// Worker is an engine that does parts of an operation by themselves, for what puts jobs together from them.
type Worker interface {
	Engine
	// Perform does what Do does, but returns the worker's own answer; extra is what the worker is told besides the request. ctx may carry an
	// auth.Delegate instead of a caller's credentials.
	Perform(ctx context.Context, operation string, request any, extra map[string]any) (map[string]any, error)
	// CreateView performs CreateMaterializedView, without data. declared is called once its name is taken, before its first version is written;
	// where it fails the name is given back.
	CreateView(ctx context.Context, request *api.CreateMaterializedViewRequest, declared func() error) (*api.CreateMaterializedViewResponse, error)
}

// None is the engine of a server that has none.
type None struct {
	// Because says why there is none, in words that follow "this server has none" ("": because none is wanted).
	Because string
}

// Do always answers CodeUnsupported: the specification's 406, never a 404, which some clients take for a missing table (client
// contract, trap 30).
func (n None) Do(_ context.Context, operation string, _ any) (any, error) {
	return nil, api.Errorf(api.CodeUnsupported,
		"%s needs the engine, which reads and writes table data, and this server has none%s: use a Lance library that is given this catalog, such as pylance with namespace_client and table_id, or lancedb.connect_namespace", operation, n.Because)
}
