package durable

import (
	"context"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
)

// createIndex has an index built. A caller that hangs up does not stop it; what it can be told is that the request is wrong, or that the index
// is there, or after a while that it is being built.
func (e *Engine) createIndex(ctx context.Context, operation string, req *api.CreateTableIndexRequest) (any, error) {
	id, err := e.queue(ctx, queued{kind: kindIndex, operation: operation, request: req})
	if err != nil {
		return nil, err
	}
	ended, err := e.await(ctx, id)
	if err != nil {
		return nil, err
	}
	accepted := string(id)
	scalar := operation == "CreateTableScalarIndex"
	switch {
	case scalar && ended:
		return &api.CreateTableScalarIndexResponse{}, nil
	case scalar:
		return &api.CreateTableScalarIndexResponse{TransactionID: &accepted}, nil
	case ended:
		return &api.CreateTableIndexResponse{}, nil
	}
	return &api.CreateTableIndexResponse{TransactionID: &accepted}, nil
}

// lookEvery is how often is looked whether another server has ended a job.
const lookEvery = 500 * time.Millisecond

// await waits for the end of a job for as long as its caller does, and reports whether it came. The error is why the job failed.
func (e *Engine) await(ctx context.Context, id lance.TransactionID) (bool, error) {
	done := e.expect(id)
	defer e.ended(id)
	timer := time.NewTimer(e.opts.IndexAnswer)
	defer timer.Stop()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		_, failed, ended, err := e.opts.Catalog.TaskEnded(ctx, id)
		if ended && failed != nil {
			return true, failed
		}
		if ended || err != nil && ctx.Err() == nil {
			return ended, err
		}
		select {
		case <-done:
			done = nil // it is on record now
		case <-ticker.C:
		case <-timer.C:
			return false, nil
		case <-ctx.Done():
			return false, nil
		}
	}
}

// expect returns what is closed when a job ends in this server.
func (e *Engine) expect(id lance.TransactionID) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting[id] == nil {
		e.waiting[id] = make(chan struct{})
	}
	return e.waiting[id]
}

// ended tells who waits for a job that it has ended, and forgets them.
func (e *Engine) ended(id lance.TransactionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.waiting[id]; c != nil {
		close(c)
		delete(e.waiting, id)
	}
}
