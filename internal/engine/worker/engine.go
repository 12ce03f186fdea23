// Package worker is the engine that has data operations done by the official Lance library, in worker processes of Python (workers/lance).
//
// A worker is a client of the catalog: it opens tables and commits versions through the operations that everybody uses, as the caller
// for whom it works. What this package adds is the processes (start them, look after them, replace them), the choice of one for each request,
// and the errors where one ends. It asks the catalog first which version of which directory is meant, so that an answer is never older than
// the last commit that was acknowledged.
//
// What does not live here: what operations do with data (workers/lance), and names, versions and permissions (package catalog).
package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/engine"
)

// Catalog is what the engine asks of the catalog itself; *catalog.Catalog is one.
type Catalog interface {
	// DescribeTable says where a table is and which version is meant.
	DescribeTable(ctx context.Context, req *api.DescribeTableRequest) (*api.DescribeTableResponse, error)
	// DeclareTable takes a name for a table that is to be created.
	DeclareTable(ctx context.Context, req *api.DeclareTableRequest) (*api.DeclareTableResponse, error)
	// EngineOptions says what a worker needs to reach a location in storage, nil for what clients are given.
	EngineOptions(ctx context.Context, location string) (map[string]string, error)
	// DropDeclared gives the name back if the table at that location still has no version.
	DropDeclared(ctx context.Context, id []string, location string) error
}

// Options say how an engine works. Catalog is required, and either Prepare or Addresses.
type Options struct {
	Catalog Catalog
	// URL is where workers reach the catalog, and Token the secret by which the catalog knows their requests as the engine's own: it
	// travels in the header TokenHeader.
	URL, Token string
	// Prepare returns how a worker is started. It is called when a request first needs one, again after a failure, and not after a success. Where it
	// takes long it tells what it does, in sentences: requests are refused with the last one until it returns. An error that is an *api.Error keeps
	// its code in what requests are told. A worker is given --listen and the path of a socket in addition.
	Prepare func(ctx context.Context, tell func(sentence string)) (Command, error)
	// Again is the first pause after a failure of Prepare (default 5 s). Each further pause is twice as long, up to 5 minutes.
	Again time.Duration
	// Addresses are workers that somebody else runs, each "unix:PATH" or "HOST:PORT"; no processes are started then. Secret is what
	// they want to be shown.
	Addresses []string
	Secret    string
	// Workers is how many processes there are (default: one for each processor), and Requests how many requests each works on at a
	// time (default 16).
	Workers, Requests int
	// Memory is the bytes from which a process is replaced (default 4 GiB).
	Memory int64
	// Grace is how long a request may go on in a worker whose caller has hung up, before the process is replaced (default 10 s).
	Grace time.Duration
	// Patience is how long a request waits for its turn, or for a worker to start (default 1 minute).
	Patience time.Duration
	// Commits is told by the server at URL what workers commit (default: nobody tells; whether a change was made whose worker is lost is not
	// known then). It must not be set where URL may be another server's.
	Commits *engine.Commits
	// Logger receives what operators need to know (default: nothing).
	Logger *slog.Logger
}

// TokenHeader carries Options.Token. The others are believed only beside it: PrincipalHeader names, in the form of a URL's query, for whom a
// job works, and JobHeader is the job's id.
const (
	TokenHeader     = "X-Lancerest-Engine-Token"
	PrincipalHeader = "X-Lancerest-Principal"
	JobHeader       = "X-Lancerest-Job"
	// OperationHeader is the id by which Options.Commits knows the operation that a commit belongs to.
	OperationHeader = "X-Lancerest-Operation"
)

// Engine is an engine.Engine. Create it with New, then Start it, and Close it.
type Engine struct {
	opts    Options
	answers map[string]api.Operation
	turns   chan struct{}
	pool    *pool
	need    func()        // says that a request needs a worker
	needed  chan struct{} // closed then
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// New returns an engine that has no workers yet.
func New(opts Options) *Engine {
	opts.Workers = cmp.Or(opts.Workers, runtime.NumCPU())
	opts.Requests = cmp.Or(opts.Requests, 16)
	opts.Memory = cmp.Or(opts.Memory, 4<<30)
	opts.Grace = cmp.Or(opts.Grace, 10*time.Second)
	opts.Patience = cmp.Or(opts.Patience, time.Minute)
	opts.Again = cmp.Or(opts.Again, 5*time.Second)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if len(opts.Addresses) > 0 {
		opts.Workers = len(opts.Addresses)
	}
	e := &Engine{opts: opts, answers: map[string]api.Operation{}, turns: make(chan struct{}, opts.Workers*opts.Requests), pool: newPool(), needed: make(chan struct{})}
	e.need = sync.OnceFunc(func() { close(e.needed) })
	for _, op := range api.Operations() {
		if offered(op.Name) {
			e.answers[op.Name] = op
		}
	}
	return e
}

// Start lets requests have workers: the first one that needs a worker has the processes started, which are started anew for as long as the engine is
// not closed.
func (e *Engine) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	for _, address := range e.opts.Addresses {
		e.pool.add(newRemote(address, e.opts.Secret))
	}
	if len(e.opts.Addresses) > 0 {
		return
	}
	e.running.Go(func() { e.run(ctx) })
}

