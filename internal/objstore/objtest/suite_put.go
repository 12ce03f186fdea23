package objtest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
)

func putIfAbsentCases(rounds int) []testCase {
	return []testCase{
		{"ErrExists if the name is taken and the object there is untouched", func(t *testing.T, s objstore.Store) {
			info := mustPut(t, s, "t/a", []byte("first"))
			for _, data := range []string{"other", "first", ""} {
				_, err := s.PutIfAbsent(t.Context(), "t/a", []byte(data))
				wantError(t, "PutIfAbsent of a taken name", err, objstore.ErrExists)
			}
			wantObject(t, s, info, []byte("first"))
			wantKeys(t, s, "t/", "", "t/a")
		}},
		{"one of 16 parallel calls wins", func(t *testing.T, s objstore.Store) { putOneWinner(t, s, rounds) }},
		{"parallel calls in new directories all succeed", putNewDirectories},
		{"whole or not at all", putNeverTorn},
		{"the caller keeps its bytes", func(t *testing.T, s objstore.Store) {
			data := []byte("12345")
			info := mustPut(t, s, "t/a", data)
			clear(data)
			wantObject(t, s, info, []byte("12345"))
		}},
		{"makes a removed object anew", func(t *testing.T, s objstore.Store) {
			mustPut(t, s, "t/a", []byte("first"))
			if err := s.Delete(t.Context(), "t/a"); err != nil {
				t.Fatalf("Delete = %v, want nil", err)
			}
			wantObject(t, s, mustPut(t, s, "t/a", []byte("again")), []byte("again"))
		}},
		{"leaves no other object behind", func(t *testing.T, s objstore.Store) {
			race(parallel, func(i int) { _, _ = s.PutIfAbsent(t.Context(), fmt.Sprintf("t/%d", i%2), []byte("x")) })
			wantKeys(t, s, "t/", "", "t/0", "t/1")
		}},
	}
}

func putOneWinner(t *testing.T, s objstore.Store, rounds int) {
	for round := range rounds {
		key := fmt.Sprintf("t/%d/manifest", round)
		var infos [parallel]objstore.Info
		var errs [parallel]error
		race(parallel, func(i int) {
			infos[i], errs[i] = s.PutIfAbsent(t.Context(), key, fmt.Appendf(nil, "writer %d", i))
		})
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil:
				t.Errorf("round %d: writers %d and %d both succeeded, want one", round, winner, i)
			case !errors.Is(err, objstore.ErrExists):
				t.Errorf("round %d: a loser got %v, want ErrExists", round, err)
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: nobody succeeded: %v", round, errs)
		}
		wantObject(t, s, infos[winner], fmt.Appendf(nil, "writer %d", winner))
	}
}

func putNewDirectories(t *testing.T, s objstore.Store) {
	race(parallel, func(i int) {
		key := fmt.Sprintf("new/%d/deep/er/%d", i%4, i)
		if _, err := s.PutIfAbsent(t.Context(), key, []byte(key)); err != nil {
			t.Errorf("PutIfAbsent(%q) = %v, want nil", key, err)
		}
	})
	if got := len(keysOf(t, s, "new/", "")); got != parallel {
		t.Errorf("%d objects are listed, want %d", got, parallel)
	}
}

// putNeverTorn reads an object while it is being put: it is absent or complete, to Get and to Head.
func putNeverTorn(t *testing.T, s objstore.Store) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for round := range 5 {
		key := fmt.Sprintf("t/%d", round)
		var written atomic.Bool
		race(4, func(i int) {
			if i == 0 {
				mustPutFrom(t, s, key, data)
				written.Store(true)
				return
			}
			for last := false; !last; {
				last = written.Load()
				got, _, err := s.Get(t.Context(), key, 0)
				if (err != nil || !bytes.Equal(got, data)) && (last || !errors.Is(err, objstore.ErrNotFound)) {
					t.Errorf("Get beside a put = %d bytes, %v, want all %d or ErrNotFound before the put returned", len(got), err, len(data))
				}
				info, err := s.Head(t.Context(), key)
				if err == nil && info.Size != int64(len(data)) {
					t.Errorf("Head beside a put: %d bytes, want %d", info.Size, len(data))
				}
			}
		})
	}
}

// mustPutFrom is mustPut for a goroutine that is not the test's own.
func mustPutFrom(t *testing.T, s objstore.Store, key string, data []byte) {
	if _, err := s.PutIfAbsent(t.Context(), key, data); err != nil {
		t.Errorf("PutIfAbsent(%q) = %v, want nil", key, err)
	}
}

