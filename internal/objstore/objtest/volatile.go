package objtest

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/lancerest/lancerest/internal/objstore"
)

// Volatile is an objstore.Lazy of which a power failure can be played: what PutSoon put since the last Sync is damaged then.
type Volatile struct {
	objstore.Store

	mu       sync.Mutex
	unsynced map[string][]byte
	broken   error // what Sync answers
}

var _ objstore.Lazy = (*Volatile)(nil)

// NewVolatile returns a store that keeps its objects in inner.
func NewVolatile(inner objstore.Store) *Volatile {
	return &Volatile{Store: inner, unsynced: map[string][]byte{}}
}

// PutSoon implements objstore.Lazy.
func (v *Volatile) PutSoon(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	info, err := v.Store.PutIfAbsent(ctx, key, data)
	if !errors.Is(err, objstore.ErrExists) { // also where the answer was lost: the object may be there
		v.mu.Lock()
		v.unsynced[key] = data
		v.mu.Unlock()
	}
	return info, err
}

// Sync implements objstore.Lazy.
func (v *Volatile) Sync(context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.broken == nil {
		clear(v.unsynced)
	}
	return v.broken
}

// Restore implements objstore.Lazy.
func (v *Volatile) Restore(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	if err := v.Store.Delete(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	v.mu.Lock()
	delete(v.unsynced, key)
	v.mu.Unlock()
	return v.Store.PutIfAbsent(ctx, key, data)
}

// BreakSync makes Sync fail with err until it is told nil. What is unsynced then stays so.
func (v *Volatile) BreakSync(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.broken = err
}

// Damage is what a power failure leaves of an object: so many bytes of it, or with Gone not even its name.
type Damage int

// Gone takes an object away.
const Gone Damage = -1

// FailPower damages every object that was put soon and not synced, and returns their keys. left is the storage as it is after the failure,
// which v's own may no longer be able to reach.
func (v *Volatile) FailPower(ctx context.Context, left objstore.Store, damage Damage) ([]string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var keys []string
	for key, data := range v.unsynced {
		there, _, err := left.Get(ctx, key, 0)
		if errors.Is(err, objstore.ErrNotFound) || err == nil && !bytes.Equal(there, data) {
			continue // it was never put, or removed, or is another's
		}
		if err == nil {
			err = left.Delete(ctx, key)
		}
		if err == nil && damage != Gone {
			_, err = left.PutIfAbsent(ctx, key, data[:min(int(damage), len(data))])
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	clear(v.unsynced)
	return keys, nil
}
