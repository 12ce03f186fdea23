package catalog_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/check"
)

// unmanaged are the properties of a table whose versions are storage's.
func unmanaged() map[string]string { return map[string]string{catalog.ManagedProperty: "False"} }

// says returns what describing a table says of who commits its versions: the catalog, or not.
func (s *server) says(t *testing.T, id ...string) bool {
	t.Helper()
	resp, err := s.DescribeTable(t.Context(), &api.DescribeTableRequest{Target: api.At(id...)})
	if err != nil || resp.ManagedVersioning == nil {
		t.Fatalf("DescribeTable(%q) = %+v, %v", id, resp, err)
	}
	return *resp.ManagedVersioning
}

// wantManaged fails the test unless the catalog commits a table's versions.
func wantManaged(t *testing.T, s *server, id ...string) {
	t.Helper()
	if !s.says(t, id...) {
		t.Errorf("table %q is unmanaged", id)
	}
}

// wantUnmanaged fails the test if the catalog commits a table's versions.
func wantUnmanaged(t *testing.T, s *server, id ...string) {
	t.Helper()
	if s.says(t, id...) {
		t.Errorf("table %q is managed", id)
	}
}

// TestUnmanagedTableIsReadFromStorage: whatever is asked of the versions of an unmanaged table is what storage has at that moment: newer ones, and
// none that are gone or were written anew.
func TestUnmanagedTableIsReadFromStorage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	made, err := s.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At("t"), Properties: unmanaged()})
	if err != nil || *made.ManagedVersioning {
		t.Fatalf("DeclareTable = %+v, %v, want an unmanaged table", made, err)
	}
	wantUnmanaged(t, s, "t")
	tb := tableAt(t, "t", *made.Location)
	s.listed(t, tb)
	no := false
	if all, err := s.ListTables(t.Context(), &api.ListTablesRequest{Target: api.At(), IncludeDeclared: &no}); err != nil || len(all.Tables) != 0 {
		t.Errorf("tables with data: %+v, %v, want none", all, err)
	}
	var content [4][]byte
	for v := int64(1); v <= 3; v++ {
		content[v] = s.lake.bypass(t, tb, v)
	}
	s.listed(t, tb, 1, 2, 3)
	if all, err := s.ListTables(t.Context(), &api.ListTablesRequest{Target: api.At(), IncludeDeclared: &no}); err != nil || len(all.Tables) != 1 {
		t.Errorf("tables with data: %+v, %v, want the one", all, err)
	}
	s.shows(t, tb, 2, content[2])
	s.lake.remove(t, tb.final(1))
	s.lake.remove(t, tb.final(3))
	s.listed(t, tb, 2)
	_, err = s.describe(t.Context(), tb, 3)
	wantCode(t, err, api.CodeTableVersionNotFound, "no version 3")
	again := s.lake.bypass(t, tb, 3)
	s.shows(t, tb, 3, again)
	s.listed(t, tb, 2, 3)
	one, newest := int64(1), true
	latest, err := s.ListTableVersions(t.Context(), &api.ListTableVersionsRequest{Target: api.At("t"), Page: api.Page{Limit: &one}, Descending: &newest})
	if err != nil || len(latest.Versions) != 1 || latest.Versions[0].Version != 3 || latest.PageToken == nil {
		t.Errorf("the latest = %+v, %v, want version 3 and a token", latest, err)
	}
	rest, err := s.ListTableVersions(t.Context(), &api.ListTableVersionsRequest{Target: api.At("t"), Page: api.Page{Limit: &one, PageToken: latest.PageToken}, Descending: &newest})
	if err != nil || len(rest.Versions) != 1 || rest.Versions[0].Version != 2 || rest.PageToken != nil {
		t.Errorf("what is older = %+v, %v, want version 2 and no token", rest, err)
	}
}

// TestUnmanagedTableIsNotCommitted: the catalog makes and deletes no version of an unmanaged table, alone or in a batch, of which then nothing is kept.
func TestUnmanagedTableIsNotCommitted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	made, err := s.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At("t"), Properties: unmanaged()})
	if err != nil {
		t.Fatal(err)
	}
	tb, other := tableAt(t, "t", *made.Location), s.declare(t, "other")
	_, err = s.create(t.Context(), s.lake.stage(t, tb, 1))
	wantCode(t, err, api.CodeInvalidTableState, `table "t"`, catalog.ManagedProperty, *made.Location)
	_, err = s.batch(t.Context(), s.lake.stage(t, other, 1), s.lake.stage(t, tb, 1))
	wantCode(t, err, api.CodeInvalidTableState, "entries[1]", `table "t"`)
	s.listed(t, other)
	s.lake.bypass(t, tb, 1)
	s.lake.bypass(t, tb, 2)
	_, err = s.BatchDeleteTableVersions(t.Context(), &api.BatchDeleteTableVersionsRequest{Target: api.At("t"), Ranges: []api.VersionRange{{StartVersion: 1, EndVersion: 2}}})
	wantCode(t, err, api.CodeInvalidTableState, `table "t"`)
	s.listed(t, tb, 1, 2)
	// A table that the same batch declares is unmanaged from its first breath.
	place := "batched.lance"
	batched := s.lake.table("batched", place)
	_, err = s.mixed(t.Context(),
		api.CommitTableOperation{DeclareTable: &api.DeclareTableRequest{Target: api.At("batched"), Location: &place, Properties: unmanaged()}},
		api.CommitTableOperation{CreateTableVersion: s.lake.stage(t, batched, 1).request()})
	wantCode(t, err, api.CodeInvalidTableState, "operations[1]")
}

