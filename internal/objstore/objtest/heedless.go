package objtest

import (
	"context"
	"errors"
	"slices"

	"github.com/lancerest/lancerest/internal/objstore"
)

// Heedless is a store that does not judge conditions, as some servers do not: it overwrites, and removes, and says that all is well.
type Heedless struct {
	objstore.Store
	Judged objstore.Conditions // those that it judges after all
	// Says makes it refuse a condition with ErrUnsupported instead of passing over it.
	Says bool
}

var _ objstore.Plain = (*Heedless)(nil)

// Put implements objstore.Plain.
func (h *Heedless) Put(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	data = slices.Clone(data)
	for {
		info, err := h.Store.PutIfAbsent(ctx, key, data)
		if !errors.Is(err, objstore.ErrExists) {
			return info, err
		}
		if info, err = h.Head(ctx, key); err == nil {
			info, err = h.Store.PutIf(ctx, key, info.ETag, data)
		}
		if !errors.Is(err, objstore.ErrNotFound) && !errors.Is(err, objstore.ErrChanged) {
			return info, err
		}
	}
}

// PutIfAbsent implements objstore.Store.
func (h *Heedless) PutIfAbsent(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	switch {
	case h.Judged.Absent:
		return h.Store.PutIfAbsent(ctx, key, data)
	case h.Says:
		return objstore.Info{}, objstore.ErrUnsupported
	}
	return h.Put(ctx, key, data)
}

// PutIf implements objstore.Store.
func (h *Heedless) PutIf(ctx context.Context, key, etag string, data []byte) (objstore.Info, error) {
	switch {
	case h.Judged.Replace:
		return h.Store.PutIf(ctx, key, etag, data)
	case h.Says:
		return objstore.Info{}, objstore.ErrUnsupported
	}
	return h.Put(ctx, key, data)
}

// DeleteIf implements objstore.Store.
func (h *Heedless) DeleteIf(ctx context.Context, key, etag string) error {
	switch {
	case h.Judged.Delete:
		return h.Store.DeleteIf(ctx, key, etag)
	case h.Says:
		return objstore.ErrUnsupported
	}
	return h.Delete(ctx, key)
}
