package catalog_test

import (
	"context"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
)

// cloneOf returns the manifest of version 1 of a shallow clone of a table.
func cloneOf(tb table) []byte {
	s := spec(1, "id")
	s.Flags, s.Bases = lance.FlagBasePaths, []string{tb.location}
	return lancetest.Manifest(s)
}

// TestSourceOfAClone: a table whose files a shallow clone needs is not dropped, however the clone came to the catalog, and neither is a
// namespace with it, unless the clone goes too.
func TestSourceOfAClone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	drop := func(s *server, name string) error {
		_, err := s.DropTable(ctx, &api.DropTableRequest{Target: api.At(name)})
		return err
	}
	for name, clone := range map[string]func(*server, table) (string, error){
		"registered": func(s *server, source table) (string, error) {
			tb := s.lake.table("copy", "copy.lance")
			s.lake.put(t, tb.final(1), cloneOf(source))
			_, err := s.RegisterTable(ctx, &api.RegisterTableRequest{Target: api.At("copy"), Location: tb.location})
			return "copy", err
		},
		"committed": func(s *server, source table) (string, error) {
			tb := s.declare(t, "copy")
			_, err := s.create(ctx, s.lake.stageBytes(t, tb, lance.Main, 1, cloneOf(source)))
			return "copy", err
		},
		"adopted": func(s *server, source table) (string, error) {
			tb := s.declare(t, "copy")
			s.lake.put(t, tb.final(1), cloneOf(source))
			s.listed(t, tb, 1)
			return "copy", nil
		},
		"registered before its source": func(s *server, source table) (string, error) {
			if _, err := s.DeregisterTable(ctx, &api.DeregisterTableRequest{Target: api.At("source")}); err != nil {
				return "", err
			}
			tb := s.lake.table("copy", "copy.lance")
			s.lake.put(t, tb.final(1), cloneOf(source))
			_, err := s.RegisterTable(ctx, &api.RegisterTableRequest{Target: api.At("copy"), Location: tb.location})
			if err == nil {
				_, err = s.RegisterTable(ctx, &api.RegisterTableRequest{Target: api.At("source"), Location: source.location})
			}
			return "copy", err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			source := s.declare(t, "source")
			s.fill(t, source, 1, 2)
			copied, err := clone(s, source)
			if err != nil {
				t.Fatal(err)
			}
			wantCode(t, drop(s, "source"), api.CodeInvalidTableState, `"copy"`, "deregister")
			s.listed(t, source, 1, 2)
			if _, err := s.BatchDeleteTableVersions(ctx, &api.BatchDeleteTableVersionsRequest{
				Target: api.At("source"), Ranges: []api.VersionRange{{StartVersion: 1, EndVersion: 2}},
			}); err != nil {
				t.Errorf("a version of the source: %v", err)
			}
			if err := drop(s, copied); err != nil {
				t.Error(err)
			}
			if err := drop(s, "source"); err != nil {
				t.Errorf("with the clone gone: %v", err)
			}
		})
	}
}

// TestClonesInADroppedNamespace: what is dropped in one step does not stand in its own way.
func TestClonesInADroppedNamespace(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ctx := context.Background()
	in := func(ns, name string) table {
		t.Helper()
		resp, err := s.DeclareTable(ctx, &api.DeclareTableRequest{Target: api.At(ns, name)})
		if err != nil {
			t.Fatal(err)
		}
		tb := tableAt(t, name, *resp.Location)
		tb.id = []string{ns, name}
		return tb
	}
	for _, ns := range []string{"a", "b"} {
		if _, err := s.CreateNamespace(ctx, &api.CreateNamespaceRequest{Target: api.At(ns)}); err != nil {
			t.Fatal(err)
		}
	}
	source := in("a", "source")
	s.mustCreate(t, s.lake.stage(t, source, 1))
	for _, ns := range []string{"a", "b"} {
		s.mustCreate(t, s.lake.stageBytes(t, in(ns, "copy"), lance.Main, 1, cloneOf(source)))
	}
	cascade := "Cascade"
	drop := func(ns string) error {
		_, err := s.DropNamespace(ctx, &api.DropNamespaceRequest{Target: api.At(ns), Behavior: &cascade})
		return err
	}
	wantCode(t, drop("a"), api.CodeInvalidTableState, `"b$copy"`)
	if err := drop("b"); err != nil {
		t.Fatal(err)
	}
	if err := drop("a"); err != nil {
		t.Errorf("with the clone outside gone: %v", err)
	}
}
