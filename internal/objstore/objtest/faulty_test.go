package objtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/mem"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

func TestFaultyWithoutFaultsPassesTheSuite(t *testing.T) {
	t.Parallel()
	objtest.Run(t, func(*testing.T) objstore.Store { return objtest.NewFaulty(mem.New()) })
}

func TestHeldCallsPassTheSuiteOnceReleased(t *testing.T) {
	t.Parallel()
	objtest.Run(t, func(*testing.T) objstore.Store {
		f := objtest.NewFaulty(mem.New())
		f.Hold(objtest.Match{Times: objtest.Forever}, objtest.After).Release()
		return f
	})
}

func TestSlowPassesTheSuite(t *testing.T) {
	t.Parallel()
	objtest.Run(t, func(*testing.T) objstore.Store {
		return objtest.Slow(mem.New(), func(objtest.Op, string) time.Duration { return 0 })
	})
}

func TestSlowCallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	inner := mem.New()
	s := objtest.Slow(inner, func(objtest.Op, string) time.Duration { return time.Hour })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.PutIfAbsent(ctx, "t/a", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("PutIfAbsent = %v, want context.Canceled", err)
	}
	if got := present(t, inner, "t/a"); got {
		t.Error("the call had its effect, want none")
	}
}

func TestFail(t *testing.T) {
	t.Parallel()
	own := errors.New("own error")
	underA := func(key string) bool { return strings.HasPrefix(key, "a/") }
	for _, c := range []struct {
		name  string
		match objtest.Match
		stage objtest.Stage
		err   error
		fails []string // of a/1 b/1 a/2 b/2 a/3 b/3
		want  error
	}{
		{"the next call", objtest.Match{}, objtest.Before, nil, []string{"a/1"}, objtest.ErrInjected},
		{"the second on", objtest.Match{Nth: 5, Times: objtest.Forever}, objtest.Before, nil, []string{"a/3", "b/3"}, objtest.ErrInjected},
		{"by key", objtest.Match{Key: underA, Nth: 2}, objtest.Before, own, []string{"a/2"}, own},
		{"by key, lost answer", objtest.Match{Key: underA, Nth: 2, Times: 2}, objtest.After, own, []string{"a/2", "a/3"}, own},
		{"another operation", objtest.Match{Op: objtest.OpDelete}, objtest.Before, nil, nil, nil},
		{"this operation", objtest.Match{Op: objtest.OpPutIfAbsent, Nth: 6}, objtest.After, nil, []string{"b/3"}, objtest.ErrInjected},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inner := mem.New()
			f := objtest.NewFaulty(inner)
			f.Fail(c.match, c.stage, c.err)
			var fails []string
			for _, key := range []string{"a/1", "b/1", "a/2", "b/2", "a/3", "b/3"} {
				_, err := f.PutIfAbsent(t.Context(), key, nil)
				if err == nil {
					continue
				}
				fails = append(fails, key)
				if !errors.Is(err, c.want) {
					t.Errorf("PutIfAbsent(%q) = %v, want %v", key, err, c.want)
				}
				if got, want := present(t, inner, key), c.stage == objtest.After; got != want {
					t.Errorf("%q is there: %v, want %v", key, got, want)
				}
			}
			if diff := cmp.Diff(c.fails, fails); diff != "" {
				t.Errorf("the calls that failed differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHoldBeforeReleaseLetsTheCallGoOn(t *testing.T) {
	t.Parallel()
	inner := mem.New()
	f := objtest.NewFaulty(inner)
	gate := f.Hold(objtest.Match{Op: objtest.OpPutIfAbsent, Nth: 3}, objtest.Before)
	answers := make(chan error, 1)
	put(t, f, "t/1")
	put(t, f, "t/2")
	go func() { _, err := f.PutIfAbsent(t.Context(), "t/3", nil); answers <- err }()
	<-gate.Reached()
	put(t, f, "t/4")
	if present(t, inner, "t/3") {
		t.Error("the held call had its effect, want none yet")
	}
	gate.Release()
	if !present(t, inner, "t/3") {
		t.Error("the released call had no effect")
	}
	if err := <-answers; err != nil {
		t.Errorf("the released call = %v, want nil", err)
	}
}

func TestHeldCallOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(*objtest.Gate)
		want bool
	}{
		"released it lands": {(*objtest.Gate).Release, true},
		"dropped it never":  {(*objtest.Gate).Drop, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner := mem.New()
			f := objtest.NewFaulty(inner)
			gate := f.Hold(objtest.Match{}, objtest.Before)
			ctx, cancel := context.WithCancel(t.Context())
			answers := make(chan error, 1)
			data := []byte("late")
			go func() { _, err := f.PutIfAbsent(ctx, "t/a", data); answers <- err }()
			<-gate.Reached()
			cancel()
			if err := <-answers; !errors.Is(err, context.Canceled) {
				t.Errorf("the caller got %v, want context.Canceled", err)
			}
			clear(data) // the caller's again
			if present(t, inner, "t/a") {
				t.Error("the held call had its effect, want none yet")
			}
			c.end(gate)
			got, _, err := inner.Get(t.Context(), "t/a", 0)
			if c.want && string(got) != "late" {
				t.Errorf("Get = %q, %v, want \"late\"", got, err)
			}
			if !c.want && !errors.Is(err, objstore.ErrNotFound) {
				t.Errorf("Get = %q, %v, want ErrNotFound", got, err)
			}
		})
	}
}

