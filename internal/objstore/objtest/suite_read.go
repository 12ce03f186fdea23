package objtest

import (
	"bytes"
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
)

func getCases() []testCase {
	return []testCase{
		{"returns an object whole", func(t *testing.T, s objstore.Store) {
			for key, size := range map[string]int{"t/empty": 0, "t/one": 1, "t/odd": 70_001, "t/large": 3 << 20} {
				data := bytes.Repeat([]byte{'x', 0, 0xff}, size/3+1)[:size]
				wantObject(t, s, mustPut(t, s, key, data), data)
			}
		}},
		{"ErrNotFound if it is absent", func(t *testing.T, s objstore.Store) {
			mustPut(t, s, "t/a", []byte("x"))
			for _, key := range []string{"b", "t/b", "t/a/b", "u/a/b"} {
				wantAbsent(t, s, key)
			}
		}},
		{"ErrNotFound for a prefix of keys", func(t *testing.T, s objstore.Store) {
			mustPut(t, s, "t/u/a", []byte("x"))
			wantAbsent(t, s, "t")
			wantAbsent(t, s, "t/u")
		}},
		{"ErrTooLarge if it has more than limit bytes", func(t *testing.T, s objstore.Store) {
			mustPut(t, s, "t/a", []byte("12345"))
			data, _, err := s.Get(t.Context(), "t/a", 4)
			wantError(t, "Get with a limit of 4 of 5 bytes", err, objstore.ErrTooLarge)
			if data != nil {
				t.Errorf("Get over its limit returned %q, want nothing", data)
			}
		}},
		{"returns an object of exactly limit bytes", func(t *testing.T, s objstore.Store) {
			mustPut(t, s, "t/a", []byte("12345"))
			data, _, err := s.Get(t.Context(), "t/a", 5)
			if err != nil || string(data) != "12345" {
				t.Errorf("Get with a limit of 5 = %q, %v, want \"12345\", nil", data, err)
			}
		}},
		{"the caller owns the bytes", func(t *testing.T, s objstore.Store) {
			info := mustPut(t, s, "t/a", []byte("12345"))
			data, _, err := s.Get(t.Context(), "t/a", 0)
			if err != nil {
				t.Fatalf("Get = %v, want nil", err)
			}
			clear(data)
			wantObject(t, s, info, []byte("12345"))
		}},
	}
}

func headCases() []testCase {
	return []testCase{
		{"describes an object as its put did", func(t *testing.T, s objstore.Store) {
			info := mustPut(t, s, "t/a", []byte("12345"))
			if info.Key != "t/a" || info.Size != 5 || info.ETag == "" {
				t.Errorf("PutIfAbsent describes the object as %+v, want its key, 5 bytes and an ETag", info)
			}
			wantObject(t, s, info, []byte("12345"))
			if head, err := s.Head(t.Context(), "t/a"); err == nil && head.Modified.IsZero() {
				t.Errorf("Head describes the object as %+v, want a time", head)
			}
		}},
		{"ErrNotFound", func(t *testing.T, s objstore.Store) {
			_, err := s.Head(t.Context(), "t/a")
			wantError(t, "Head of an absent object", err, objstore.ErrNotFound)
		}},
	}
}
