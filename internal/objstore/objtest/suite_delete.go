package objtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
)

func deleteIfCases() []testCase {
	return []testCase{
		{"removes the object with that ETag", func(t *testing.T, s objstore.Store) {
			info := mustPut(t, s, "t/a", []byte("x"))
			if err := s.DeleteIf(t.Context(), "t/a", info.ETag); err != nil {
				t.Fatalf("DeleteIf = %v, want nil", err)
			}
			wantAbsent(t, s, "t/a")
		}},
		{"ErrChanged if the object is another and nothing is removed", func(t *testing.T, s objstore.Store) {
			old := mustPut(t, s, "t/a", []byte("x"))
			if err := s.DeleteIf(t.Context(), "t/a", old.ETag); err != nil {
				t.Fatalf("DeleteIf = %v, want nil", err)
			}
			info := mustPut(t, s, "t/a", []byte("y"))
			for _, etag := range []string{old.ETag, "", "*", `"nonsense"`} {
				wantError(t, fmt.Sprintf("DeleteIf with ETag %q", etag), s.DeleteIf(t.Context(), "t/a", etag), objstore.ErrChanged)
			}
			wantObject(t, s, info, []byte("y"))
		}},
		{"ErrChanged if the object is gone", func(t *testing.T, s objstore.Store) {
			info := mustPut(t, s, "t/a", []byte("x"))
			if err := s.Delete(t.Context(), "t/a"); err != nil {
				t.Fatalf("Delete = %v, want nil", err)
			}
			for _, key := range []string{"t/a", "u/v/a", "t"} {
				wantError(t, "DeleteIf("+key+")", s.DeleteIf(t.Context(), key, info.ETag), objstore.ErrChanged)
			}
		}},
		{"no ETag is shared by different objects of one name", etagsNeverRepeat},
		{"one of 16 parallel calls wins", deleteIfOneWinner},
		{"never removes a later object", deleteIfAgainstPut},
	}
}

// etagsNeverRepeat puts and removes objects of one name and size as fast as the store can.
func etagsNeverRepeat(t *testing.T, s objstore.Store) {
	seen := map[string]int{}
	for i := range 200 {
		info := mustPut(t, s, "t/a", fmt.Appendf(nil, "%03d", i))
		if before, ok := seen[info.ETag]; ok {
			t.Fatalf("put %d got the ETag %s that put %d had", i, info.ETag, before)
		}
		seen[info.ETag] = i
		if err := s.DeleteIf(t.Context(), "t/a", info.ETag); err != nil {
			t.Fatalf("DeleteIf %d = %v, want nil", i, err)
		}
	}
}

func deleteIfOneWinner(t *testing.T, s objstore.Store) {
	for round := range 5 {
		info := mustPut(t, s, "t/a", []byte("x"))
		var removed atomic.Int32
		race(parallel, func(int) {
			err := s.DeleteIf(t.Context(), "t/a", info.ETag)
			if err == nil {
				removed.Add(1)
			} else if !errors.Is(err, objstore.ErrChanged) {
				t.Errorf("round %d: a loser got %v, want ErrChanged", round, err)
			}
		})
		if removed.Load() != 1 {
			t.Fatalf("round %d: %d calls removed the object, want 1", round, removed.Load())
		}
	}
}

// deleteIfAgainstPut lets everybody put under one name and remove what they saw there, late. Each object must be removed at
// most once, and only by its own ETag, so puts and removals that succeeded can differ by the one object that is left.
func deleteIfAgainstPut(t *testing.T, s objstore.Store) {
	var puts, removals atomic.Int32
	var removed sync.Map
	race(parallel/2, func(i int) {
		for round := range 20 {
			info, err := s.PutIfAbsent(t.Context(), "t/a", fmt.Appendf(nil, "%02d %02d", i, round))
			switch {
			case err == nil:
				puts.Add(1)
			case !errors.Is(err, objstore.ErrExists):
				t.Errorf("PutIfAbsent = %v, want nil or ErrExists", err)
			default:
				info, err = s.Head(t.Context(), "t/a")
				if err != nil {
					continue
				}
			}
			err = s.DeleteIf(t.Context(), "t/a", info.ETag)
			if err == nil {
				removals.Add(1)
				if _, twice := removed.LoadOrStore(info.ETag, true); twice {
					t.Errorf("the object with ETag %s was removed twice", info.ETag)
				}
			} else if !errors.Is(err, objstore.ErrChanged) {
				t.Errorf("DeleteIf = %v, want nil or ErrChanged", err)
			}
		}
	})
	left := int32(len(keysOf(t, s, "t/", "")))
	if puts.Load()-removals.Load() != left {
		t.Errorf("%d puts and %d removals succeeded, but %d objects are left", puts.Load(), removals.Load(), left)
	}
}

