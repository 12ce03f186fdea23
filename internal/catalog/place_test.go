package catalog_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/mem"
)

// places are two roots in the same store, s3://lake/hot and s3://lake/cold, and one inside the first, s3://lake/hot/own.
type places struct {
	*server
	files objstore.Store
}

func newPlaces(t *testing.T) places {
	t.Helper()
	p := places{files: mem.New()}
	p.server = newLake(t).server(t, p.allow(t, "s3://lake/hot", "s3://lake/cold", "s3://lake/hot/own"))
	return p
}

// allow makes a server allow roots in the places' store.
func (p places) allow(t *testing.T, roots ...string) func(*catalog.Options) {
	return func(o *catalog.Options) {
		o.Roots = nil
		for _, uri := range roots {
			loc, err := lance.ParseLocation(uri)
			if err != nil {
				t.Fatal(err)
			}
			o.Roots = append(o.Roots, catalog.Root{Location: loc, Objects: p.files})
		}
	}
}

// dataset writes what can be registered.
func (p places) dataset(t *testing.T, location string) {
	t.Helper()
	loc, err := lance.ParseLocation(location)
	if err != nil {
		t.Fatal(err)
	}
	key := lance.ManifestKey(loc.Key(), lance.Main, 1, lance.SchemeV2)
	if _, err := p.files.PutIfAbsent(t.Context(), key, lancetest.Manifest(lancetest.Spec{Version: 1})); err != nil {
		t.Fatal(err)
	}
}

// at declares a table at a location, "" for wherever it goes, and returns where it is.
func (p places) at(id, location string) (string, error) {
	req := &api.DeclareTableRequest{Target: api.At(strings.Split(id, "/")...)}
	if location != "" {
		req.Location = &location
	}
	resp, err := p.DeclareTable(context.Background(), req)
	if err != nil {
		return "", err
	}
	return *resp.Location, nil
}

// space makes a namespace whose tables go to a location, "" for one that does not say.
func (p places) space(id, location string) (map[string]string, error) {
	req := &api.CreateNamespaceRequest{Target: api.At(strings.Split(id, "/")...)}
	if location != "" {
		req.Properties = map[string]string{"location": location}
	}
	resp, err := p.CreateNamespace(context.Background(), req)
	if err != nil {
		return nil, err
	}
	return resp.Properties, nil
}

// TestOverlap: a location that is a table's, or lies in it or around it, is refused in every spelling and on every path that sets one;
// one beside it is not (cases E9, F1).
func TestOverlap(t *testing.T) {
	t.Parallel()
	overlaps := []string{
		"s3://lake/hot/a/t", "s3://lake/hot/a/t/", "s3://lake/hot//a/t", "s3://lake//hot/a//t//", "S3://lake/hot/a/t", "s3a://lake/hot/a/t", "S3N://lake/hot/a/t",
		"s3://lake/hot/a/%74", "s3://lake/%68ot/a/t", "a/t", "a//t/",
		"s3://lake/hot/a/t/x", "s3a://lake/hot/a/t/x/y/", "s3://lake/hot/a/t/_versions", "a/t/%78",
		"s3://lake/hot/a", "s3a://lake//hot/a/", "a",
	}
	beside := []string{"s3://lake/hot/a/t2", "s3://lake/hot/a/t.lance", "s3://lake/hot/a/T", "s3://lake/hot/a/t-", "s3://lake/hot/b", "s3://lake/cold/a/t", "s3://lake/hot/a/%2574"}
	for _, location := range slices.Concat(overlaps, beside) {
		want := slices.Contains(beside, location)
		t.Run(location, func(t *testing.T) {
			t.Parallel()
			for _, way := range []struct {
				name string
				set  func(places) error
			}{
				{"declare", func(p places) error { _, err := p.at("u", location); return err }},
				{"register", func(p places) error {
					_, err := p.RegisterTable(t.Context(), &api.RegisterTableRequest{Target: api.At("u"), Location: location})
					return err
				}},
				{"batch", func(p places) error {
					_, err := p.mixed(t.Context(), api.CommitTableOperation{DeclareTable: &api.DeclareTableRequest{Target: api.At("u"), Location: &location}})
					return err
				}},
			} {
				p := newPlaces(t)
				if _, err := p.at("t", "s3://lake/hot/a/t"); err != nil {
					t.Fatal(err)
				}
				if way.name == "register" {
					p.dataset(t, absolute(location))
				}
				err := way.set(p)
				if want && err != nil {
					t.Errorf("%s: %v, want success", way.name, err)
				}
				if !want {
					wantCode(t, err, api.CodeTableAlreadyExists)
				}
			}
		})
	}
}

// absolute is a location that may be given relative to the first root.
func absolute(location string) string {
	if strings.Contains(location, "://") {
		return location
	}
	return "s3://lake/hot/" + location
}