// TestManagedAgain: registering an unmanaged table anew takes in everything that storage has, and it goes on as a managed one; and the other way.
func TestManagedAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	made, err := s.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At("t"), Properties: unmanaged()})
	if err != nil {
		t.Fatal(err)
	}
	tb := tableAt(t, "t", *made.Location)
	for v := int64(1); v <= 3; v++ {
		s.lake.bypass(t, tb, v)
	}
	s.listed(t, tb, 1, 2, 3)
	s.lake.remove(t, tb.final(1))
	overwrite := "overwrite"
	register := &api.RegisterTableRequest{Target: api.At("t"), Location: *made.Location, Mode: &overwrite, Properties: map[string]string{catalog.ManagedProperty: "true"}}
	if _, err := s.RegisterTable(t.Context(), register); err != nil {
		t.Fatalf("RegisterTable = %v", err)
	}
	wantManaged(t, s, "t")
	s.listed(t, tb, 2, 3)
	s.mustCreate(t, s.lake.stage(t, tb, 4))
	s.listed(t, tb, 2, 3, 4)
	register.Properties = unmanaged()
	if _, err := s.RegisterTable(t.Context(), register); err != nil {
		t.Fatalf("RegisterTable = %v", err)
	}
	wantUnmanaged(t, s, "t")
	s.lake.bypass(t, tb, 5)
	s.lake.remove(t, tb.final(3))
	s.listed(t, tb, 2, 4, 5)
	sum, err := s.Check(t.Context(), check.Options{Report: func(f check.Finding) { t.Errorf("a check finds %+v", f) }})
	if err != nil || sum.Tables != 1 {
		t.Errorf("a check = %+v, %v, want one table", sum, err)
	}
}

// TestUnmanagedNamespace: what is made in a namespace is as that says, unless it says otherwise itself, and stays so wherever it is moved.
func TestUnmanagedNamespace(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	create := func(properties map[string]string, id ...string) map[string]string {
		t.Helper()
		resp, err := s.CreateNamespace(t.Context(), &api.CreateNamespaceRequest{Target: api.At(id...), Properties: properties})
		if err != nil {
			t.Fatal(err)
		}
		return resp.Properties
	}
	create(unmanaged(), "n")
	if diff := cmp.Diff(map[string]string{"k": "v", catalog.ManagedProperty: "False"}, create(map[string]string{"k": "v"}, "n", "in")); diff != "" {
		t.Errorf("the properties of a namespace in it (-want +got):\n%s", diff)
	}
	create(map[string]string{catalog.ManagedProperty: "true"}, "n", "own")
	for _, id := range [][]string{{"n", "t"}, {"n", "in", "t"}, {"n", "own", "t"}} {
		if _, err := s.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At(id...)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.mixed(t.Context(), api.CommitTableOperation{DeclareTable: &api.DeclareTableRequest{Target: api.At("n", "batched")}}); err != nil {
		t.Fatal(err)
	}
	wantUnmanaged(t, s, "n", "t")
	wantUnmanaged(t, s, "n", "in", "t")
	wantManaged(t, s, "n", "own", "t")
	wantUnmanaged(t, s, "n", "batched")
	place := s.lake.table("r", "registered.lance")
	s.lake.bypass(t, place, 1)
	where := "registered.lance"
	registered, err := s.RegisterTable(context.Background(), &api.RegisterTableRequest{Target: api.At("n", "r"), Location: where})
	if err != nil || registered.Properties[catalog.ManagedProperty] != "False" {
		t.Errorf("RegisterTable = %+v, %v, want the property of the namespace", registered, err)
	}
	root := []string{}
	if _, err := s.RenameTable(t.Context(), &api.RenameTableRequest{Target: api.At("n", "t"), NewTableName: "moved", NewNamespaceID: &root}); err != nil {
		t.Fatal(err)
	}
	wantUnmanaged(t, s, "moved")
	bad := map[string]string{catalog.ManagedProperty: "perhaps"}
	_, err = s.CreateNamespace(t.Context(), &api.CreateNamespaceRequest{Target: api.At("bad"), Properties: bad})
	wantCode(t, err, api.CodeInvalidInput, "perhaps", "true or false")
	_, err = s.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At("bad"), Properties: bad})
	wantCode(t, err, api.CodeInvalidInput, "perhaps")
}
