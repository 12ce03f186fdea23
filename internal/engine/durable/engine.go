// Package durable makes jobs of the operations that take long: building an index, filling a computed column, refreshing a view. A job is a
// transaction that tells how far it is, and a row that is leased (package jobs): any server that has an engine performs it, and another goes on
// where one dies.
//
// What does not live here: what is done to data (the engine.Worker below), the records (package catalog), leases and retries (package jobs).
package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/engine"
	"github.com/lancerest/lancerest/internal/jobs"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// The kinds of jobs.
const (
	kindIndex    = "engine_index"
	kindBackfill = "engine_backfill"
	kindRefresh  = "engine_refresh"
	// kindWatch looks for ever whether the source of a view has changed, and queues a refresh where it has.
	kindWatch = "engine_watch"
)

// Kinds returns the kinds of jobs that the package performs.
func Kinds() []string { return []string{kindIndex, kindBackfill, kindRefresh, kindWatch} }

// Options say how jobs are performed. Worker, Catalog and Store are required.
type Options struct {
	Worker  engine.Worker
	Catalog *catalog.Catalog
	Store   store.Store
	// IndexAnswer is how long the caller who asks for an index waits for it (default 60 s). One that takes longer is built further after the
	// answer, which the specification foresees.
	IndexAnswer time.Duration
	// Lease is how long after the death of a server its jobs are taken by another (default 60 s), and Watch how often a job under way is looked
	// at, which is how soon it ends where it is canceled (default 1 s).
	Lease, Watch time.Duration
	// Interval is how often is looked for jobs of others (default 5 s), and Refresh how often for changes of a view's source (default 1 minute).
	Interval, Refresh time.Duration
	// Tries is how many attempts at a job may fail for want of something that comes and goes, such as a worker (default 50, over about 7 hours).
	Tries int
	// Alone says that no other server can be at the same state: whatever jobs are leased when Run begins were a dead one's, and begin at once.
	Alone bool
	// Observe is told of jobs that ended: the operation, the status and how long the last attempt took (default: nobody is).
	Observe func(operation string, status api.TransactionStatus, took time.Duration)
	// Logger receives a line when a job begins and one when it ends (default: nothing).
	Logger *slog.Logger
}

// Engine is an engine.Engine. Create it with New, and Run it.
type Engine struct {
	opts    Options
	runners map[string]*jobs.Runner // by kind
	all     []*jobs.Runner

	mu      sync.Mutex
	waiting map[lance.TransactionID]chan struct{} // closed when the job has ended in this server
}

var _ engine.Engine = (*Engine)(nil)

// The jobs of each class that run at a time in one server. They have places of their own, so that none waits for hours behind another class.
const (
	indicesAtOnce = 8
	longAtOnce    = 4
	watchesAtOnce = 2
)

// New returns an engine that performs no jobs before Run.
func New(opts Options) *Engine {
	opts.IndexAnswer = cmp.Or(opts.IndexAnswer, time.Minute)
	opts.Lease = cmp.Or(opts.Lease, time.Minute)
	opts.Watch = cmp.Or(opts.Watch, time.Second)
	opts.Interval = cmp.Or(opts.Interval, 5*time.Second)
	opts.Refresh = cmp.Or(opts.Refresh, time.Minute)
	opts.Tries = cmp.Or(opts.Tries, 50)
	if opts.Observe == nil {
		opts.Observe = func(string, api.TransactionStatus, time.Duration) {}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Engine{opts: opts, runners: map[string]*jobs.Runner{}, waiting: map[lance.TransactionID]chan struct{}{}}
	e.add(indicesAtOnce, kindIndex)
	e.add(longAtOnce, kindBackfill, kindRefresh)
	e.add(watchesAtOnce, kindWatch)
	return e
}

func (e *Engine) add(parallel int, kinds ...string) {
	r := jobs.New(jobs.Options{
		Store: e.opts.Store, Logger: e.opts.Logger, Kinds: kinds, Run: e.perform,
		Interval: e.opts.Interval, Lease: e.opts.Lease, Watch: e.opts.Watch, Parallel: parallel,
	})
	e.all = append(e.all, r)
	for _, kind := range kinds {
		e.runners[kind] = r
	}
}

// Run performs jobs until ctx ends, gives back those that it has, and returns.
func (e *Engine) Run(ctx context.Context) {
	if e.opts.Alone {
		if err := e.reclaim(ctx); err != nil && ctx.Err() == nil {
			e.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "jobs of a server that died wait for the end of their leases", slog.String("error", err.Error()))
		}
	}
	var running sync.WaitGroup
	for _, r := range e.all {
		running.Go(func() { r.Run(ctx) })
	}
	running.Wait()
}