// TestOutside: a table lies below an allowed root, not at one, around one, or at its marker.
func TestOutside(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	for _, location := range []string{
		"s3://lake", "s3://lake/hot", "s3://lake/cold/", "s3://lake/hotter/t", "s3://other/hot/t", "gs://lake/hot/t", "/lake/hot/t", "s3://lake/hot/../x", "..", "",
		"s3://lake/hot/own", "own", "s3://lake/hot/.lancerest", "s3://lake/cold/.lancerest/t", "s3://lake/hot/own/.lancerest",
	} {
		_, err := p.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At("t"), Location: &location})
		wantCode(t, err, api.CodeInvalidInput)
		_, err = p.RegisterTable(t.Context(), &api.RegisterTableRequest{Target: api.At("t"), Location: location})
		wantCode(t, err, api.CodeInvalidInput)
	}
}

// TestNamespacePlace: new tables go where their namespace says, or the nearest one above it that says anything.
func TestNamespacePlace(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	for _, ns := range []struct{ id, location string }{
		{"warm", "S3A://lake//cold/warm/"}, {"warm/deep", ""}, {"warm/deep/deeper", ""}, {"warm/hot", "s3://lake/hot"}, {"plain", ""}, {"relative", "team a"},
		{"own", "s3://lake/hot/own"}, {"same", "s3://lake/cold/warm"},
	} {
		if _, err := p.space(ns.id, ns.location); err != nil {
			t.Fatalf("%s at %q: %v", ns.id, ns.location, err)
		}
	}
	for id, want := range map[string]string{
		"warm/t": "s3://lake/cold/warm", "warm/deep/t": "s3://lake/cold/warm", "warm/deep/deeper/t": "s3://lake/cold/warm", "warm/hot/t": "s3://lake/hot",
		"plain/t": "s3://lake/hot", "t": "s3://lake/hot", "relative/t": "s3://lake/hot/team%20a", "own/t": "s3://lake/hot/own", "same/t": "s3://lake/cold/warm",
	} {
		got, err := p.at(id, "")
		if err != nil || path.Dir(strings.TrimPrefix(got, "s3:/")) != strings.TrimPrefix(want, "s3:/") {
			t.Errorf("%s lies at %s, %v; want it right below %s", id, got, err, want)
		}
		ids := strings.Split(id+"2", "/")
		batch, err := p.mixed(t.Context(), api.CommitTableOperation{DeclareTable: &api.DeclareTableRequest{Target: api.At(ids...)}})
		if err != nil {
			t.Fatal(err)
		}
		if got := *batch.Results[0].DeclareTable.Location; path.Dir(strings.TrimPrefix(got, "s3:/")) != strings.TrimPrefix(want, "s3:/") {
			t.Errorf("%s, declared in a batch, lies at %s; want it right below %s", id, got, want)
		}
	}
	described, err := p.DescribeNamespace(t.Context(), &api.DescribeNamespaceRequest{Target: api.At("warm")})
	if diff := cmp.Diff(map[string]string{"location": "s3://lake/cold/warm"}, described.Properties); diff != "" || err != nil {
		t.Errorf("properties, %v (-want +got):\n%s", err, diff)
	}
	below, err := p.DescribeNamespace(t.Context(), &api.DescribeNamespaceRequest{Target: api.At("warm", "deep")})
	if len(below.Properties) != 0 || err != nil {
		t.Errorf("a namespace that says nothing has properties %v, %v", below.Properties, err)
	}
	// A table that is renamed into another namespace stays where it is.
	if _, err := p.RenameTable(t.Context(), &api.RenameTableRequest{Target: api.At("t"), NewTableName: "moved", NewNamespaceID: &[]string{"warm"}}); err != nil {
		t.Fatal(err)
	}
	moved, err := p.DescribeTable(t.Context(), &api.DescribeTableRequest{Target: api.At("warm", "moved")})
	if err != nil || !strings.HasPrefix(*moved.Location, "s3://lake/hot/") {
		t.Errorf("the renamed table lies at %v, %v", moved, err)
	}
}

