// Package alone judges conditions for a store whose server judges none, or not all, on behalf of the one process that uses it: it looks
// first and acts then, and keeps its own calls on a name apart meanwhile.
//
// It cannot keep the process apart from others: from writers that put manifests past the catalog, from a second server, and from requests of its
// own that were given up and take effect later. Whoever uses it sees to these (docs/commit.md, "Storage that judges no conditions").
package alone

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/lancerest/lancerest/internal/objstore"
)

// Store is an objstore.Store that judges the conditions that its inner store's server does not.
type Store struct {
	inner  objstore.Store
	judged objstore.Conditions

	mu   sync.Mutex
	busy map[string]chan struct{} // names with a call under way; closed when it ends
}

var _ objstore.Store = (*Store)(nil)

// New returns a store on inner, whose server judges what objstore.Try found. The error says that conditions of puts are missing and inner has no
// plain put.
func New(inner objstore.Store, judged objstore.Conditions) (*Store, error) {
	if _, ok := inner.(objstore.Plain); !ok && !(judged.Absent && judged.Replace) {
		return nil, fmt.Errorf("the storage does not judge %s, and cannot be used without", judged.Missing())
	}
	return &Store{inner: inner, judged: judged, busy: map[string]chan struct{}{}}, nil
}

// Get implements objstore.Store.
func (s *Store) Get(ctx context.Context, key string, limit int64) ([]byte, objstore.Info, error) {
	return s.inner.Get(ctx, key, limit)
}

// Head implements objstore.Store.
func (s *Store) Head(ctx context.Context, key string) (objstore.Info, error) {
	return s.inner.Head(ctx, key)
}

// PutIfAbsent implements objstore.Store.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) (info objstore.Info, err error) {
	err = s.by(ctx, key, func() error {
		if s.judged.Absent {
			info, err = s.inner.PutIfAbsent(ctx, key, data)
			return err
		}
		if _, err := s.inner.Head(ctx, key); err == nil {
			return fmt.Errorf("put %q: %w", key, objstore.ErrExists)
		} else if !errors.Is(err, objstore.ErrNotFound) {
			return err
		}
		info, err = s.inner.(objstore.Plain).Put(ctx, key, data)
		return err
	})
	return info, err
}

// PutIf implements objstore.Store.
func (s *Store) PutIf(ctx context.Context, key, etag string, data []byte) (info objstore.Info, err error) {
	err = s.by(ctx, key, func() error {
		if s.judged.Replace {
			info, err = s.inner.PutIf(ctx, key, etag, data)
			return err
		}
		if err := s.still(ctx, key, etag); err != nil {
			return fmt.Errorf("replace %q: %w", key, err)
		}
		info, err = s.inner.(objstore.Plain).Put(ctx, key, data)
		return err
	})
	return info, err
}

// DeleteIf implements objstore.Store.
func (s *Store) DeleteIf(ctx context.Context, key, etag string) error {
	return s.by(ctx, key, func() error {
		if s.judged.Delete {
			return s.inner.DeleteIf(ctx, key, etag)
		}
		if err := s.still(ctx, key, etag); err != nil {
			return fmt.Errorf("remove %q: %w", key, err)
		}
		return s.inner.Delete(ctx, key)
	})
}

// still returns ErrChanged unless the object is the one with that ETag.
func (s *Store) still(ctx context.Context, key, etag string) error {
	info, err := s.inner.Head(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) || err == nil && info.ETag != etag {
		return objstore.ErrChanged
	}
	return err
}

// Delete implements objstore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.by(ctx, key, func() error { return s.inner.Delete(ctx, key) })
}

// List implements objstore.Store.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Info, error] {
	return s.inner.List(ctx, prefix, after)
}

// DeleteTree implements objstore.Store. It is not kept apart from other calls: nothing else happens in a tree that is purged.
func (s *Store) DeleteTree(ctx context.Context, prefix string) (int, error) {
	return s.inner.DeleteTree(ctx, prefix)
}

// Folders implements objstore.Folders in the inner store's own way.
func (s *Store) Folders(ctx context.Context, prefix string) ([]string, error) {
	return objstore.FoldersOf(ctx, s.inner, prefix)
}

// by runs a call when no other one on the same name is under way, or returns the context's error if that ends before.
func (s *Store) by(ctx context.Context, key string, call func() error) error {
	for {
		s.mu.Lock()
		other, taken := s.busy[key]
		if !taken {
			done := make(chan struct{})
			s.busy[key] = done
			s.mu.Unlock()
			defer func() {
				s.mu.Lock()
				delete(s.busy, key)
				s.mu.Unlock()
				close(done)
			}()
			return call()
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
