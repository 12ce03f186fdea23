package local_test

import (
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

func TestLazySuite(t *testing.T) {
	t.Parallel()
	objtest.RunLazy(t, func(t *testing.T) objstore.Lazy { return open(t, t.TempDir()) })
}

func TestLazySuiteWithNamedTemporaries(t *testing.T) {
	t.Parallel()
	objtest.RunLazy(t, func(t *testing.T) objstore.Lazy {
		s := open(t, t.TempDir())
		s.NameTemporaries()
		return s
	})
}
