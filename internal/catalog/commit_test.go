package catalog_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/store"
)

// TestCreatePublishes holds what a commit of one version does (C2, C6): the staged bytes stand under the final name, the answer says
// so, and everybody sees the version.
func TestCreatePublishes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	sv := s.lake.stage(t, tb, 1)
	got := s.mustCreate(t, sv)
	if got.Version != 1 || got.ManifestPath != tb.final(1) || *got.ManifestSize != int64(len(sv.data)) || *got.ETag == "" {
		t.Errorf("answer %+v", got)
	}
	// The numbers of the manifest stand beside what the writer gave.
	want := map[string]string{
		"total_rows": "0", "total_fragments": "0", "total_files_size": "0", "total_data_files": "0", "total_data_file_rows": "0",
		"total_deletion_files": "0", "total_deletion_file_rows": "0",
	}
	maps.Copy(want, sv.Metadata)
	if diff := cmp.Diff(want, got.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	s.shows(t, tb, 1, sv.data)
	s.listed(t, tb, 1)
	again, err := s.describe(context.Background(), tb, 1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("describe differs from create (-create +describe):\n%s", diff)
	}
}

// TestBatchIsAllOrNothing spoils one entry of three in every way and looks for anything that was kept of the others (C2, C5).
func TestBatchIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a, b, c := s.declare(t, "a"), s.declare(t, "b"), s.declare(t, "c")
	s.fill(t, b, 1, 1)
	for name, tc := range map[string]struct {
		spoiled func() staged
		code    api.Code
	}{
		"taken":          {func() staged { return s.lake.stage(t, b, 1) }, api.CodeConcurrentModification},
		"not the next":   {func() staged { return s.lake.stage(t, b, 3) }, api.CodeConcurrentModification},
		"no such table":  {func() staged { return s.lake.stage(t, table{id: []string{"none"}, dir: "lake/none"}, 1) }, api.CodeTableNotFound},
		"nothing staged": {func() staged { sv := s.lake.stage(t, b, 2); s.lake.remove(t, sv.ManifestPath); return sv }, api.CodeInvalidInput},
		"no manifest":    {func() staged { return s.lake.stageBytes(t, b, lance.Main, 2, []byte("not a manifest")) }, api.CodeInvalidInput},
		"other version": {func() staged {
			return s.lake.stageBytes(t, b, lance.Main, 2, lancetest.Manifest(lancetest.Spec{Version: 9, Mark: "nine"}))
		}, api.CodeInvalidInput},
		"foreign path": {func() staged { sv := s.lake.stage(t, a, 2); sv.table = b; return sv }, api.CodeInvalidInput},
	} {
		bad := tc.spoiled()
		_, err := s.batch(context.Background(), s.lake.stage(t, a, 1), bad, s.lake.stage(t, c, 1))
		wantCode(t, err, tc.code, "entries[1]")
		if t.Failed() {
			t.Fatalf("in case %q", name)
		}
		for _, tb := range []table{a, c} {
			s.listed(t, tb)
			s.lake.holds(t, tb.final(1), nil)
		}
		s.listed(t, b, 1)
		s.lake.holds(t, b.final(2), nil)
	}
	if ids := s.lake.pending(t); len(ids) != 0 {
		t.Errorf("pending transactions %v", ids)
	}
	if n := s.Counters().Aborts.Load(); n != 0 {
		t.Errorf("%d batches were reserved before they were refused", n)
	}
	good := []staged{s.lake.stage(t, a, 1), s.lake.stage(t, b, 2), s.lake.stage(t, c, 1)}
	resp, err := s.batch(context.Background(), good...)
	if err != nil {
		t.Fatal(err)
	}
	for i, sv := range good {
		s.shows(t, sv.table, sv.Version, sv.data)
		if resp.Versions[i].ManifestPath != sv.table.final(sv.Version) {
			t.Errorf("answer %d is %s", i, resp.Versions[i].ManifestPath)
		}
	}
}