func putIfCases(rounds int) []testCase {
	return []testCase{
		{"replaces the object with that ETag", func(t *testing.T, s objstore.Store) {
			old := mustPut(t, s, "t/a", []byte("first"))
			info, err := s.PutIf(t.Context(), "t/a", old.ETag, []byte("second"))
			if err != nil {
				t.Fatalf("PutIf = %v, want nil", err)
			}
			if info.ETag == old.ETag {
				t.Errorf("the new object has the old one's ETag %s", info.ETag)
			}
			wantObject(t, s, info, []byte("second"))
			wantKeys(t, s, "t/", "", "t/a")
		}},
		{"ErrChanged if the object is another and nothing is replaced", func(t *testing.T, s objstore.Store) {
			old := mustPut(t, s, "t/a", []byte("first"))
			info, err := s.PutIf(t.Context(), "t/a", old.ETag, []byte("later"))
			if err != nil {
				t.Fatalf("PutIf = %v, want nil", err)
			}
			for _, etag := range []string{old.ETag, "", "*", `"nonsense"`} {
				_, err := s.PutIf(t.Context(), "t/a", etag, []byte("third"))
				wantError(t, fmt.Sprintf("PutIf with ETag %q", etag), err, objstore.ErrChanged)
			}
			wantObject(t, s, info, []byte("later"))
			wantKeys(t, s, "t/", "", "t/a")
		}},
		{"ErrChanged if the object is gone and nothing is made", func(t *testing.T, s objstore.Store) {
			old := mustPut(t, s, "t/a", []byte("first"))
			if err := s.Delete(t.Context(), "t/a"); err != nil {
				t.Fatalf("Delete = %v, want nil", err)
			}
			for _, key := range []string{"t/a", "u/v/a"} {
				_, err := s.PutIf(t.Context(), key, old.ETag, []byte("second"))
				wantError(t, "PutIf of an absent object", err, objstore.ErrChanged)
				wantAbsent(t, s, key)
			}
		}},
		{"one of 16 parallel calls wins", func(t *testing.T, s objstore.Store) { putIfOneWinner(t, s, (rounds+1)/2) }},
		{"readers see the old object or the new one", putIfNeverTorn},
	}
}

func putIfOneWinner(t *testing.T, s objstore.Store, rounds int) {
	info := mustPut(t, s, "t/tag", []byte("start"))
	for round := range rounds {
		var winners sync.Map
		race(parallel, func(i int) {
			next, err := s.PutIf(t.Context(), "t/tag", info.ETag, fmt.Appendf(nil, "round %d writer %d", round, i))
			if err == nil {
				winners.Store(i, next)
			} else if !errors.Is(err, objstore.ErrChanged) {
				t.Errorf("round %d: a loser got %v, want ErrChanged", round, err)
			}
		})
		count := 0
		for i, next := range winners.Range {
			count++
			info = next.(objstore.Info)
			wantObject(t, s, info, fmt.Appendf(nil, "round %d writer %d", round, i))
		}
		if count != 1 {
			t.Fatalf("round %d: %d writers succeeded, want 1", round, count)
		}
	}
}

// putIfNeverTorn replaces objects of one repeated byte, each of its own length, while readers check that the bytes they get are
// of one object and that the description belongs to it.
func putIfNeverTorn(t *testing.T, s objstore.Store) {
	const replacements = 20
	body := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 100_000+n) }
	first := mustPut(t, s, "t/tag", body(0))
	var done atomic.Bool
	race(4, func(i int) {
		if i == 0 {
			defer done.Store(true)
			for n, etag := 1, first.ETag; n <= replacements; n++ {
				info, err := s.PutIf(t.Context(), "t/tag", etag, body(n))
				if err != nil {
					t.Errorf("PutIf %d = %v, want nil", n, err)
					return
				}
				etag = info.ETag
			}
			return
		}
		for !done.Load() {
			data, info, err := s.Get(t.Context(), "t/tag", 0)
			if err != nil {
				t.Errorf("Get beside replacements = %v, want nil", err)
				return
			}
			if n := len(data) - 100_000; info.Size != int64(len(data)) || n < 0 || !bytes.Equal(data, body(n)) {
				t.Errorf("Get beside replacements: %d bytes described as %d, not of one object", len(data), info.Size)
			}
		}
	})
}
