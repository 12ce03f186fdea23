package objtest

import (
	"context"
	"time"

	"github.com/lancerest/lancerest/internal/objstore"
)

// Latency says how long a call takes before its effect. A constant one models a distant object store for benchmarks.
type Latency func(op Op, key string) time.Duration

// Slow returns a store that answers as inner does, each call after its latency. A call whose context ends while it waits returns
// the context's error and has no effect.
func Slow(inner objstore.Store, latency Latency) objstore.Store {
	return intercepted{inner: inner, around: func(ctx context.Context, op Op, key string, effect func(context.Context) error) error {
		timer := time.NewTimer(latency(op, key))
		defer timer.Stop()
		select {
		case <-timer.C:
			return effect(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}
