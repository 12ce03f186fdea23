package catalog_test

import (
	"context"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// TestAdoptionComesBeforeRefusal holds rule C9: a bypassing writer took N+1, so a client that saw it in storage asks for N+2, which
// the rows alone would refuse.
func TestAdoptionComesBeforeRefusal(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 2)
	foreign := s.lake.bypass(t, tb, 3)
	next := s.lake.stage(t, tb, 4)
	s.mustCreate(t, next)
	s.listed(t, tb, 1, 2, 3, 4)
	s.shows(t, tb, 3, foreign)
	s.shows(t, tb, 4, next.data)
	if n := s.told(catalog.EventAdopted); n != 1 {
		t.Errorf("%d adoptions were told of", n)
	}
	// Where nothing is to adopt the refusal stands.
	_, err := s.create(context.Background(), s.lake.stage(t, tb, 6))
	wantCode(t, err, api.CodeConcurrentModification, "is 4")
}

// TestConflictWithABypassingWriter asks for the very number that a bypassing writer took: its version is adopted, then the conflict
// is answered (C4, C8, C9).
func TestConflictWithABypassingWriter(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	s.fill(t, a, 1, 1)
	foreign := s.lake.bypass(t, a, 2)
	_, err := s.batch(context.Background(), s.lake.stage(t, b, 1), s.lake.stage(t, a, 2))
	wantCode(t, err, api.CodeConcurrentModification, "entries[1]", `table "a"`, "version 2")
	s.listed(t, a, 1, 2)
	s.listed(t, b)
	s.shows(t, a, 2, foreign)
	s.lake.holds(t, b.final(1), nil)
	if n := s.Counters().Aborts.Load(); n != 0 {
		t.Errorf("%d transactions were aborted: the look at the final name comes before reserving", n)
	}
}

// TestDescribeAdopts looks for unknown versions in storage, above the head, below it, and of a table that has none (C9).
func TestDescribeAdopts(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb, fresh := s.declare(t, "t"), s.declare(t, "fresh")
	s.fill(t, tb, 1, 1)
	three := s.lake.bypass(t, tb, 3)
	s.shows(t, tb, 3, three)
	// Two was not there when three was adopted. Another writer's restored copy appears.
	two := s.lake.bypass(t, tb, 2)
	s.shows(t, tb, 2, two)
	s.listed(t, tb, 1, 2, 3)
	first := s.lake.bypass(t, fresh, 1)
	s.listed(t, fresh, 1)
	s.shows(t, fresh, 1, first)
	_, err := s.describe(context.Background(), tb, 4)
	wantCode(t, err, api.CodeTableVersionNotFound)
}

// TestOnlyManifestsAreAdopted leaves what is no manifest, or of another version than its name says, where it is: nothing may follow
// it (C9).
func TestOnlyManifestsAreAdopted(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"no manifest":     []byte("these bytes are no manifest, whatever they are"),
		"another version": lancetest.Manifest(lancetest.Spec{Version: 9, Mark: "nine"}),
		"empty":           {},
	} {
		s := newServer(t)
		tb := s.declare(t, "t")
		s.fill(t, tb, 1, 1)
		s.lake.put(t, tb.final(2), data)
		_, err := s.describe(context.Background(), tb, 2)
		wantCode(t, err, api.CodeTableVersionNotFound)
		_, err = s.create(context.Background(), s.lake.stage(t, tb, 3))
		wantCode(t, err, api.CodeConcurrentModification)
		_, err = s.create(context.Background(), s.lake.stage(t, tb, 2))
		wantCode(t, err, api.CodeInvalidTableState, tb.final(2))
		s.listed(t, tb, 1)
		s.lake.holds(t, tb.final(2), data)
		if s.told(catalog.EventSkipped) == 0 {
			t.Errorf("%s: nobody was told of the object that is in the way", name)
		}
	}
}

// TestAdoptionKeepsTheGap adopts versions that do not follow each other: clients delete old ones in storage.
func TestAdoptionKeepsTheGap(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	five, seven := s.lake.bypass(t, tb, 5), s.lake.bypass(t, tb, 7)
	s.listed(t, tb, 5, 7)
	s.shows(t, tb, 5, five)
	s.shows(t, tb, 7, seven)
	s.fill(t, tb, 8, 8)
	s.listed(t, tb, 5, 7, 8)
}

// TestAdoptedVersionsHaveTheirOwnTime takes the time of an adopted version from its manifest.
func TestAdoptedVersionsHaveTheirOwnTime(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	data := s.lake.bypass(t, tb, 1)
	got, err := s.describe(context.Background(), tb, 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := lance.ReadManifest(data)
	if err != nil {
		t.Fatal(err)
	}
	if *got.TimestampMillis != m.Timestamp.UnixMilli() || *got.ManifestSize != int64(len(data)) {
		t.Errorf("described as %+v, want time %d and size %d", got, m.Timestamp.UnixMilli(), len(data))
	}
}

// TestOutageIsNotAbsence answers 17 where storage cannot say whether a version is there: "not found" would tell a client that its
// commit failed (C9, C11).
func TestOutageIsNotAbsence(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 2)
	for op, v := range map[objtest.Op]int64{objtest.OpList: 3, objtest.OpHead: 1} {
		s.objects.Fail(objtest.Match{Op: op, Times: objtest.Forever}, objtest.Before, nil)
		_, err := s.describe(context.Background(), tb, v)
		wantCode(t, err, api.CodeServiceUnavailable)
		s.objects.Heal()
	}
	s.lake.bypass(t, tb, 3)
	s.objects.Fail(objtest.Match{Op: objtest.OpGet}, objtest.Before, nil)
	_, err := s.describe(context.Background(), tb, 3)
	wantCode(t, err, api.CodeServiceUnavailable)
	if _, err := s.describe(context.Background(), tb, 3); err != nil {
		t.Errorf("after the outage: %v", err)
	}
}

// TestPrunedVersions holds what a client's cleanup in storage means (client contract, fact 68): the versions are gone, their numbers
// are not given again, and the head stays.
func TestPrunedVersions(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 4)
	s.lake.remove(t, tb.final(1))
	s.lake.remove(t, tb.final(3))
	_, err := s.describe(context.Background(), tb, 3)
	wantCode(t, err, api.CodeTableVersionNotFound)
	s.listed(t, tb, 2, 4)
	_, err = s.create(context.Background(), s.lake.stage(t, tb, 3))
	wantCode(t, err, api.CodeConcurrentModification)
	s.lake.holds(t, tb.final(3), nil)
	s.fill(t, tb, 5, 5)
	s.listed(t, tb, 2, 4, 5)
	if n := s.told(catalog.EventPruned); n == 0 {
		t.Error("nobody was told of pruned versions")
	}
}

// TestAdoptingTwice lets two servers adopt at once: one row, no error, one version.
func TestAdoptingTwice(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	servers := []*server{l.server(t), l.server(t)}
	tb := servers[0].declare(t, "t")
	foreign := l.bypass(t, tb, 1)
	gate := servers[0].objects.Hold(objtest.Match{Op: objtest.OpGet, Key: is(tb.final(1))}, objtest.After)
	answer := async(func() error { _, err := servers[0].describe(context.Background(), tb, 1); return err })
	within(t, "the first server's read", gate.Reached())
	servers[1].shows(t, tb, 1, foreign)
	gate.Release()
	if err := within(t, "describe", answer); err != nil {
		t.Error(err)
	}
	servers[0].listed(t, tb, 1)
}
