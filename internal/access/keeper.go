package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/lancerest/lancerest/internal/lance"
)

// keeper makes keys when they are wanted, once for all who want the same, and keeps them as long as they are good for handing out.
type keeper struct {
	opts   Options
	calls  singleflight.Group
	places *semaphore.Weighted // requests to the provider at a time

	mu   sync.Mutex
	kept map[lance.Location]kept
}

// kept are keys and the time until which they may be handed out. That time is told by the monotonic clock, which nobody sets.
type kept struct {
	keys  Keys
	until time.Time
}

func newKeeper(opts Options) *keeper {
	return &keeper{opts: opts, places: semaphore.NewWeighted(opts.Parallel), kept: map[lance.Location]kept{}}
}

// keys returns keys for a directory that live for MinLife at least.
func (k *keeper) keys(ctx context.Context, dir lance.Location) (Keys, error) {
	if err := ctx.Err(); err != nil {
		return Keys{}, err
	}
	if keys, ok := k.look(dir); ok {
		return keys, nil
	}
	// The request goes on for the others when the caller whose turn it is gives up.
	done := k.calls.DoChan(dir.String(), func() (any, error) {
		if keys, ok := k.look(dir); ok { // of a call that ended since
			return keys, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.opts.Timeout)
		defer cancel()
		return k.make(ctx, dir)
	})
	select {
	case r := <-done:
		if r.Err != nil {
			return Keys{}, r.Err
		}
		return r.Val.(Keys), nil
	case <-ctx.Done():
		return Keys{}, ctx.Err()
	}
}

// look returns what is kept for a directory, if it is still good.
func (k *keeper) look(dir lance.Location) (Keys, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	there, ok := k.kept[dir]
	if !ok || !time.Now().Before(there.until) {
		return Keys{}, false
	}
	return there.keys, true
}

// make asks the provider and keeps what it gives.
func (k *keeper) make(ctx context.Context, dir lance.Location) (Keys, error) {
	err := k.places.Acquire(ctx, 1)
	var keys Keys
	asked := time.Now()
	if err == nil {
		defer k.places.Release(1)
		asked = time.Now()
		keys, err = k.opts.Vendor.Vend(ctx, dir, k.opts.Grant)
	}
	if err != nil && ctx.Err() != nil {
		// The context is of this request alone, whose time is up: no caller gave up.
		return Keys{}, fmt.Errorf("%w: it did not answer within %s", ErrUnavailable, k.opts.Timeout)
	}
	if err != nil {
		return Keys{}, err
	}
	life := keys.Life
	if life == 0 {
		life = time.Until(keys.Expires)
	}
	if life < k.opts.MinLife {
		return Keys{}, fmt.Errorf("%w: it gave keys that live %s, and what is handed out must live %s at least", ErrRefused, life.Round(time.Second), k.opts.MinLife)
	}
	k.keep(dir, kept{keys: keys, until: asked.Add(life - k.opts.MinLife)})
	return keys, nil
}

// keep makes room where there is none: keys that are no longer good go first, then any others.
func (k *keeper) keep(dir lance.Location, fresh kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, there := k.kept[dir]; !there && len(k.kept) >= k.opts.MaxKept {
		now := time.Now()
		for other, there := range k.kept {
			if !now.Before(there.until) {
				delete(k.kept, other)
			}
		}
		for other := range k.kept {
			if len(k.kept) < k.opts.MaxKept {
				break
			}
			delete(k.kept, other)
		}
	}
	k.kept[dir] = fresh
}