// jobsMost is how many leased jobs of a kind are freed at a start. Nobody has more.
const jobsMost = 1000

// reclaim frees the jobs that a server before this one had when it died.
func (e *Engine) reclaim(ctx context.Context) error {
	return e.opts.Store.Update(store.WithOperation(ctx, "jobs"), func(tx store.Tx) error {
		for _, kind := range []string{kindIndex, kindBackfill, kindRefresh} {
			all, err := tx.Jobs(kind, 0, jobsMost)
			if err != nil {
				return err
			}
			for _, job := range all {
				if left := job.RunAt.Sub(tx.Now()); left <= 0 || left > e.opts.Lease {
					continue
				}
				if _, err := tx.HoldJob(job.ID, job.RunAt, tx.Now()); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Do implements engine.Engine. What makes a job is checked before, so that a wrong request is refused and no job that fails.
func (e *Engine) Do(ctx context.Context, operation string, request any) (any, error) {
	switch r := request.(type) {
	case *api.AlterTableBackfillColumnsRequest:
		id, err := e.begin(ctx, queued{kind: kindBackfill, operation: operation, request: r, answer: func(id lance.TransactionID) any {
			return &api.AlterTableBackfillColumnsResponse{JobID: string(id)}
		}})
		if err != nil {
			return nil, err
		}
		return &api.AlterTableBackfillColumnsResponse{JobID: string(id)}, nil
	case *api.RefreshMaterializedViewRequest:
		if r.SrcVersion == nil {
			r.SrcVersion = r.SourceVersion
		}
		r.SourceVersion = nil
		id, err := e.begin(ctx, queued{kind: kindRefresh, operation: operation, request: r, answer: func(id lance.TransactionID) any {
			return &api.RefreshMaterializedViewResponse{JobID: string(id)}
		}})
		if err != nil {
			return nil, err
		}
		return &api.RefreshMaterializedViewResponse{JobID: string(id)}, nil
	case *api.CreateMaterializedViewRequest:
		return e.createView(ctx, r)
	case *api.CreateTableIndexRequest:
		return e.createIndex(ctx, operation, r)
	}
	return e.opts.Worker.Do(ctx, operation, request)
}

// queued is a job to be.
type queued struct {
	kind, operation string
	request         interface {
		AsTarget() *api.Target
		AsCaller() *api.Caller
	}
	answer func(lance.TransactionID) any // nil where the answer waits for more
	alone  bool
}

// check is what a worker is told that is to find fault and do nothing.
func check() map[string]any { return map[string]any{"check": true} }

// begin has a worker check a request, and queues it.
func (e *Engine) begin(ctx context.Context, q queued) (lance.TransactionID, error) {
	if _, err := e.opts.Worker.Perform(ctx, q.operation, q.request, check()); err != nil {
		return "", err
	}
	return e.queue(ctx, q)
}

// queue makes a job.
func (e *Engine) queue(ctx context.Context, q queued) (lance.TransactionID, error) {
	id, given := q.request.AsTarget().ID, q.request.AsCaller()
	carried := given.Context
	caller := *given
	*given = api.Caller{} // who asks is on record, and no secret is kept
	text, err := json.Marshal(q.request)
	*given = caller
	if err != nil {
		return "", err
	}
	made, err := e.opts.Catalog.QueueTask(ctx, catalog.QueuedTask{
		Task: catalog.Task{Operation: q.operation, Context: carried, Request: text}, Kind: q.kind, ID: id, Answer: q.answer, Alone: q.alone,
	})
	if err != nil {
		return "", err
	}
	e.runners[q.kind].Wake()
	return made, nil
}

// createView makes a view, and begins to fill and to watch it where that is asked for. That a view is watched is written before it has its
// first version: no crash leaves one that only seems to refresh itself.
func (e *Engine) createView(ctx context.Context, req *api.CreateMaterializedViewRequest) (any, error) {
	resp, err := e.opts.Worker.CreateView(ctx, req, func() error {
		if req.AutoRefresh == nil || !*req.AutoRefresh {
			return nil
		}
		return e.opts.Catalog.WatchTable(ctx, kindWatch, req.ID, time.Now().Add(e.opts.Refresh))
	})
	if err != nil || req.WithNoData == nil || *req.WithNoData {
		return resp, err
	}
	id, err := e.queue(ctx, queued{kind: kindRefresh, operation: "RefreshMaterializedView", request: &api.RefreshMaterializedViewRequest{Target: req.Target}})
	if err != nil {
		return nil, err
	}
	resp.JobID = new(string)
	*resp.JobID = string(id)
	return resp, nil
}
