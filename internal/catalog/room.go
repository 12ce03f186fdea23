package catalog

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

// held is a manifest in memory. Whoever has it lets go of it.
type held struct {
	data []byte
	info objstore.Info
	free func()
}

// read reads a manifest that has about so many bytes, 0 where that is not known. Its errors are those of the storage.
func (c *Catalog) read(ctx context.Context, p place, key string, about int64) (held, error) {
	if about <= 0 {
		about = likelySize
	}
	for {
		about = min(about, c.opts.MaxManifest)
		weight := min(about, c.room.size)
		if err := c.room.passes.Acquire(ctx, weight); err != nil {
			return held{}, err
		}
		data, info, err := p.objects.Get(ctx, key, about)
		if err == nil {
			return held{data: data, info: info, free: func() { c.room.passes.Release(weight) }}, nil
		}
		c.room.passes.Release(weight)
		if !errors.Is(err, objstore.ErrTooLarge) || about == c.opts.MaxManifest {
			return held{}, err
		}
		if info, err = p.objects.Head(ctx, key); err != nil {
			return held{}, err
		}
		about = max(info.Size, about+1)
	}
}

// keeper is what one commit keeps in memory between its look and its put. Its works are prepared at the same time.
type keeper struct {
	room *room
	n    atomic.Int64
}

// keeper returns one that keeps nothing yet.
func (c *Catalog) keeper() *keeper { return &keeper{room: c.room} }

// keep reports whether there is room for so many bytes more, and takes it.
func (k *keeper) keep(n int64) bool {
	if !k.room.kept.TryAcquire(n) {
		return false
	}
	k.n.Add(n)
	return true
}

func (k *keeper) free() { k.room.kept.Release(k.n.Swap(0)) }
