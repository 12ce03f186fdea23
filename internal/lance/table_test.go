package lance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lancerest/lancerest/internal/lance"
)

func TestPathsAndNames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		id        lance.TableID
		namespace lance.NamespaceID
		name      string
	}{
		{nil, nil, ""},
		{lance.TableID{"t"}, lance.NamespaceID{}, "t"},
		{lance.TableID{"a", "b", "t"}, lance.NamespaceID{"a", "b"}, "t"},
	} {
		if diff := cmp.Diff(tc.namespace, tc.id.Namespace()); diff != "" {
			t.Errorf("namespace of %q (-want +got):\n%s", tc.id, diff)
		}
		if got := tc.id.Name(); got != tc.name {
			t.Errorf("name of %q = %q, want %q", tc.id, got, tc.name)
		}
	}
	if got := (lance.Namespace{Path: lance.NamespaceID{"a", "b"}}).Name(); got != "b" {
		t.Errorf("Namespace.Name = %q, want b", got)
	}
	if got := (lance.Namespace{}).Name(); got != "" {
		t.Errorf("Name of the root = %q, want none", got)
	}
}

func TestDetached(t *testing.T) {
	t.Parallel()
	for v, want := range map[lance.VersionNumber]bool{-1: true, 0: false, 1: false} {
		if got := v.Detached(); got != want {
			t.Errorf("Detached of %d = %v, want %v", v, got, want)
		}
	}
}
