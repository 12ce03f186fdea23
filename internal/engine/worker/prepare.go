package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/lancerest/lancerest/api"
)

// prepareMost is the longest pause between two attempts at preparing.
const prepareMost = 5 * time.Minute

// prepare returns how workers are started, trying until that is known. What requests are told meanwhile goes to the pool. The error is that of
// ctx.
func (e *Engine) prepare(ctx context.Context) (Command, error) {
	for pause := e.opts.Again; ; pause = min(2*pause, prepareMost) {
		command, err := e.opts.Prepare(ctx, func(sentence string) {
			e.pool.refuse(api.Errorf(api.CodeServiceUnavailable, "%s; nothing was done; try again later", sentence))
		})
		if err == nil {
			e.pool.refuse(nil)
			return command, nil
		}
		if ctx.Err() != nil {
			return Command{}, ctx.Err()
		}
		e.opts.Logger.Error("the engine cannot be used yet", slog.String("error", err.Error()), slog.Duration("again_in", pause))
		e.pool.refuse(api.Errorf(refusalCode(err), "the engine cannot be used yet: %v; this is tried again %s after it failed, at %s; nothing was done",
			err, pause, time.Now().UTC().Format(time.DateTime+" MST")))
		sleep(ctx, pause)
	}
}

// refusalCode is the code of what requests are told after an error of Prepare.
func refusalCode(err error) api.Code {
	var known *api.Error
	if errors.As(err, &known) {
		return known.Code
	}
	return api.CodeServiceUnavailable
}