// TestNamespacePlaceRefused: a namespace's tables cannot go outside the roots or into a table, and no table can then lie around their place.
func TestNamespacePlaceRefused(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	if _, err := p.at("t", "s3://lake/hot/t"); err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{
		"s3://lake", "s3://lake/warmer", "s3://other/hot", "/srv", "..", "", "s3://lake/hot/.lancerest", "s3://lake/cold/.lancerest/x", "ftp://x/y",
		"s3://lake/hot/t", "s3a://lake/hot//t/", "s3://lake/hot/%74/deep", "t",
	} {
		_, err := p.CreateNamespace(t.Context(), &api.CreateNamespaceRequest{Target: api.At("n"), Properties: map[string]string{"location": location}})
		wantCode(t, err, api.CodeInvalidInput)
	}
	if _, err := p.space("n", "s3://lake/hot/x/y"); err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{"s3://lake/hot/x/y", "s3a://lake/hot//x/%79/", "s3://lake/hot/x"} {
		_, err := p.at("u", location)
		wantCode(t, err, api.CodeTableAlreadyExists)
	}
	if _, err := p.at("u", "s3://lake/hot/x/y/u"); err != nil {
		t.Errorf("a table that is given a place where the namespace's go: %v", err)
	}
	mode := "ExistOk"
	resp, err := p.CreateNamespace(t.Context(), &api.CreateNamespaceRequest{Target: api.At("n"), Mode: &mode, Properties: map[string]string{"location": "s3://lake/cold"}})
	if err != nil || resp.Properties["location"] != "s3://lake/hot/x/y" {
		t.Errorf("a namespace that exists: %v, %v; want it as it is", resp, err)
	}
	mode = "Overwrite"
	if _, err = p.CreateNamespace(t.Context(), &api.CreateNamespaceRequest{Target: api.At("n"), Mode: &mode, Properties: map[string]string{"location": "s3://lake/cold"}}); err != nil {
		t.Fatal(err)
	}
	if got, err := p.at("n/t", ""); err != nil || !strings.HasPrefix(got, "s3://lake/cold/") {
		t.Errorf("the table lies at %s, %v; want where the namespace says now", got, err)
	}
	if got, err := p.at("v", "s3://lake/hot/x/y/v"); err != nil || got != "s3://lake/hot/x/y/v" {
		t.Errorf("%s, %v; want the place, which is nobody's now", got, err)
	}
}

// TestRootIsGone: a namespace whose place is in no allowed root any more says so, and what it has can still be seen.
func TestRootIsGone(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	if _, err := p.space("n", "s3://lake/cold/n"); err != nil {
		t.Fatal(err)
	}
	p.server = p.lake.server(t, p.allow(t, "s3://lake/hot"))
	_, err := p.at("n/t", "")
	wantCode(t, err, api.CodeInvalidTableState)
	_, err = p.mixed(t.Context(), api.CommitTableOperation{DeclareTable: &api.DeclareTableRequest{Target: api.At("n", "t")}})
	wantCode(t, err, api.CodeInvalidTableState)
	if got, err := p.at("t", ""); err != nil || !strings.HasPrefix(got, "s3://lake/hot/") {
		t.Errorf("another namespace's table lies at %s, %v", got, err)
	}
}

// TestRootInTable: a place inside a table does not become a root.
func TestRootInTable(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	if _, err := p.at("t", "s3://lake/cold/t"); err != nil {
		t.Fatal(err)
	}
	for root, want := range map[string]bool{"s3://lake/cold/t": false, "s3://lake/cold/t/x": false, "s3://lake/cold/t2": true} {
		o := catalog.Options{Store: p.lake.state}
		p.allow(t, "s3://lake/hot", "s3://lake/cold", root)(&o)
		_, err := catalog.New(t.Context(), o)
		if (err == nil) != want {
			t.Errorf("root %s: %v, want allowed %t", root, err, want)
		}
	}
}

// TestOverlapRace: of tables that are declared at once, on two servers, at places that overlap, one is.
func TestOverlapRace(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	other := places{server: p.lake.server(t, p.allow(t, "s3://lake/hot", "s3://lake/cold")), files: p.files}
	locations := []string{"s3://lake/cold/a", "s3://lake/cold/a/b", "s3://lake/cold/a/b/c", "s3a://lake/cold//a/"}
	for range 10 {
		name := uuid.NewString()
		var won, lost atomic.Int64
		var wg sync.WaitGroup
		for i, location := range locations {
			for j, s := range []places{p, other} {
				id := name + string(rune('a'+2*i+j))
				location := strings.Replace(location, "/cold", "/cold/"+name, 1)
				wg.Go(func() {
					_, err := s.at(id, location)
					switch {
					case err == nil:
						won.Add(1)
					case api.CodeOf(err) == api.CodeTableAlreadyExists:
						lost.Add(1)
					default:
						t.Errorf("%s: %v", location, err)
					}
				})
			}
		}
		wg.Wait()
		if won.Load() != 1 || lost.Load() != 7 {
			t.Errorf("%d of 8 were declared and %d refused, want 1 and 7", won.Load(), lost.Load())
		}
	}
}

// TestPurgeStaysInside: what is removed with a table is its own directory, and nothing whose name begins with that, nor the marker.
func TestPurgeStaysInside(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	for _, id := range []string{"t", "t2", "t.lance"} {
		p.dataset(t, "s3://lake/cold/"+id)
		if _, err := p.RegisterTable(t.Context(), &api.RegisterTableRequest{Target: api.At(id), Location: "s3://lake/cold/" + id}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.DropTable(t.Context(), &api.DropTableRequest{Target: api.At("t")}); err != nil {
		t.Fatal(err)
	}
	if n := p.runJobs(t, catalog.JobPurge); n != 1 {
		t.Errorf("%d purges, want 1", n)
	}
	var left []string
	for info, err := range p.files.List(t.Context(), "cold/", "") {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, info.Key)
	}
	final := lance.ManifestName(1, lance.SchemeV2)
	want := []string{"cold/.lancerest", "cold/t.lance/_versions/" + final, "cold/t2/_versions/" + final}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}