// TestStagedPathIsChecked holds rule C3: what does not lie in the chain's own directory, or is not named for the version, is
// refused whatever it holds.
func TestStagedPathIsChecked(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb, other := s.declare(t, "t"), s.declare(t, "other")
	data := lancetest.Manifest(lancetest.Spec{Version: 1, Mark: "m"})
	put := func(key string) string { s.lake.put(t, key, data); return key }
	id := uuid.NewString()
	name := lance.ManifestName(1, lance.SchemeV2) + "-" + id
	good := put(tb.dir + "/_versions/" + name)
	for why, path := range map[string]string{
		"another table's":      put(other.dir + "/_versions/" + name),
		"another branch's":     put(tb.dir + "/tree/b/_versions/" + name),
		"another directory":    put(tb.dir + "/data/" + name),
		"another version's":    put(tb.dir + "/_versions/" + lance.ManifestName(2, lance.SchemeV2) + "-" + id),
		"another scheme's":     put(tb.dir + "/_versions/1.manifest-" + id),
		"final already":        tb.final(1),
		"without a suffix":     put(tb.final(1) + "-"),
		"a URI":                s.lake.root.Scheme + "://" + good,
		"with dots":            tb.dir + "/_versions/../_versions/" + name,
		"with a double slash":  tb.dir + "/_versions//" + name,
		"empty":                "",
		"another version's id": put(tb.dir + "/_versions/" + lance.ManifestName(1, lance.SchemeV2) + ".tmp"),
	} {
		sv := staged{table: tb, StagedVersion: api.StagedVersion{Version: 1, ManifestPath: path}}
		_, err := s.create(context.Background(), sv)
		if err == nil || api.CodeOf(err) != api.CodeInvalidInput || !strings.Contains(err.Error(), `table "t", version 1`) {
			t.Errorf("%s (%s): %v, want code 13 that names table and version", why, path, err)
		}
	}
	s.listed(t, tb)
	if _, err := s.batch(context.Background(), s.lake.stage(t, tb, 1), s.lake.stage(t, other, 1), s.lake.stage(t, tb, 1)); err == nil {
		t.Error("one version twice in a batch was accepted")
	} else {
		wantCode(t, err, api.CodeInvalidInput, "entries[2]", "entries[0]")
	}
	s.listed(t, tb)
}

// TestNumbersFollowTheHead holds the part of C5 that gives numbers.
func TestNumbersFollowTheHead(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	refused := func(v int64) {
		t.Helper()
		_, err := s.create(context.Background(), s.lake.stage(t, tb, v))
		wantCode(t, err, api.CodeConcurrentModification)
	}
	refused(2)
	s.fill(t, tb, 1, 2)
	refused(1)
	refused(2)
	refused(4)
	// Several of one chain in one batch follow each other.
	_, err := s.batch(context.Background(), s.lake.stage(t, tb, 3), s.lake.stage(t, tb, 5))
	wantCode(t, err, api.CodeConcurrentModification, "entries[1]")
	if _, err := s.batch(context.Background(), s.lake.stage(t, tb, 3), s.lake.stage(t, tb, 4)); err != nil {
		t.Fatal(err)
	}
	s.listed(t, tb, 1, 2, 3, 4)
}

// TestOneWinsOfMany sends many writers after one number: one row is ever reserved for a slot (C5).
func TestOneWinsOfMany(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	servers := []*server{l.server(t), l.server(t)}
	tb := servers[0].declare(t, "t")
	const writers = 8
	answers := make(chan error, writers)
	var data [writers][]byte
	for i := range writers {
		sv := l.stage(t, tb, 1)
		data[i] = sv.data
		go func() {
			_, err := servers[i%2].create(context.Background(), sv)
			answers <- err
		}()
	}
	won := 0
	for range writers {
		if err := within(t, "create", answers); err == nil {
			won++
		} else {
			wantCode(t, err, api.CodeConcurrentModification)
		}
	}
	if won != 1 {
		t.Errorf("%d writers were given version 1", won)
	}
	servers[1].listed(t, tb, 1)
}

// TestNothingIsOverwritten holds rule C6: a foreign object under the final name that appears after the look at it (C4) stays.
func TestNothingIsOverwritten(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	sv := s.lake.stage(t, tb, 1)
	gate := s.objects.Hold(putOf(tb.final(1)), objtest.Before)
	answer := async(func() error { _, err := s.create(context.Background(), sv); return err })
	within(t, "put", gate.Reached())
	foreign := s.lake.bypass(t, tb, 1)
	gate.Release()
	wantCode(t, within(t, "create", answer), api.CodeConcurrentModification, "version 1")
	s.lake.holds(t, tb.final(1), foreign)
	s.shows(t, tb, 1, foreign)
}

// TestPutWithLostAnswer holds the other half of C6: an object with equal bytes under the final name is the work of a helper, or of
// the same server's own put whose answer was lost.
func TestPutWithLostAnswer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	sv := s.lake.stage(t, tb, 1)
	s.objects.Fail(putOf(tb.final(1)), objtest.After, nil)
	_, err := s.create(context.Background(), sv)
	wantCode(t, err, api.CodeInternal, "not known")
	s.shows(t, tb, 1, sv.data)
	if n := s.Counters().Helps.Load(); n != 1 {
		t.Errorf("%d helps, want the reader's", n)
	}
}

// TestAnswerDoesNotWaitForTheStagedObject holds the end of C6: a staged manifest is removed some time after the answer, and not
// at all where its version was not committed.
func TestAnswerDoesNotWaitForTheStagedObject(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *catalog.Options) { o.StagedKeep = time.Nanosecond })
	tb := s.declare(t, "t")
	sv := s.lake.stage(t, tb, 1)
	gate := s.objects.Hold(objtest.Match{Op: objtest.OpDelete, Key: is(sv.ManifestPath)}, objtest.Before)
	defer gate.Release()
	s.mustCreate(t, sv)
	within(t, "removal of the staged manifest", gate.Reached())
	s.shows(t, tb, 1, sv.data)
	gate.Release()
	s.lake.holds(t, sv.ManifestPath, nil)
}

