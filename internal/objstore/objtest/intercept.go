package objtest

import (
	"bytes"
	"context"
	"iter"
	"sync/atomic"

	"github.com/lancerest/lancerest/internal/objstore"
)

// Op names a method of objstore.Store.
type Op string

// The methods of objstore.Store.
const (
	OpGet         Op = "Get"
	OpHead        Op = "Head"
	OpPutIfAbsent Op = "PutIfAbsent"
	OpPutIf       Op = "PutIf"
	OpDeleteIf    Op = "DeleteIf"
	OpDelete      Op = "Delete"
	OpList        Op = "List"
	OpDeleteTree  Op = "DeleteTree"
)

// intercepted is a store whose every call goes through around, which may run effect, now, later or never, and returns what the
// caller is told. It may return before effect has run, so nothing that effect writes is read unless around returned nil.
type intercepted struct {
	inner  objstore.Store
	around func(ctx context.Context, op Op, key string, effect func(context.Context) error) error
}

var _ objstore.Store = intercepted{}

// Get implements objstore.Store.
func (s intercepted) Get(ctx context.Context, key string, limit int64) ([]byte, objstore.Info, error) {
	var data []byte
	var info objstore.Info
	err := s.around(ctx, OpGet, key, func(ctx context.Context) (err error) {
		data, info, err = s.inner.Get(ctx, key, limit)
		return err
	})
	if err != nil {
		return nil, objstore.Info{}, err
	}
	return data, info, nil
}

// Head implements objstore.Store.
func (s intercepted) Head(ctx context.Context, key string) (objstore.Info, error) {
	return s.describe(ctx, OpHead, key, func(ctx context.Context) (objstore.Info, error) { return s.inner.Head(ctx, key) })
}

// PutIfAbsent implements objstore.Store.
func (s intercepted) PutIfAbsent(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	data = bytes.Clone(data) // the effect may outlive the call
	return s.describe(ctx, OpPutIfAbsent, key, func(ctx context.Context) (objstore.Info, error) {
		return s.inner.PutIfAbsent(ctx, key, data)
	})
}

// PutIf implements objstore.Store.
func (s intercepted) PutIf(ctx context.Context, key, etag string, data []byte) (objstore.Info, error) {
	data = bytes.Clone(data)
	return s.describe(ctx, OpPutIf, key, func(ctx context.Context) (objstore.Info, error) {
		return s.inner.PutIf(ctx, key, etag, data)
	})
}

// describe intercepts a call that answers with an object's description.
func (s intercepted) describe(
	ctx context.Context, op Op, key string, call func(context.Context) (objstore.Info, error),
) (objstore.Info, error) {
	var info objstore.Info
	err := s.around(ctx, op, key, func(ctx context.Context) (err error) {
		info, err = call(ctx)
		return err
	})
	if err != nil {
		return objstore.Info{}, err
	}
	return info, nil
}

// DeleteIf implements objstore.Store.
func (s intercepted) DeleteIf(ctx context.Context, key, etag string) error {
	return s.around(ctx, OpDeleteIf, key, func(ctx context.Context) error { return s.inner.DeleteIf(ctx, key, etag) })
}

// Delete implements objstore.Store.
func (s intercepted) Delete(ctx context.Context, key string) error {
	return s.around(ctx, OpDelete, key, func(ctx context.Context) error { return s.inner.Delete(ctx, key) })
}

// List implements objstore.Store. The listing is taken whole before its first object is yielded: one that is held after its
// effect yields what was there before it was held.
func (s intercepted) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		var found []objstore.Info
		err := s.around(ctx, OpList, prefix, func(ctx context.Context) error {
			for info, err := range s.inner.List(ctx, prefix, after) {
				if err != nil {
					return err
				}
				found = append(found, info)
			}
			return nil
		})
		if err != nil {
			yield(objstore.Info{}, err)
			return
		}
		for _, info := range found {
			if !yield(info, nil) {
				return
			}
		}
	}
}

// DeleteTree implements objstore.Store.
func (s intercepted) DeleteTree(ctx context.Context, prefix string) (int, error) {
	var removed atomic.Int64 // also told with an error, when the effect may still run
	err := s.around(ctx, OpDeleteTree, prefix, func(ctx context.Context) error {
		n, err := s.inner.DeleteTree(ctx, prefix)
		removed.Store(int64(n))
		return err
	})
	return int(removed.Load()), err
}
