// Package mem keeps objects in memory. It is for tests and nothing in it survives: what needs durability, other processes or a
// real file system is tested on package local.
//
// It is deterministic: ETags and times come from a counter of puts, so the same calls give the same answers.
package mem

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lancerest/lancerest/internal/objstore"
)

// Store is an objstore.Store in memory. The zero value is not usable; see New.
type Store struct {
	mu      sync.Mutex
	objects map[string]object
	puts    int64
}

type object struct {
	data []byte // never changed once it is here
	info objstore.Info
}

var _ objstore.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store { return &Store{objects: map[string]object{}} }

// Get implements objstore.Store.
func (s *Store) Get(ctx context.Context, key string, limit int64) ([]byte, objstore.Info, error) {
	o, err := s.look(ctx, key)
	if err != nil {
		return nil, objstore.Info{}, fmt.Errorf("read %q: %w", key, err)
	}
	if limit > 0 && o.info.Size > limit {
		return nil, objstore.Info{}, fmt.Errorf("read %q: %w: it has %d bytes, the limit is %d", key, objstore.ErrTooLarge, o.info.Size, limit)
	}
	return bytes.Clone(o.data), o.info, nil
}

// Head implements objstore.Store.
func (s *Store) Head(ctx context.Context, key string) (objstore.Info, error) {
	o, err := s.look(ctx, key)
	if err != nil {
		return objstore.Info{}, fmt.Errorf("look at %q: %w", key, err)
	}
	return o.info, nil
}

func (s *Store) look(ctx context.Context, key string) (object, error) {
	if err := ready(ctx, key); err != nil {
		return object{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	if !ok {
		return object{}, objstore.ErrNotFound
	}
	return o, nil
}

// PutIfAbsent implements objstore.Store.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.objects[key]; ok {
		return objstore.Info{}, fmt.Errorf("put %q: %w", key, objstore.ErrExists)
	}
	return s.put(key, data), nil
}

// PutIf implements objstore.Store.
func (s *Store) PutIf(ctx context.Context, key, etag string, data []byte) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[key].info.ETag != etag || etag == "" {
		return objstore.Info{}, fmt.Errorf("replace %q: %w", key, objstore.ErrChanged)
	}
	return s.put(key, data), nil
}

// put stores a copy of data. The caller holds the lock.
func (s *Store) put(key string, data []byte) objstore.Info {
	s.puts++
	info := objstore.Info{
		Key:      key,
		Size:     int64(len(data)),
		ETag:     fmt.Sprintf("\"mem-%d\"", s.puts),
		Modified: time.Unix(s.puts, 0),
	}
	s.objects[key] = object{data: bytes.Clone(data), info: info}
	return info
}

// DeleteIf implements objstore.Store.
func (s *Store) DeleteIf(ctx context.Context, key, etag string) error {
	if err := ready(ctx, key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[key].info.ETag != etag || etag == "" {
		return fmt.Errorf("remove %q: %w", key, objstore.ErrChanged)
	}
	delete(s.objects, key)
	return nil
}

// Delete implements objstore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := ready(ctx, key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
	return nil
}

// List implements objstore.Store. It yields what was there when it began.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		if err := objstore.CheckPrefix(prefix); err != nil {
			yield(objstore.Info{}, fmt.Errorf("list %q: %w", prefix, err))
			return
		}
		if err := ctx.Err(); err != nil {
			yield(objstore.Info{}, fmt.Errorf("list %q: %w", prefix, err))
			return
		}
		for _, info := range s.under(prefix, after) {
			if err := ctx.Err(); err != nil {
				yield(objstore.Info{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

// under returns what is under prefix and after a key, in order.
func (s *Store) under(prefix, after string) []objstore.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []objstore.Info
	for key, o := range s.objects {
		if strings.HasPrefix(key, prefix) && key > after {
			found = append(found, o.info)
		}
	}
	slices.SortFunc(found, func(a, b objstore.Info) int { return strings.Compare(a.Key, b.Key) })
	return found
}

// DeleteTree implements objstore.Store.
func (s *Store) DeleteTree(ctx context.Context, prefix string) (int, error) {
	if err := objstore.CheckPrefix(prefix); err != nil {
		return 0, err
	}
	removed := 0
	for _, info := range s.under(prefix, "") {
		if err := s.Delete(ctx, info.Key); err != nil {
			return removed, fmt.Errorf("remove all under %q: %w", prefix, err)
		}
		removed++
	}
	return removed, ctx.Err()
}

// ready is the check that opens every method on one key.
func ready(ctx context.Context, key string) error {
	if err := objstore.CheckKey(key); err != nil {
		return err
	}
	return ctx.Err()
}