// run has workers running from the first request that needs one until ctx ends.
func (e *Engine) run(ctx context.Context) {
	select {
	case <-e.needed:
	case <-ctx.Done():
		return
	}
	command, err := e.prepare(ctx)
	if err != nil {
		return // ctx has ended
	}
	var all sync.WaitGroup
	for range e.opts.Workers {
		all.Go(func() { e.keep(ctx, command) })
	}
	all.Wait()
}

// Close ends all workers, without waiting for requests: those are over when a server closes its engine. It may be called twice, and
// before Start.
func (e *Engine) Close() {
	if e.cancel != nil {
		e.cancel()
	}
	e.running.Wait()
	e.pool.close()
}

var _ engine.Worker = (*Engine)(nil)

// offered reports whether workers perform an operation.
func offered(operation string) bool {
	switch operation {
	case "CreateTable", "InsertIntoTable", "MergeInsertIntoTable", "UpdateTable", "DeleteFromTable", "QueryTable", "CountTableRows", "RestoreTable",
		"ExplainTableQueryPlan", "AnalyzeTableQueryPlan", "CreateTableIndex", "CreateTableScalarIndex", "DropTableIndex", "AlterTableAddColumns",
		"AlterTableAlterColumns", "AlterTableDropColumns", "UpdateTableSchemaMetadata", "UpdateFieldMetadata", "CreateTableBranch", "DeleteTableBranch",
		"AlterTableBackfillColumns", "CreateMaterializedView", "RefreshMaterializedView":
		return true
	}
	return false
}

// changes reports whether an operation changes anything.
func changes(operation string) bool {
	switch operation {
	case "QueryTable", "CountTableRows", "ExplainTableQueryPlan", "AnalyzeTableQueryPlan":
		return false
	}
	return true
}

// Do implements engine.Engine.
func (e *Engine) Do(ctx context.Context, operation string, request any) (any, error) {
	op, ok := e.answers[operation]
	if !ok {
		return nil, api.Errorf(api.CodeUnsupported, "%s is not offered by this server's engine", operation)
	}
	switch operation {
	case "CreateTable":
		return e.createTable(ctx, op, request.(*api.CreateTableRequest))
	case "CreateMaterializedView":
		return e.CreateView(ctx, request.(*api.CreateMaterializedViewRequest), func() error { return nil })
	case "AlterTableBackfillColumns", "RefreshMaterializedView":
		return nil, api.Errorf(api.CodeUnsupported, "%s is done by a job, and this engine keeps none", operation)
	}
	at, err := e.locate(ctx, request)
	if err != nil {
		return nil, err
	}
	return e.ask(ctx, op, request, at)
}

// Perform implements engine.Worker.
func (e *Engine) Perform(ctx context.Context, operation string, request any, extra map[string]any) (map[string]any, error) {
	op, ok := e.answers[operation]
	if !ok {
		return nil, api.Errorf(api.CodeUnsupported, "%s is not offered by this server's engine", operation)
	}
	at, err := e.locate(ctx, request)
	if err != nil {
		return nil, err
	}
	op.Response = map[string]any{}
	answer, err := e.askFor(ctx, asked{op: op, request: request, extra: extra, at: at})
	if err != nil {
		return nil, err
	}
	return *answer.(*map[string]any), nil
}

// take waits for a turn and returns the function that ends it. The error is of code ServiceUnavailable: nothing has happened yet.
func (e *Engine) take(ctx context.Context) (func(), error) {
	leave := sync.OnceFunc(func() { <-e.turns })
	select {
	case e.turns <- struct{}{}:
		return leave, nil
	default:
	}
	timer := time.NewTimer(e.opts.Patience)
	defer timer.Stop()
	select {
	case e.turns <- struct{}{}:
		return leave, nil
	case <-timer.C:
		return nil, api.Errorf(api.CodeServiceUnavailable, "the engine is busy: the request waited %s for its turn in vain; nothing was done; try again", e.opts.Patience)
	case <-ctx.Done():
		return nil, api.Errorf(api.CodeServiceUnavailable, "the request was given up while it waited for its turn; nothing was done")
	}
}

// errNoWorker says that no worker came up in time.
var errNoWorker = errors.New("no worker is running")