func TestHoldAfterHasTheEffectAlready(t *testing.T) {
	t.Parallel()
	inner := mem.New()
	f := objtest.NewFaulty(inner)
	gate := f.Hold(objtest.Match{Times: 2}, objtest.After)
	answers := make(chan error, 2)
	for i := range 2 {
		go func() { _, err := f.PutIfAbsent(t.Context(), fmt.Sprintf("t/%d", i), nil); answers <- err }()
	}
	<-gate.Reached()
	gate.Drop()
	for range 2 {
		if err := <-answers; !errors.Is(err, objtest.ErrInjected) {
			t.Errorf("the dropped call = %v, want ErrInjected", err)
		}
	}
	for _, key := range []string{"t/0", "t/1"} {
		if !present(t, inner, key) {
			t.Errorf("%q is not there, want it: only the answer was lost", key)
		}
	}
}

func TestHeldListingIsStale(t *testing.T) {
	t.Parallel()
	f := objtest.NewFaulty(mem.New())
	put(t, f, "t/a")
	gate := f.Hold(objtest.Match{Op: objtest.OpList}, objtest.After)
	keys := make(chan []string, 1)
	go func() {
		var found []string
		for info := range f.List(t.Context(), "t/", "") {
			found = append(found, info.Key)
		}
		keys <- found
	}()
	<-gate.Reached()
	put(t, f, "t/b")
	gate.Release()
	if diff := cmp.Diff([]string{"t/a"}, <-keys); diff != "" {
		t.Errorf("the held listing differs (-want +got):\n%s", diff)
	}
}

func TestChaosDependsOnItsSeedAlone(t *testing.T) {
	t.Parallel()
	run := func(seed uint64, order []int) map[string]string {
		f := objtest.NewFaulty(mem.New())
		f.Randomly(objtest.Chaos{Seed: seed, Before: 0.2, After: 0.2, Ops: []objtest.Op{objtest.OpPutIfAbsent}})
		fates := map[string]string{}
		for _, i := range order {
			key := fmt.Sprintf("t/%d", i%100)
			_, err := f.PutIfAbsent(t.Context(), key, nil)
			_, headErr := f.Head(t.Context(), key)
			fates[key] += fmt.Sprintf(" put=%v there=%v", errors.Is(err, objtest.ErrInjected), headErr == nil)
		}
		return fates
	}
	var up, down []int
	for i := range 200 {
		up, down = append(up, i), append(down, 199-i)
	}
	first := run(1, up)
	if diff := cmp.Diff(first, run(1, down)); diff != "" {
		t.Errorf("one seed, another order of keys, another fate (-first +second):\n%s", diff)
	}
	if cmp.Equal(first, run(2, up)) {
		t.Error("two seeds gave the same faults, want others")
	}
	kinds := map[string]int{}
	for _, fate := range first {
		kinds[fate]++
	}
	if len(kinds) < 6 {
		t.Errorf("100 keys met only these fates: %v, want failures before and after on both calls", kinds)
	}
}

func TestCallsAndHeal(t *testing.T) {
	t.Parallel()
	f := objtest.NewFaulty(mem.New())
	f.Fail(objtest.Match{Op: objtest.OpDelete}, objtest.Before, nil)
	f.Fail(objtest.Match{Op: objtest.OpHead, Times: objtest.Forever}, objtest.After, nil)
	put(t, f, "t/a")
	_ = f.Delete(t.Context(), "t/a")
	_, _ = f.Head(t.Context(), "t/a")
	f.Heal()
	_, _ = f.Head(t.Context(), "t/b")
	want := []objtest.Call{
		{Op: objtest.OpPutIfAbsent, Key: "t/a", Effect: true, Done: true},
		{Op: objtest.OpDelete, Key: "t/a", Done: true, Err: objtest.ErrInjected},
		{Op: objtest.OpHead, Key: "t/a", Effect: true, Done: true, Err: objtest.ErrInjected},
		{Op: objtest.OpHead, Key: "t/b", Effect: true, Done: true, Err: objstore.ErrNotFound},
	}
	if diff := cmp.Diff(want, f.Calls(), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("the record differs (-want +got):\n%s", diff)
	}
}

func put(t *testing.T, s objstore.Store, key string) {
	t.Helper()
	if _, err := s.PutIfAbsent(t.Context(), key, nil); err != nil {
		t.Fatalf("PutIfAbsent(%q) = %v, want nil", key, err)
	}
}

// present reports whether there is an object under key.
func present(t *testing.T, s objstore.Store, key string) bool {
	t.Helper()
	_, err := s.Head(t.Context(), key)
	if err != nil && !errors.Is(err, objstore.ErrNotFound) {
		t.Fatalf("Head(%q) = %v, want nil or ErrNotFound", key, err)
	}
	return err == nil
}
