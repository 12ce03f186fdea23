package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/store"
)

// spec describes a manifest of a version with one fragment more than the version before.
func spec(v int64, column string) lancetest.Spec {
	s := lancetest.Spec{Version: lance.VersionNumber(v), Read: lance.VersionNumber(v - 1), Mark: fmt.Sprintf("%s-%d", column, v), Column: column}
	for range v {
		s.Fragments = append(s.Fragments, 10)
	}
	return s
}

// detailed describes a table in full and fails the test if that cannot be done.
func (s *server) detailed(t testing.TB, tb table, change ...func(*api.DescribeTableRequest)) *api.DescribeTableResponse {
	t.Helper()
	yes := true
	req := &api.DescribeTableRequest{Target: api.At(tb.id...), LoadDetailedMetadata: &yes}
	for _, f := range change {
		f(req)
	}
	resp, err := s.DescribeTable(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// summed returns what a description says in a few words.
func (s *server) summed(t testing.TB, tb table, change ...func(*api.DescribeTableRequest)) string {
	t.Helper()
	d := s.detailed(t, tb, change...)
	if d.Schema == nil || d.Stats == nil {
		return fmt.Sprintf("version %d, note %q", *d.Version, d.Context["note"])
	}
	return fmt.Sprintf("version %d, %s, %s rows in %d fragments", *d.Version, d.Schema.Fields[0].Name, d.Metadata["total_rows"], d.Stats.NumFragments)
}

func atVersion(v int64) func(*api.DescribeTableRequest) {
	return func(r *api.DescribeTableRequest) { r.Version = &v }
}

// TestDescribeReadsNothing: what a committed version's description says was noted when it was committed. No manifest is read for it, by the
// server that committed it.
func TestDescribeReadsNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	for v := int64(1); v <= 3; v++ {
		column := "id"
		if v == 3 {
			column = "key"
		}
		s.mustCreate(t, s.lake.stageBytes(t, tb, lance.Main, v, lancetest.Manifest(spec(v, column))))
	}
	s.objects.Fail(objtest.Match{Op: objtest.OpGet, Times: objtest.Forever}, objtest.Before, nil)
	for v, want := range map[int64]string{
		1: "version 1, id, 10 rows in 1 fragments", 2: "version 2, id, 20 rows in 2 fragments", 3: "version 3, key, 30 rows in 3 fragments",
	} {
		if got := s.summed(t, tb, atVersion(v)); got != want {
			t.Errorf("described as %s, want %s", got, want)
		}
		n, err := s.CountTableRows(context.Background(), &api.CountTableRowsRequest{Target: api.At("t"), Version: &v})
		if err != nil || n.Count != v*10 {
			t.Errorf("version %d: counted %v, error %v", v, n, err)
		}
	}
	if got, want := s.summed(t, tb), "version 3, key, 30 rows in 3 fragments"; got != want {
		t.Errorf("described as %s, want %s", got, want)
	}
	// How rows spread over fragments is not noted: that is read.
	_, err := s.GetTableStats(context.Background(), &api.GetTableStatsRequest{Target: api.At("t")})
	wantCode(t, err, api.CodeServiceUnavailable)
}

// TestDescribeReadsOnce: a server that has not committed a version reads one manifest for all versions of its schema, and one for what its
// statistics say, however often it is asked.
func TestDescribeReadsOnce(t *testing.T) {
	t.Parallel()
	first := newServer(t)
	tb := first.declare(t, "t")
	for v := int64(1); v <= 3; v++ {
		first.mustCreate(t, first.lake.stageBytes(t, tb, lance.Main, v, lancetest.Manifest(spec(v, "id"))))
	}
	s := first.lake.server(t)
	gets := func() int {
		n := 0
		for _, c := range s.objects.Calls() {
			if c.Op == objtest.OpGet {
				n++
			}
		}
		return n
	}
	before := gets()
	for range 3 {
		for v := int64(1); v <= 3; v++ {
			if got, want := s.summed(t, tb, atVersion(v)), fmt.Sprintf("version %d, id, %d rows in %d fragments", v, v*10, v); got != want {
				t.Errorf("described as %s, want %s", got, want)
			}
		}
		stats, err := s.GetTableStats(context.Background(), &api.GetTableStatsRequest{Target: api.At("t")})
		if err != nil {
			t.Fatal(err)
		}
		want := &api.GetTableStatsResponse{TotalBytes: 3000, NumRows: 30, FragmentStats: api.FragmentStats{
			NumFragments: 3, NumSmallFragments: 3, Lengths: api.FragmentSummary{Min: 10, Max: 10, Mean: 10, P25: 10, P50: 10, P75: 10, P99: 10},
		}}
		if diff := cmp.Diff(want, stats); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
		if indices, err := s.ListTableIndices(context.Background(), &api.ListTableIndicesRequest{Target: api.At("t")}); err != nil || len(indices.Indexes) != 0 {
			t.Errorf("indices %v, error %v", indices, err)
		}
	}
	if n := gets() - before; n != 3 {
		t.Errorf("%d manifests were read, want one each for the schema, the statistics and the indices", n)
	}
}

// TestEveryVersionIsSummedUp: versions that came by other ways than a plain commit have their numbers too.
func TestEveryVersionIsSummedUp(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.mustCreate(t, s.lake.stageBytes(t, tb, lance.Main, 1, lancetest.Manifest(spec(1, "id"))))
	s.lake.put(t, tb.final(2), lancetest.Manifest(spec(2, "id"))) // published past the catalog
	if got, want := s.summed(t, tb), "version 2, id, 20 rows in 2 fragments"; got != want {
		t.Errorf("adopted: described as %s, want %s", got, want)
	}
	// Attached from a detached version.
	detached := spec(-5, "id")
	detached.Read, detached.Fragments = 2, []uint64{1, 2, 3}
	sv := s.lake.stageBytes(t, tb, lance.Main, -5, lancetest.Manifest(detached))
	s.mustCreate(t, sv)
	attached := staged{table: tb, StagedVersion: api.StagedVersion{Version: 3, ManifestPath: lance.ManifestKey(tb.dir, lance.Main, -5, lance.SchemeV2)}}
	s.mustCreate(t, attached)
	if got, want := s.summed(t, tb), "version 3, id, 6 rows in 3 fragments"; got != want {
		t.Errorf("attached: described as %s, want %s", got, want)
	}
	// Imported with a dataset.
	other := s.lake.table("imported", "imported.lance")
	s.lake.put(t, other.final(1), lancetest.Manifest(spec(1, "id")))
	if _, err := s.RegisterTable(context.Background(), &api.RegisterTableRequest{Target: api.At("imported"), Location: other.location}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"t", "imported"} {
		list, err := s.ListTableVersions(context.Background(), &api.ListTableVersionsRequest{Target: api.At(name)})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range list.Versions {
			if v.Metadata["total_rows"] == "" || v.Metadata["total_files_size"] == "0" {
				t.Errorf("version %d of %s is listed with %v", v.Version, name, v.Metadata)
			}
		}
	}
}

// TestVersionsOfOlderReleases: rows without a summary are described from the manifest, and listed without numbers.
func TestVersionsOfOlderReleases(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.mustCreate(t, s.lake.stageBytes(t, tb, lance.Main, 1, lancetest.Manifest(spec(1, "id"))))
	ctx := context.Background()
	err := s.lake.state.Update(ctx, func(tx store.Tx) error {
		tables, err := tx.Tables([]lance.TableID{tb.id})
		if err != nil {
			return err
		}
		chain := lance.Chain{Table: tables[0].ID}
		rows, err := tx.Versions([]lance.Slot{{Chain: chain, Number: 1}})
		if err != nil {
			return err
		}
		rows[0].Summary = nil
		return errors.Join(tx.RemoveChain(chain), tx.InsertVersions(rows))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.summed(t, tb), "version 1, id, 10 rows in 1 fragments"; got != want {
		t.Errorf("described as %s, want %s", got, want)
	}
	v, err := s.describe(ctx, tb, 1)
	if err != nil || v.Metadata["total_rows"] != "" {
		t.Errorf("shown as %v, error %v", v, err)
	}
	stats, err := s.GetTableStats(ctx, &api.GetTableStatsRequest{Target: api.At("t")})
	if err != nil || stats.NumRows != 10 {
		t.Errorf("stats %v, error %v", stats, err)
	}
}

// TestDescriptionNeedsItsManifest: what must be read and is gone, or was replaced, is an error that says so, and never another version's answer.
func TestDescriptionNeedsItsManifest(t *testing.T) {
	t.Parallel()
	first := newServer(t)
	tb := first.declare(t, "t")
	first.mustCreate(t, first.lake.stageBytes(t, tb, lance.Main, 1, lancetest.Manifest(spec(1, "id"))))
	s := first.lake.server(t)
	yes := true
	describe := func() error {
		_, err := s.DescribeTable(context.Background(), &api.DescribeTableRequest{Target: api.At("t"), LoadDetailedMetadata: &yes})
		return err
	}
	s.lake.remove(t, tb.final(1))
	wantCode(t, describe(), api.CodeInvalidTableState, "gone")
	s.lake.put(t, tb.final(1), lancetest.Manifest(spec(1, "other")))
	wantCode(t, describe(), api.CodeInvalidTableState, "something else")
}

// TestUnknownFlagsAreSaid: a manifest that may mean something else than it seems is not described, whatever reads it.
func TestUnknownFlagsAreSaid(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	odd := spec(1, "id")
	odd.Flags = 1<<33 | lance.FlagDeletionFiles
	s.mustCreate(t, s.lake.stageBytes(t, tb, lance.Main, 1, lancetest.Manifest(odd)))
	d := s.detailed(t, tb)
	if d.Schema != nil || d.Stats != nil || d.Metadata != nil || *d.Version != 1 {
		t.Errorf("described as %+v", d)
	}
	_, err := s.CountTableRows(context.Background(), &api.CountTableRowsRequest{Target: api.At("t")})
	wantCode(t, err, api.CodeUnsupported, "bits 33 set", d.Context["note"])
	_, err = s.DescribeOpenTable(context.Background(), &api.DescribeTableRequest{Target: api.At("t")})
	wantCode(t, err, api.CodeInvalidTableState, "bits 33 set")
	// Fragments of unknown size cannot be counted, and everything else is told.
	uncounted := spec(2, "id")
	uncounted.Fragments = []uint64{5, 0}
	s.mustCreate(t, s.lake.stageBytes(t, tb, lance.Main, 2, lancetest.Manifest(uncounted)))
	if d := s.detailed(t, tb); d.Schema == nil || d.Stats != nil || d.Metadata["total_rows"] != "" || d.Metadata["total_fragments"] != "2" {
		t.Errorf("described as %+v", d)
	}
	_, err = s.CountTableRows(context.Background(), &api.CountTableRowsRequest{Target: api.At("t")})
	wantCode(t, err, api.CodeUnsupported, "how many rows")
}
