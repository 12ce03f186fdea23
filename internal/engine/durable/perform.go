package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/auth"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/jobs"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// perform performs a job, for package jobs.
func (e *Engine) perform(ctx context.Context, job store.Job) error {
	var task catalog.Task
	if err := json.Unmarshal([]byte(job.Payload), &task); err != nil {
		return fmt.Errorf("payload of job %d (%s): %w", job.ID, job.Kind, err)
	}
	if job.Kind == kindWatch {
		return e.watch(ctx, task)
	}
	began := time.Now()
	e.log(ctx, "a job begins", task, slog.Int("attempt", job.Attempts+1))
	results, err := e.attempt(ctx, job, task)
	took := time.Since(began)
	if errors.Is(err, catalog.ErrTaskEnded) || err != nil && errors.Is(context.Cause(ctx), jobs.ErrLost) {
		e.log(ctx, "a job was taken back", task, slog.Duration("took", took))
		e.ended(task.ID)
		return jobs.ErrLost
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	failed, retry := e.judge(job, err)
	if retry {
		return err
	}
	status := api.TransactionSucceeded
	attrs := []slog.Attr{slog.Duration("took", took)}
	if failed != nil {
		status = api.TransactionFailed
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	err = e.opts.Catalog.EndTask(context.WithoutCancel(ctx), task.ID, results, failed)
	if err != nil && !errors.Is(err, catalog.ErrTaskEnded) {
		return err // the work is done; an attempt that finds that ends the job
	}
	e.ended(task.ID)
	e.log(ctx, "a job ended", task, append(attrs, slog.String("status", string(status)))...)
	e.opts.Observe(task.Operation, status, took)
	return nil
}

func (e *Engine) log(ctx context.Context, what string, task catalog.Task, more ...slog.Attr) {
	attrs := append([]slog.Attr{slog.String("job", string(task.ID)), slog.String("operation", task.Operation), slog.String("table", strconv.FormatInt(int64(task.Table), 10))}, more...)
	e.opts.Logger.LogAttrs(ctx, slog.LevelInfo, what, attrs...)
}

// attempt has a worker do what is to be done, and returns what that came to.
func (e *Engine) attempt(ctx context.Context, job store.Job, task catalog.Task) (map[string]string, error) {
	begun, err := e.opts.Catalog.BeginTask(ctx, task)
	if err != nil {
		return nil, err
	}
	if job.Kind == kindIndex && begun.Commit != "" {
		// An attempt before this one may have built it, and only have been kept from saying so.
		if done, err := e.opts.Catalog.Committed(ctx, begun.Commit); done || err != nil {
			return nil, err
		}
	}
	request, err := decode(task, begun.Path)
	if err != nil {
		return nil, err
	}
	ctx = auth.WithDelegate(ctx, auth.Delegate{Principal: auth.Principal{Name: task.Principal}, Job: string(task.ID)})
	answer, err := e.opts.Worker.Perform(ctx, task.Operation, request, nil)
	if err != nil && api.CodeOf(err) == api.CodeTableNotFound {
		return nil, e.moved(ctx, task, begun.Path, err)
	}
	if err != nil {
		return nil, err
	}
	return texts(answer), nil
}

// errMoved says that a table was renamed while a job worked on it under its name before.
var errMoved = errors.New("the table was renamed meanwhile")

// moved says why a job found no table where it was when the attempt began.
func (e *Engine) moved(ctx context.Context, task catalog.Task, before lance.TableID, failed error) error {
	now, err := e.opts.Catalog.TaskPath(ctx, task)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(now, before) {
		return errMoved
	}
	return failed
}

// decode returns the request of a task, for where its table is now.
func decode(task catalog.Task, path lance.TableID) (any, error) {
	for _, op := range api.Operations() {
		if op.Name != task.Operation {
			continue
		}
		request := reflect.New(reflect.TypeOf(op.Request)).Interface()
		if err := json.Unmarshal(task.Request, request); err != nil {
			return nil, fmt.Errorf("read the request of job %s: %w", task.ID, err)
		}
		request.(interface{ AsTarget() *api.Target }).AsTarget().ID = path
		return request, nil
	}
	return nil, fmt.Errorf("job %s: there is no operation %q", task.ID, task.Operation)
}

// texts are the results of a worker that have a text: numbers, strings and truths.
func texts(answer map[string]any) map[string]string {
	all := map[string]string{}
	for name, value := range answer {
		switch v := value.(type) {
		case string:
			all[name] = v
		case bool:
			all[name] = strconv.FormatBool(v)
		case float64:
			all[name] = strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	return all
}

// Attempts that may fail because a worker died in the middle or others were always faster, and for a reason that nobody foresaw: something may
// be wrong with the job itself.
const (
	lostTries  = 8
	strayTries = 3
)

// judge says what the error of an attempt means: the job has failed, or it is tried again, up to a bound.
func (e *Engine) judge(job store.Job, err error) (failed *api.Error, retry bool) {
	if err == nil {
		return nil, false
	}
	code, known := api.CodeOf(err), errors.As(err, &failed)
	most := 0
	switch {
	case !known:
		most = strayTries
	case code == api.CodeServiceUnavailable || code == api.CodeThrottling:
		most = e.opts.Tries
	case code == api.CodeInternal || code == api.CodeConcurrentModification:
		most = lostTries
	}
	if job.Attempts+1 < most {
		return nil, true
	}
	if known {
		return api.Errorf(code, "%s", failed.Message), false
	}
	return api.Errorf(api.CodeInternal, "it failed %d times for a reason that the server's log tells", job.Attempts+1), false
}

// watch queues a refresh of a view whose source has changed, unless one waits already, and asks to be run again. It ends with the view.
func (e *Engine) watch(ctx context.Context, task catalog.Task) error {
	path, err := e.opts.Catalog.TaskPath(ctx, task)
	if api.CodeOf(err) == api.CodeTableNotFound && err != nil {
		return nil
	}
	again := jobs.Again{After: e.opts.Refresh}
	if err != nil {
		return again
	}
	ctx = auth.WithDelegate(ctx, auth.Delegate{Principal: auth.Principal{Name: task.Principal}})
	request := &api.RefreshMaterializedViewRequest{Target: api.At(path...)}
	answer, err := e.opts.Worker.Perform(ctx, "RefreshMaterializedView", request, check())
	if err != nil {
		return again // it has no data yet, or its source is away: a refresh that is asked for says so
	}
	if stale, _ := answer["stale"].(bool); !stale {
		return again
	}
	_, err = e.queue(ctx, queued{kind: kindRefresh, operation: "RefreshMaterializedView", request: request, alone: true})
	if err != nil && ctx.Err() == nil {
		e.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "a view could not be refreshed by itself", slog.Any("table", path), slog.String("error", err.Error()))
	}
	return again
}
