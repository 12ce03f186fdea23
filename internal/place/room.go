package place

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/lancerest/lancerest/internal/objstore"
)

// room bounds the bytes of manifests that a server holds for commits: those of a table with millions of fragments have hundreds of MiB. Each
// is held once. One that is read, looked at or put takes its size from one share, for which it waits; one that a commit keeps from its
// look to its put takes it from the other, if that has any left, and is otherwise read again. Nobody waits for one share while holding of it, so that
// no two commits wait for each other.
type room struct {
	size   int64
	passes *semaphore.Weighted
	kept   *semaphore.Weighted
}

func newRoom(size, largest int64) *room {
	size = max(size, largest)
	return &room{size: size, passes: semaphore.NewWeighted(size), kept: semaphore.NewWeighted(size / 2)}
}

// likelySize is what a manifest is taken to have of which nobody has said how large it is.
const likelySize = 256 << 10

// Held is a manifest in memory: its bytes, and what the storage says of the object. Whoever has it lets go of it by Free, once.
type Held struct {
	Data []byte
	Info objstore.Info
	Free func()
}

// Read reads a manifest that has about so many bytes, 0 where that is not known, after waiting for room. Its errors are those of the storage,
// objstore.ErrTooLarge where the manifest has more than MaxManifest bytes, and that of a context that ended while it waited.
func (ps *Places) Read(ctx context.Context, p Place, key string, about int64) (Held, error) {
	if about <= 0 {
		about = likelySize
	}
	for {
		about = min(about, ps.opts.MaxManifest)
		weight := min(about, ps.room.size)
		if err := ps.room.passes.Acquire(ctx, weight); err != nil {
			return Held{}, err
		}
		data, info, err := p.Objects.Get(ctx, key, about)
		if err == nil {
			return Held{Data: data, Info: info, Free: func() { ps.room.passes.Release(weight) }}, nil
		}
		ps.room.passes.Release(weight)
		if !errors.Is(err, objstore.ErrTooLarge) || about == ps.opts.MaxManifest {
			return Held{}, err
		}
		if info, err = p.Objects.Head(ctx, key); err != nil {
			return Held{}, err
		}
		about = max(info.Size, about+1)
	}
}

// Keeper is what one commit keeps in memory between its look and its put. Its works are prepared at the same time.
type Keeper struct {
	room *room
	n    atomic.Int64
}

// Keeper returns one that keeps nothing yet. It must be freed.
func (ps *Places) Keeper() *Keeper { return &Keeper{room: ps.room} }

// Keep reports whether there is room for n bytes more, and takes it: until Free the caller may hold them. It does not wait.
func (k *Keeper) Keep(n int64) bool {
	if !k.room.kept.TryAcquire(n) {
		return false
	}
	k.n.Add(n)
	return true
}

// Free lets go of all that was kept. It may be called twice.
func (k *Keeper) Free() { k.room.kept.Release(k.n.Swap(0)) }
