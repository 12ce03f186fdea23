package engine_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/engine"
)

// TestCommits: what an operation came to whose worker is lost.
func TestCommits(t *testing.T) {
	t.Parallel()
	type commit struct {
		version int64
		err     error
	}
	for name, c := range map[string]struct {
		commits []commit
		version int64
		known   bool
	}{
		"nothing":   {nil, 0, true},
		"done":      {[]commit{{7, nil}}, 7, true},
		"refused":   {[]commit{{0, api.Errorf(api.CodeConcurrentModification, "another was faster")}}, 0, true},
		"rebased":   {[]commit{{0, api.Errorf(api.CodeConcurrentModification, "another was faster")}, {8, nil}}, 8, true},
		"not known": {[]commit{{0, api.Errorf(api.CodeInternal, "lost")}}, 0, false},
		"cut off":   {[]commit{{0, context.Canceled}}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := engine.NewCommits("s")
			id := all.Begin()
			for _, one := range c.commits {
				leave, err := all.Enter(id)
				if err != nil {
					t.Fatal(err)
				}
				leave(one.version, one.err)
			}
			version, known := all.Lose(t.Context(), id)
			if known != c.known || known && version != c.version {
				t.Errorf("version %d, known %t; want %d, %t", version, known, c.version, c.known)
			}
			if _, err := all.Enter(id); err == nil || api.CodeOf(err) != api.CodeInvalidTableState {
				t.Errorf("a commit after that: %v", err)
			}
		})
	}
}

// TestCommitUnderWay: who loses a worker waits for the commit that is under way, but not for ever.
func TestCommitUnderWay(t *testing.T) {
	t.Parallel()
	all := engine.NewCommits("s")
	id := all.Begin()
	leave, err := all.Enter(id)
	if err != nil {
		t.Fatal(err)
	}
	came := make(chan int64)
	go func() {
		version, _ := all.Lose(context.Background(), id)
		came <- version
	}()
	for refusedNow(all, id) == nil { // until it is lost
		runtime.Gosched()
	}
	leave(9, nil)
	if version := <-came; version != 9 {
		t.Errorf("version %d, want 9", version)
	}
	id = all.Begin()
	if _, err := all.Enter(id); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, known := all.Lose(ctx, id); known {
		t.Error("a commit that is under way is known")
	}
}

func refusedNow(all *engine.Commits, id string) error {
	leave, err := all.Enter(id)
	if err == nil {
		leave(0, api.Errorf(api.CodeConcurrentModification, "none"))
	}
	return err
}

// TestCommitsOfOthers: an operation's id is used again once it is over, without what it was before; one of another server is let through.
func TestCommitsOfOthers(t *testing.T) {
	t.Parallel()
	all := engine.NewCommits("s")
	first := all.Begin()
	leave, err := all.Enter(first)
	if err != nil {
		t.Fatal(err)
	}
	leave(3, nil)
	all.Finish(first)
	second := all.Begin()
	if second != first {
		t.Errorf("ids %q and %q", first, second)
	}
	if version, known := all.Lose(t.Context(), second); version != 0 || !known {
		t.Errorf("version %d, known %t", version, known)
	}
	if third := all.Begin(); third == second {
		t.Errorf("the id %q of a lost operation is used again", third)
	}
	if leave, err := all.Enter("another"); err != nil {
		t.Error(err)
	} else {
		leave(1, nil)
	}
}
