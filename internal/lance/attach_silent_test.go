package lance_test

import (
	"testing"

	"github.com/lancerest/lancerest/internal/lance"
)

// A manifest that does not say from which version it was made is attached: its writer knows.
func TestAttachVersionOfOneThatDoesNotTellItsBase(t *testing.T) {
	t.Parallel()
	attached, err := lance.AttachVersion(manifestFile(nil, number(3, 1<<63)), 7)
	if err != nil {
		t.Fatal(err)
	}
	m, err := lance.ReadManifest(attached)
	if err != nil {
		t.Fatal(err)
	}
	if m.Version != 7 {
		t.Errorf("version %d, want 7", m.Version)
	}
}
