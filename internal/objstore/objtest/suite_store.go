package objtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
)

// storeCases are those that are about all methods together.
func storeCases() []testCase {
	return []testCase{
		{"keys are raw", func(t *testing.T, s objstore.Store) { keysAreRaw(t, s, oddNames()) }},
		{"keys with a backslash are raw", func(t *testing.T, s objstore.Store) { keysAreRaw(t, s, []string{`\`, `a\b`, `\f`}) }},
		{"keys differ by case", func(t *testing.T, s objstore.Store) {
			lower := mustPut(t, s, "t/name", []byte("lower"))
			upper := mustPut(t, s, "t/NAME", []byte("upper"))
			wantObject(t, s, lower, []byte("lower"))
			wantObject(t, s, upper, []byte("upper"))
		}},
		{"ErrInvalidKey if a key is not of the contract's form", invalidKeys},
		{"ErrInvalidKey if a prefix is not of the contract's form", invalidPrefixes},
		{"a context that has ended stops every call before its effect", endedContext},
		{"any history gives the answers of a map", historyMatchesMap},
	}
}

// oddNames are names that a URL, a shell or a lazy path function would change.
func oddNames() []string {
	long := strings.Repeat("long-", 40) // 200 bytes
	return []string{
		"a b", " a ", "%", "%2F", "%2e%2e", "a%20b", "$", "t1$t2", "+", "a+b", "#", "?q=1&r", "~", "*", "[x]", "'\"`", "a:b", "a@b=c,d;e",
		"...", ".hidden", "-", "ä", "a\u0308", "日本語", "🐘", "\u202e", "\t", "\n", long, "1.manifest-0d5e0b5c-0f3e-4c39-9d1c-6a7f5d3c2b1a",
	}
}

// keysAreRaw takes keys with these names through every method.
func keysAreRaw(t *testing.T, s objstore.Store, names []string) {
	var keys []string
	for _, name := range names {
		for _, key := range []string{"k/" + name, "d/" + name + "/f"} {
			info := mustPut(t, s, key, []byte(key))
			wantObject(t, s, info, []byte(key))
			_, err := s.PutIfAbsent(t.Context(), key, nil)
			wantError(t, fmt.Sprintf("PutIfAbsent(%q) again", key), err, objstore.ErrExists)
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	got := append(keysOf(t, s, "d/", ""), keysOf(t, s, "k/", "")...)
	slices.Sort(got)
	if !slices.Equal(got, keys) {
		t.Errorf("List = %q, want %q", got, keys)
	}
	for _, name := range names {
		if removed, err := s.DeleteTree(t.Context(), "d/"+name+"/"); err != nil || removed != 1 {
			t.Errorf("DeleteTree(%q) = %d, %v, want 1, nil", "d/"+name+"/", removed, err)
		}
		if err := s.Delete(t.Context(), "k/"+name); err != nil {
			t.Errorf("Delete(%q) = %v, want nil", "k/"+name, err)
		}
	}
	wantKeys(t, s, "d/", "")
	wantKeys(t, s, "k/", "")
}

func invalidKeys(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	info := mustPut(t, s, "t/a", []byte("x"))
	for _, key := range []string{"", "/", "/t/a", "t/a/", "t//a", ".", "..", "t/./a", "t/../t/a", "../a", "t/..", "t/a\x00b"} {
		_, _, err := s.Get(ctx, key, 0)
		wantError(t, fmt.Sprintf("Get(%q)", key), err, objstore.ErrInvalidKey)
		_, err = s.Head(ctx, key)
		wantError(t, fmt.Sprintf("Head(%q)", key), err, objstore.ErrInvalidKey)
		_, err = s.PutIfAbsent(ctx, key, nil)
		wantError(t, fmt.Sprintf("PutIfAbsent(%q)", key), err, objstore.ErrInvalidKey)
		_, err = s.PutIf(ctx, key, info.ETag, nil)
		wantError(t, fmt.Sprintf("PutIf(%q)", key), err, objstore.ErrInvalidKey)
		wantError(t, fmt.Sprintf("DeleteIf(%q)", key), s.DeleteIf(ctx, key, info.ETag), objstore.ErrInvalidKey)
		wantError(t, fmt.Sprintf("Delete(%q)", key), s.Delete(ctx, key), objstore.ErrInvalidKey)
	}
	wantObject(t, s, info, []byte("x"))
}

func invalidPrefixes(t *testing.T, s objstore.Store) {
	info := mustPut(t, s, "t/a/b", []byte("x"))
	for _, prefix := range []string{"", "/", "t", "t/a", "/t/a/", "//", "t//", "t/a//", "./", "../", "t/a/../", "t/./", "t/\x00/"} {
		_, err := s.DeleteTree(t.Context(), prefix)
		wantError(t, fmt.Sprintf("DeleteTree(%q)", prefix), err, objstore.ErrInvalidKey)
		wantError(t, fmt.Sprintf("List(%q)", prefix), listError(t.Context(), s, prefix), objstore.ErrInvalidKey)
	}
	wantObject(t, s, info, []byte("x"))
}

// listError returns the error that a listing ends with.
func listError(ctx context.Context, s objstore.Store, prefix string) error {
	for _, err := range s.List(ctx, prefix, "") {
		if err != nil {
			return err
		}
	}
	return nil
}

func endedContext(t *testing.T, s objstore.Store) {
	info := mustPut(t, s, "r/t/a", []byte("x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := s.Get(ctx, "r/t/a", 0)
	wantError(t, "Get", err, context.Canceled)
	_, err = s.Head(ctx, "r/t/a")
	wantError(t, "Head", err, context.Canceled)
	_, err = s.PutIfAbsent(ctx, "r/t/b", nil)
	wantError(t, "PutIfAbsent", err, context.Canceled)
	_, err = s.PutIf(ctx, "r/t/a", info.ETag, nil)
	wantError(t, "PutIf", err, context.Canceled)
	wantError(t, "DeleteIf", s.DeleteIf(ctx, "r/t/a", info.ETag), context.Canceled)
	wantError(t, "Delete", s.Delete(ctx, "r/t/a"), context.Canceled)
	wantError(t, "List", listError(ctx, s, "r/t/"), context.Canceled)
	_, err = s.DeleteTree(ctx, "r/t/")
	wantError(t, "DeleteTree", err, context.Canceled)
	wantKeys(t, s, "r/t/", "", "r/t/a")
	wantObject(t, s, info, []byte("x"))
}

// history is a random run of calls on a store beside the map that it should behave like.
type history struct {
	store objstore.Store
	model map[string]objstore.Info
	data  map[string]string
	etags []string // all that were ever given out
}

func historyMatchesMap(t *testing.T, s objstore.Store) {
	h := history{store: s, model: map[string]objstore.Info{}, data: map[string]string{}, etags: []string{`"none"`}}
	random := rand.New(rand.NewPCG(3, 5))
	keys := []string{"r/a", "r/b/a", "r/b/c/a", "r/b-/a"}
	for step := range 300 {
		key := keys[random.IntN(len(keys))]
		etag := h.etags[random.IntN(len(h.etags))]
		if random.IntN(2) == 0 {
			etag = h.model[key].ETag
		}
		h.step(t, random.IntN(12), key, etag, fmt.Sprintf("step %d", step))
		if t.Failed() {
			t.Fatalf("the history went wrong at step %d", step)
		}
	}
}

// step makes one call and the same change to the model.
func (h *history) step(t *testing.T, op int, key, etag, data string) {
	ctx := t.Context()
	current, there := h.model[key]
	matches := there && current.ETag == etag
	switch op {
	case 0, 1, 2, 3:
		info, err := h.store.PutIfAbsent(ctx, key, []byte(data))
		h.put(t, "PutIfAbsent", info, data, outcome{err, !there, objstore.ErrExists})
	case 4, 5:
		info, err := h.store.PutIf(ctx, key, etag, []byte(data))
		h.put(t, "PutIf", info, data, outcome{err, matches, objstore.ErrChanged})
	case 6, 7:
		err := h.store.DeleteIf(ctx, key, etag)
		if (outcome{err, matches, objstore.ErrChanged}).ok(t, "DeleteIf") {
			delete(h.model, key)
		}
	case 8:
		if (outcome{h.store.Delete(ctx, key), true, nil}).ok(t, "Delete") {
			delete(h.model, key)
		}
	case 9:
		_, err := h.store.DeleteTree(ctx, "r/b/")
		if (outcome{err, true, nil}).ok(t, "DeleteTree") {
			maps.DeleteFunc(h.model, func(key string, _ objstore.Info) bool { return strings.HasPrefix(key, "r/b/") })
		}
	case 10:
		// Their order is for the tests of List.
		if got, want := slices.Sorted(slices.Values(keysOf(t, h.store, "r/", ""))), slices.Sorted(maps.Keys(h.model)); !slices.Equal(got, want) {
			t.Errorf("List = %q, want %q", got, want)
		}
	default:
		if there {
			wantObject(t, h.store, current, []byte(h.data[key]))
		} else {
			wantAbsent(t, h.store, key)
		}
	}
}

// put checks a put and notes its object.
func (h *history) put(t *testing.T, call string, info objstore.Info, data string, o outcome) {
	if !o.ok(t, call) {
		return
	}
	h.model[info.Key] = info
	h.data[info.Key] = data
	h.etags = append(h.etags, info.ETag)
}

// outcome is what a call answered, whether the model says that it succeeds, and its error if not.
type outcome struct {
	err     error
	succeed bool
	refusal error
}

// ok reports whether the call succeeded, and as it should.
func (o outcome) ok(t *testing.T, call string) bool {
	t.Helper()
	switch {
	case o.succeed && o.err != nil:
		t.Errorf("%s = %v, want nil", call, o.err)
	case !o.succeed && !errors.Is(o.err, o.refusal):
		t.Errorf("%s = %v, want %v", call, o.err, o.refusal)
	}
	return o.succeed && o.err == nil
}
