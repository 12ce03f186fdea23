package objtest

import (
	"context"
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
)

// RunLazy runs the suite of what objstore.Lazy adds, with newStore as in Run: PutSoon passes whatever PutIfAbsent does.
func RunLazy(t *testing.T, newStore func(t *testing.T) objstore.Lazy) {
	t.Helper()
	run := func(group string, cases []testCase, of func(objstore.Lazy) objstore.Store) {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(t, of(newStore(t)))
				})
			}
		})
	}
	run("PutSoon", putIfAbsentCases(raceRounds), func(s objstore.Lazy) objstore.Store { return soon{s} })
	run("Restore", restoreCases(), func(s objstore.Lazy) objstore.Store { return s })
}

// soon is a store whose PutIfAbsent is PutSoon, and then Sync.
type soon struct{ objstore.Lazy }

func (s soon) PutIfAbsent(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	info, err := s.PutSoon(ctx, key, data)
	if synced := s.Sync(ctx); synced != nil {
		return objstore.Info{}, synced
	}
	return info, err
}

func restoreCases() []testCase {
	restore := func(t *testing.T, s objstore.Store, key, data string) objstore.Info {
		t.Helper()
		info, err := s.(objstore.Lazy).Restore(t.Context(), key, []byte(data))
		if err != nil {
			t.Fatalf("Restore(%q) = %v, want nil", key, err)
		}
		return info
	}
	return []testCase{
		{"puts what is gone", func(t *testing.T, s objstore.Store) {
			wantObject(t, s, restore(t, s, "t/new/a", "whole"), []byte("whole"))
			wantKeys(t, s, "t/", "", "t/new/a")
		}},
		{"replaces what is there, and describes the object anew", func(t *testing.T, s objstore.Store) {
			before := mustPut(t, s, "t/a", []byte("who"))
			after := restore(t, s, "t/a", "whole")
			wantObject(t, s, after, []byte("whole"))
			wantKeys(t, s, "t/", "", "t/a")
			wantError(t, "DeleteIf of the damaged object", s.DeleteIf(t.Context(), "t/a", before.ETag), objstore.ErrChanged)
		}},
		{"ErrInvalidKey", func(t *testing.T, s objstore.Store) {
			_, err := s.(objstore.Lazy).Restore(t.Context(), "t/../a", []byte("x"))
			wantError(t, "Restore of an invalid key", err, objstore.ErrInvalidKey)
		}},
	}
}
