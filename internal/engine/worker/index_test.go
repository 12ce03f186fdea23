package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/engine/worker"
)

// TestIndexGoesOn: a caller does not wait for an index for ever; it is there later, and one that fails then is told in the log.
func TestIndexGoesOn(t *testing.T) {
	t.Parallel()
	l := newLake(t, func(o *worker.Options) { o.IndexAnswer = time.Nanosecond })
	l.create(t)
	ask := func(column string) {
		t.Helper()
		_, err := l.Do(t.Context(), "CreateTableScalarIndex", &api.CreateTableIndexRequest{Target: api.At("t"), Column: column, IndexType: "BTREE"})
		if err != nil {
			t.Fatal(err)
		}
	}
	ask("id")
	eventually(t, "the index", func() bool {
		got, err := l.catalog.ListTableIndices(t.Context(), &api.ListTableIndicesRequest{Target: api.At("t")})
		if err != nil {
			t.Fatal(err)
		}
		return len(got.Indexes) == 1 && got.Indexes[0].IndexName == "id_idx"
	})
	ask("none")
	eventually(t, "the log", func() bool {
		return strings.Contains(l.log.String(), "an index that was accepted was not built") && strings.Contains(l.log.String(), "no column 'none'")
	})
}