func deleteCases() []testCase {
	return []testCase{
		{"removes an object", func(t *testing.T, s objstore.Store) {
			mustPut(t, s, "t/a", []byte("x"))
			kept := mustPut(t, s, "t/b", []byte("y"))
			if err := s.Delete(t.Context(), "t/a"); err != nil {
				t.Errorf("Delete = %v, want nil", err)
			}
			wantAbsent(t, s, "t/a")
			wantObject(t, s, kept, []byte("y"))
		}},
		{"one that is absent is no error", func(t *testing.T, s objstore.Store) {
			info := mustPut(t, s, "t/a/b", []byte("x"))
			for _, key := range []string{"u", "t/b", "t/a/b/c", "t/a"} {
				if err := s.Delete(t.Context(), key); err != nil {
					t.Errorf("Delete(%q) = %v, want nil", key, err)
				}
			}
			wantObject(t, s, info, []byte("x"))
		}},
	}
}

func deleteTreeCases() []testCase {
	return []testCase{
		{"removes everything under prefix and counts it", func(t *testing.T, s objstore.Store) {
			for _, key := range []string{"r/t/a", "r/t/b/c", "r/t/b/d/e", "r/t/-", "r/t-/a", "r/t.lance", "r/s/a"} {
				mustPut(t, s, key, []byte(key))
			}
			removed, err := s.DeleteTree(t.Context(), "r/t/")
			if err != nil || removed != 4 {
				t.Errorf("DeleteTree = %d, %v, want 4, nil", removed, err)
			}
			wantKeys(t, s, "r/", "", "r/s/a", "r/t-/a", "r/t.lance")
		}},
		{"a prefix with no objects is no error", func(t *testing.T, s objstore.Store) {
			info := mustPut(t, s, "r/t", []byte("x"))
			for _, prefix := range []string{"r/s/", "r/t/", "q/p/"} {
				if removed, err := s.DeleteTree(t.Context(), prefix); err != nil || removed != 0 {
					t.Errorf("DeleteTree(%q) = %d, %v, want 0, nil", prefix, removed, err)
				}
			}
			wantObject(t, s, info, []byte("x"))
		}},
		{"a name can be used again", func(t *testing.T, s objstore.Store) {
			mustPut(t, s, "r/t/a", []byte("first"))
			if _, err := s.DeleteTree(t.Context(), "r/t/"); err != nil {
				t.Fatalf("DeleteTree = %v, want nil", err)
			}
			wantObject(t, s, mustPut(t, s, "r/t/a", []byte("again")), []byte("again"))
		}},
		{"ends with ctx and goes on when called again", deleteTreeResumes},
		{"parallel calls remove every object once", func(t *testing.T, s objstore.Store) {
			for i := range 60 {
				mustPut(t, s, fmt.Sprintf("r/t/%d/%d", i%3, i), []byte("x"))
			}
			var removed atomic.Int64
			race(4, func(int) {
				n, err := s.DeleteTree(t.Context(), "r/t/")
				if err != nil {
					t.Errorf("DeleteTree beside others = %v, want nil", err)
				}
				removed.Add(int64(n))
			})
			wantKeys(t, s, "r/t/", "")
			// An object store cannot tell who removed an object first, so more may be counted, but not fewer.
			if removed.Load() < 60 {
				t.Errorf("all calls together counted %d objects, want at least 60", removed.Load())
			}
		}},
	}
}

func deleteTreeResumes(t *testing.T, s objstore.Store) {
	for i := range 20 {
		mustPut(t, s, fmt.Sprintf("r/t/%d/%d", i%3, i), []byte("x"))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	removed, err := s.DeleteTree(ended, "r/t/")
	wantError(t, "DeleteTree with a context that has ended", err, context.Canceled)
	again, err := s.DeleteTree(t.Context(), "r/t/")
	if err != nil || removed+again != 20 {
		t.Errorf("DeleteTree removed %d, then %d, %v, want 20 together", removed, again, err)
	}
	wantKeys(t, s, "r/t/", "")
}
