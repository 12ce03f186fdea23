package objstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/mem"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// TestTry: what a server judges is found out, whether it says that it does not or passes over it, and nothing is left behind.
func TestTry(t *testing.T) {
	t.Parallel()
	for i := range 16 {
		judged := objstore.Conditions{Absent: i&1 != 0, Replace: i&2 != 0, Delete: i&4 != 0}
		inner := mem.New()
		got, err := objstore.Try(t.Context(), &objtest.Heedless{Store: inner, Judged: judged, Says: i&8 != 0}, "a/b/")
		if err != nil {
			t.Errorf("%+v: %v", judged, err)
		}
		if diff := cmp.Diff(judged, got); diff != "" {
			t.Errorf("the conditions found differ (-want +got):\n%s", diff)
		}
		for info := range inner.List(t.Context(), "a/", "") {
			t.Errorf("%+v: %s is left behind", judged, info.Key)
		}
	}
}

// TestTryTellsNothingInAnOutage: a storage that fails says nothing about its conditions.
func TestTryTellsNothingInAnOutage(t *testing.T) {
	t.Parallel()
	calls := objtest.NewFaulty(mem.New())
	if _, err := objstore.Try(t.Context(), calls, "a/"); err != nil {
		t.Fatal(err)
	}
	down := errors.New("down")
	for nth := range calls.Calls() {
		f := objtest.NewFaulty(mem.New())
		f.Fail(objtest.Match{Nth: nth + 1}, objtest.Before, down)
		if c, err := objstore.Try(context.Background(), f, "a/"); !errors.Is(err, down) {
			t.Errorf("call %d fails: %+v, %v, want its error", nth+1, c, err)
		}
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	if got := (objstore.Conditions{Absent: true, Replace: true, Delete: true}); !got.All() || got.Missing() != "" {
		t.Errorf("%+v: %q is missing", got, got.Missing())
	}
	const want = "putting an object only where there is none, and removing an object only if it is the one that was read"
	if got := (objstore.Conditions{Replace: true}); got.All() || got.Missing() != want {
		t.Errorf("%+v: %q is missing, want %q", got, got.Missing(), want)
	}
}

// TestTryAgain: a trial that comes out otherwise than it should, as after lost requests, is made again.
func TestTryAgain(t *testing.T) {
	t.Parallel()
	calls := objtest.NewFaulty(mem.New())
	if _, err := objstore.Try(t.Context(), calls, "a/"); err != nil {
		t.Fatal(err)
	}
	for nth, call := range calls.Calls() {
		err := objstore.ErrChanged
		if call.Op == objtest.OpPutIfAbsent {
			err = objstore.ErrExists
		}
		f := objtest.NewFaulty(mem.New())
		f.Fail(objtest.Match{Nth: nth + 1}, objtest.After, err)
		if c, err := objstore.Try(t.Context(), f, "a/"); err != nil || !c.All() {
			t.Errorf("call %d, %s: %+v, %v, want all conditions", nth+1, call.Op, c, err)
		}
	}
}
