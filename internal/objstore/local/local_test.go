package local_test

import (
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/local"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	objtest.Run(t, func(t *testing.T) objstore.Store { return open(t, t.TempDir()) })
}

// Not every system has files without a name.
func TestSuiteWithNamedTemporaries(t *testing.T) {
	t.Parallel()
	objtest.Run(t, func(t *testing.T) objstore.Store {
		s := open(t, t.TempDir())
		s.NameTemporaries()
		return s
	})
}

// open returns the store at a directory.
func open(t *testing.T, root string) *local.Store {
	t.Helper()
	s, err := local.New(local.Options{Root: root})
	if err != nil {
		t.Fatalf("New(%q) = %v, want nil", root, err)
	}
	return s
}
