package objtest_test

import (
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/mem"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

func TestVolatileSuite(t *testing.T) {
	t.Parallel()
	objtest.RunLazy(t, func(*testing.T) objstore.Lazy { return objtest.NewVolatile(mem.New()) })
}

// What was synced, restored or put outright outlives a power failure; what was not is damaged as told.
func TestVolatileLosesWhatWasNotSynced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		damage objtest.Damage
		left   []string
	}{
		{objtest.Gone, []string{"t/put", "t/restored", "t/synced"}},
		{0, []string{"t/put", "t/restored", "t/soon", "t/synced"}},
		{3, []string{"t/put", "t/restored", "t/soon", "t/synced"}},
	} {
		inner := mem.New()
		v := objtest.NewVolatile(inner)
		soon := func(key string) {
			t.Helper()
			if _, err := v.PutSoon(t.Context(), key, []byte("whole")); err != nil {
				t.Fatalf("PutSoon(%q) = %v, want nil", key, err)
			}
		}
		soon("t/synced")
		if err := v.Sync(t.Context()); err != nil {
			t.Fatalf("Sync = %v, want nil", err)
		}
		soon("t/soon")
		soon("t/restored")
		if _, err := v.Restore(t.Context(), "t/restored", []byte("whole")); err != nil {
			t.Fatalf("Restore = %v, want nil", err)
		}
		if _, err := v.PutIfAbsent(t.Context(), "t/put", []byte("whole")); err != nil {
			t.Fatalf("PutIfAbsent = %v, want nil", err)
		}
		keys, err := v.FailPower(t.Context(), inner, c.damage)
		if err != nil || len(keys) != 1 || keys[0] != "t/soon" {
			t.Fatalf("FailPower = %q, %v, want only t/soon", keys, err)
		}
		var left []string
		for info, err := range v.List(t.Context(), "t/", "") {
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, info.Key)
			want := int64(len("whole"))
			if info.Key == "t/soon" {
				want = int64(c.damage)
			}
			if info.Size != want {
				t.Errorf("%s has %d bytes after the failure, want %d", info.Key, info.Size, want)
			}
		}
		if len(left) != len(c.left) {
			t.Errorf("damage %d leaves %q, want %q", c.damage, left, c.left)
		}
	}
}