// TestHangUpDoesNotStopACommit holds rule C11: once reserving has begun, the end of the caller's context changes nothing.
func TestHangUpDoesNotStopACommit(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	va, vb := s.lake.stage(t, a, 1), s.lake.stage(t, b, 1)
	ctx, hangUp := context.WithCancel(context.Background())
	gate := s.objects.Hold(putOf(b.final(1)), objtest.Before)
	answer := async(func() error { _, err := s.batch(ctx, va, vb); return err })
	within(t, "put", gate.Reached())
	hangUp()
	gate.Release()
	if err := within(t, "batch", answer); err != nil {
		t.Errorf("the commit ended with %v", err)
	}
	if ids := s.lake.pending(t); len(ids) != 0 {
		t.Errorf("pending transactions %v", ids)
	}
	s.lake.holds(t, a.final(1), va.data)
	s.lake.holds(t, b.final(1), vb.data)
}

// TestOutageBeforeReserving holds the answers of C11 before any durable effect: 17, whatever the storage or the state fails at, and
// nothing is left behind.
func TestOutageBeforeReserving(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	sv := s.lake.stage(t, tb, 1)
	refused := func(what string) {
		t.Helper()
		_, err := s.create(context.Background(), sv)
		wantCode(t, err, api.CodeServiceUnavailable)
		s.objects.Heal()
		if ids := s.lake.pending(t); len(ids) != 0 {
			t.Errorf("%s: pending transactions %v", what, ids)
		}
		s.lake.holds(t, tb.final(1), nil)
	}
	s.objects.Fail(objtest.Match{Op: objtest.OpGet, Key: is(sv.ManifestPath)}, objtest.Before, nil)
	refused("read of the staged manifest")
	s.objects.Fail(objtest.Match{Op: objtest.OpHead, Key: is(tb.final(1))}, objtest.Before, nil)
	refused("look at the final name")
	s.state.beforeUpdate(func() error { return store.ErrUnavailable })
	refused("reserve")
	s.objects.Fail(objtest.Match{Op: objtest.OpGet}, objtest.Before, objstore.ErrDenied)
	_, err := s.create(context.Background(), sv)
	wantCode(t, err, api.CodePermissionDenied)
	s.mustCreate(t, sv)
}

// TestOutageAfterReserving holds the answers of C11 after it: an unknown outcome is 18, never a refusal, and describing the version
// is never "not found" meanwhile.
func TestOutageAfterReserving(t *testing.T) {
	t.Parallel()
	lost := func() error { return errors.Join(store.ErrUnknown, errors.New("the connection broke")) }
	for name, fail := range map[string]func(*server, table){
		"put":                  func(s *server, tb table) { s.objects.Fail(putOf(tb.final(1)), objtest.Before, nil) },
		"reserve, answer lost": func(s *server, _ table) { s.state.afterUpdate(lost) },
		"resolve": func(s *server, _ table) {
			s.state.afterUpdate(func() error { s.state.beforeUpdate(func() error { return store.ErrUnavailable }); return nil })
		},
		"resolve, answer lost": func(s *server, _ table) {
			s.state.afterUpdate(func() error { s.state.afterUpdate(lost); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			tb := s.declare(t, "t")
			sv := s.lake.stage(t, tb, 1)
			fail(s, tb)
			_, err := s.create(context.Background(), sv)
			wantCode(t, err, api.CodeInternal, "not known")
			if name != "resolve, answer lost" {
				s.objects.Fail(objtest.Match{Times: objtest.Forever}, objtest.Before, nil)
				_, err = s.describe(context.Background(), tb, 1)
				wantCode(t, err, api.CodeServiceUnavailable)
				s.objects.Heal()
			}
			s.shows(t, tb, 1, sv.data)
			s.listed(t, tb, 1)
			// Sent again, the request is answered as one that succeeded.
			if _, err := s.create(context.Background(), sv); err != nil {
				t.Errorf("sent again: %v", err)
			}
		})
	}
}

// TestStagedBytesMayChangeBeforeTheyArePublished reserves what was read: bytes that are put in place of the staged ones
// afterwards are never published under the reserved digest (C6).
func TestStagedBytesMayChangeBeforeTheyArePublished(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s := l.server(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
	l.abandon(t, va, vb)
	l.remove(t, vb.ManifestPath)
	l.put(t, vb.ManifestPath, lancetest.Manifest(lancetest.Spec{Version: 1, Mark: "exchanged"}))
	_, err := s.describe(context.Background(), b, 1)
	wantCode(t, err, api.CodeTableVersionNotFound)
	l.holds(t, b.final(1), nil)
	l.holds(t, a.final(1), nil)
	s.listed(t, a)
	s.listed(t, b)
}
