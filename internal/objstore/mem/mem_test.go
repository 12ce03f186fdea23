package mem_test

import (
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/mem"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	objtest.Run(t, func(*testing.T) objstore.Store { return mem.New() })
}
