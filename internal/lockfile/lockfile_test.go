package lockfile_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/lancerest/lancerest/internal/lockfile"
)

func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	held := func(want bool) {
		t.Helper()
		if got, err := lockfile.Held(path); got != want || err != nil {
			t.Errorf("Held: got %t, %v, want %t", got, err, want)
		}
	}
	held(false) // there is no file
	for range 2 {
		f, err := lockfile.Lock(path)
		if err != nil {
			t.Fatal(err)
		}
		held(true)
		if _, err := lockfile.Lock(path); !errors.Is(err, lockfile.ErrHeld) {
			t.Errorf("Lock twice: got error %v, want ErrHeld", err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		held(false)
	}
	if _, err := lockfile.Lock(filepath.Join(path, "no directory")); err == nil || errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("Lock where nothing can be made: got error %v", err)
	}
}
