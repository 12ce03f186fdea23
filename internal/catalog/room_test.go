package catalog_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// TestLittleRoom: commits of manifests that do not all fit into memory wait for each other's passing through and not for their ends. What cannot
// be kept is read again.
func TestLittleRoom(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for name, c := range map[string]struct {
		claims func(int64) *int64 // what the writer says of a manifest's size
		gets   int                // for six manifests
	}{
		"the writer tells the size":      {func(n int64) *int64 { return &n }, 2 * 6},
		"the writer tells nothing":       {func(int64) *int64 { return nil }, 3 * 6},
		"the writer tells too little":    {func(int64) *int64 { n := int64(10); return &n }, 3 * 6},
		"the writer tells far too much":  {func(int64) *int64 { n := int64(1 << 50); return &n }, 2 * 6},
		"the writer tells a little more": {func(n int64) *int64 { n += 5; return &n }, 2 * 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Of two MiB each, as the mark stands in one twice: one fits to pass through, and none to be kept.
			s := newServer(t, func(o *catalog.Options) { o.ManifestMemory, o.MaxManifest = 3*size, 3*size })
			var batch []staged
			for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
				data := lancetest.Manifest(lancetest.Spec{Version: 1, Mark: strings.Repeat("x", size) + uuid.NewString()})
				sv := s.lake.stageBytes(t, s.declare(t, name), lance.Main, 1, data)
				sv.Metadata, sv.ManifestSize = nil, c.claims(int64(len(data)))
				batch = append(batch, sv)
			}
			before := len(s.objects.Calls())
			if _, err := s.batch(context.Background(), batch...); err != nil {
				t.Fatal(err)
			}
			gets := 0
			for _, call := range s.objects.Calls()[before:] {
				if call.Op == objtest.OpGet && strings.Contains(call.Key, ".manifest-") {
					gets++
				}
			}
			if gets != c.gets {
				t.Errorf("staged manifests were read %d times, want %d", gets, c.gets)
			}
			for _, sv := range batch {
				s.lake.holds(t, sv.table.final(1), sv.data)
			}
		})
	}
}
