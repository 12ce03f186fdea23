package catalog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/check"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// distant says that the storage is far away, as object stores are.
func distant(o *catalog.Options) { o.Roots[0].Distant = true }

// TestRequests counts what each operation asks of a distant storage. A commit reads what is staged, looks at the final name and puts, once
// each, and nothing lists but the listing of versions.
func TestRequests(t *testing.T) {
	t.Parallel()
	const versions = 40
	s := newServer(t, distant)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, versions)
	var batch []staged
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		batch = append(batch, s.lake.stage(t, s.declare(t, name), 1))
	}
	ctx := context.Background()
	list := func(limit int64, descending bool) func() error {
		return func() error {
			_, err := s.ListTableVersions(ctx, &api.ListTableVersionsRequest{Target: api.At("t"), Page: api.Page{Limit: &limit}, Descending: &descending})
			return err
		}
	}
	describe := func(v *int64) func() error {
		return func() error {
			_, err := s.DescribeTableVersion(ctx, &api.DescribeTableVersionRequest{Target: api.At("t"), Version: v})
			return err
		}
	}
	newest, oldest := int64(versions), int64(1)
	for _, c := range []struct {
		name string
		do   func() error
		want map[objtest.Op]int
	}{
		{"describe a table", func() error {
			_, err := s.DescribeTable(ctx, &api.DescribeTableRequest{Target: api.At("t")})
			return err
		}, nil},
		{"describe the latest version by its number", describe(&newest), nil},
		{"describe an old version", describe(&oldest), map[objtest.Op]int{objtest.OpHead: 1}},
		{"describe the latest version", describe(nil), map[objtest.Op]int{objtest.OpHead: 1}},
		{"list the latest version", list(1, true), map[objtest.Op]int{objtest.OpHead: 1}},
		{"list all versions", list(1000, false), map[objtest.Op]int{objtest.OpHead: 1, objtest.OpList: 1}},
		{"list ten versions in the middle", func() error {
			ten := int64(10)
			page := api.Page{Limit: &ten}
			first, err := s.ListTableVersions(ctx, &api.ListTableVersionsRequest{Target: api.At("t"), Page: page})
			if err != nil {
				return err
			}
			page.PageToken = first.PageToken
			_, err = s.ListTableVersions(ctx, &api.ListTableVersionsRequest{Target: api.At("t"), Page: page})
			return err
		}, map[objtest.Op]int{objtest.OpList: 2}},
		{"create a version", func() error {
			_, err := s.create(ctx, s.lake.stage(t, tb, versions+1))
			return err
		}, map[objtest.Op]int{objtest.OpGet: 1, objtest.OpHead: 1, objtest.OpPutIfAbsent: 1}},
		{"create five in one batch", func() error {
			_, err := s.batch(ctx, batch...)
			return err
		}, map[objtest.Op]int{objtest.OpGet: 5, objtest.OpHead: 5, objtest.OpPutIfAbsent: 5}},
	} {
		before := len(s.objects.Calls())
		if err := c.do(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		got := map[objtest.Op]int{}
		for _, call := range s.objects.Calls()[before:] {
			got[call.Op]++
		}
		if c.want == nil {
			c.want = map[objtest.Op]int{}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: the calls of storage differ (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestBatchAsksStorageAtOnce: all that a batch reads and looks at is asked together, and then all that it puts, so that a batch of many tables
// waits as often as one of a single table.
func TestBatchAsksStorageAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t, distant)
	var batch []staged
	var before, puts []*objtest.Gate
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		sv := s.lake.stage(t, s.declare(t, name), 1)
		batch = append(batch, sv)
		before = append(before,
			s.objects.Hold(objtest.Match{Op: objtest.OpGet, Key: is(sv.ManifestPath)}, objtest.Before),
			s.objects.Hold(objtest.Match{Op: objtest.OpHead, Key: is(sv.table.final(1))}, objtest.Before))
		puts = append(puts, s.objects.Hold(putOf(sv.table.final(1)), objtest.Before))
	}
	answer := async(func() error { _, err := s.batch(context.Background(), batch...); return err })
	for _, gates := range [][]*objtest.Gate{before, puts} {
		for _, gate := range gates {
			within(t, "a request that need not wait for another", gate.Reached())
		}
		for _, gate := range gates {
			gate.Release()
		}
	}
	if err := within(t, "the answer", answer); err != nil {
		t.Error(err)
	}
}

// TestListedVersionsAreTheirOwn: what a listing shows is believed only where it is just what was published. The rest is looked at.
func TestListedVersionsAreTheirOwn(t *testing.T) {
	t.Parallel()
	s := newServer(t, distant)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 12)
	// As after a client's cleanup, of the first, the last but one, and some between.
	for _, v := range []int64{1, 4, 5, 11} {
		s.lake.remove(t, tb.final(v))
	}
	// Somebody put other bytes in a place that became free.
	s.lake.bypass(t, tb, 4)
	// The same bytes under a new ETag, as after a restore from a backup.
	data, _, err := s.lake.objects.Get(context.Background(), tb.final(8), 0)
	if err != nil {
		t.Fatal(err)
	}
	s.lake.remove(t, tb.final(8))
	s.lake.put(t, tb.final(8), data)
	s.listed(t, tb, 2, 3, 6, 7, 8, 9, 10, 12)
	if got := s.told(catalog.EventPruned); got != 1 {
		t.Errorf("%d times versions were marked as cleaned up, want once for all", got)
	}
	s.objects.Fail(objtest.Match{Op: objtest.OpList, Times: objtest.Forever}, objtest.Before, errors.New("down"))
	_, err = s.listOn(tb, lance.Main)
	wantCode(t, err, api.CodeServiceUnavailable)
}

// TestListingOfOldNames: versions named in the older scheme stand in another order in storage, and staged manifests between all of them.
func TestListingOfOldNames(t *testing.T) {
	t.Parallel()
	s := newServer(t, distant)
	tb := s.declare(t, "t")
	v1 := api.NamingV1
	for v := int64(1); v <= 12; v++ {
		sv := s.lake.stage(t, tb, v)
		if v%2 == 0 {
			sv.NamingScheme = &v1
			sv.ManifestPath = tb.dir + "/_versions/" + lance.ManifestName(lance.VersionNumber(v), lance.SchemeV1) + "-x"
			s.lake.put(t, sv.ManifestPath, sv.data)
		}
		s.mustCreate(t, sv)
	}
	s.listed(t, tb, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	s.lake.remove(t, tb.dir+"/_versions/10.manifest")
	s.lake.remove(t, tb.final(3))
	s.listed(t, tb, 1, 2, 4, 5, 6, 7, 8, 9, 11, 12)
}

// TestCheckListsAndLooksAtNothingElse: a check of what is in order costs listings, and no look at each version.
func TestCheckListsAndLooksAtNothingElse(t *testing.T) {
	t.Parallel()
	s := newServer(t, distant)
	s.fill(t, s.declare(t, "t"), 1, 30)
	before := len(s.objects.Calls())
	sum, err := s.Check(context.Background(), check.Options{StagedAge: 100 * 365 * 24 * time.Hour, Report: func(f check.Finding) { t.Errorf("found %+v", f) }})
	if err != nil || sum.Versions != 30 {
		t.Fatalf("%+v, %v", sum, err)
	}
	heads := 0
	for _, call := range s.objects.Calls()[before:] {
		if call.Op == objtest.OpHead || call.Op == objtest.OpGet {
			heads++
		}
	}
	if heads > 3 {
		t.Errorf("%d objects were looked at, want the root's marker and little else", heads)
	}
}
