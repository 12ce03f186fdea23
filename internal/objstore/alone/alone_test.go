package alone_test

import (
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/alone"
	"github.com/lancerest/lancerest/internal/objstore/mem"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// TestStore: whichever conditions the server does not judge, the suite passes.
func TestStore(t *testing.T) {
	t.Parallel()
	for name, judged := range map[string]objstore.Conditions{
		"none":                 {},
		"all but removals":     {Absent: true, Replace: true},
		"new objects alone":    {Absent: true},
		"nothing but removals": {Delete: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objtest.Run(t, func(t *testing.T) objstore.Store {
				s, err := alone.New(&objtest.Heedless{Store: mem.New(), Judged: judged}, judged)
				if err != nil {
					t.Fatal(err)
				}
				return s
			})
		})
	}
}

func TestNewNeedsAPlainPut(t *testing.T) {
	t.Parallel()
	if _, err := alone.New(mem.New(), objstore.Conditions{Absent: true, Delete: true}); err == nil {
		t.Error("a store that can neither judge nor put without a condition is taken")
	}
	if _, err := alone.New(mem.New(), objstore.Conditions{Absent: true, Replace: true}); err != nil {
		t.Errorf("a store that only removes without a condition is not taken: %v", err)
	}
}
