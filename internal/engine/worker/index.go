package worker

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"github.com/lancerest/lancerest/api"
)

// indexTime bounds how long an index may take.
const indexTime = 6 * time.Hour

// createIndex builds an index. A caller that hangs up does not stop it; what it can be told is that the request is wrong, or that the index
// is there, or after a while that it is being built.
func (e *Engine) createIndex(ctx context.Context, op api.Operation, request any) (any, error) {
	at, err := e.locate(ctx, request)
	if err != nil {
		return nil, err
	}
	working, cancel := context.WithTimeout(context.WithoutCancel(ctx), indexTime)
	type outcome struct {
		response any
		err      error
	}
	done := make(chan outcome, 1)
	go func() {
		defer cancel()
		response, err := e.ask(working, op, request, at)
		done <- outcome{response, err}
	}()
	timer := time.NewTimer(e.opts.IndexAnswer)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.response, o.err
	case <-timer.C:
	case <-ctx.Done():
	}
	go func() {
		if o := <-done; o.err != nil {
			e.opts.Logger.Error("an index that was accepted was not built", slog.Any("table", at.ID), slog.String("error", o.err.Error()))
		}
	}()
	return reflect.New(reflect.TypeOf(op.Response)).Interface(), nil
}
