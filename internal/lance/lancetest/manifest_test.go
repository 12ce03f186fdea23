package lancetest_test

import (
	"testing"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
)

func TestManifestReads(t *testing.T) {
	t.Parallel()
	for _, v := range []lance.VersionNumber{1, 7, -5} {
		data := lancetest.Manifest(lancetest.Spec{Version: v, Read: 3, Mark: "a mark"})
		m, err := lance.ReadManifest(data)
		if err != nil {
			t.Fatal(err)
		}
		if m.Version != v || m.ReadVersion != 3 || !m.ReadVersionKnown {
			t.Errorf("version %d reads as %+v", v, m)
		}
		if got := lancetest.Mark(data); got != "a mark" {
			t.Errorf("mark = %q", got)
		}
	}
	if got := lancetest.Mark([]byte("no manifest, but longer than a footer")); got != "" {
		t.Errorf("mark of other bytes = %q", got)
	}
}
