package app_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/app"
)

// TestEngineWithoutPython: a server that is to have an engine, and finds no Python, serves everything else.
func TestEngineWithoutPython(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := serve(t, app.Config{Data: t.TempDir(), Engine: app.Engine{Kind: app.EngineAuto}})
	if _, err := s.DeclareTable(context.Background(), &api.DeclareTableRequest{Target: api.At("t")}); err != nil {
		t.Error(err)
	}
	_, err := s.DeleteFromTable(context.Background(), &api.DeleteFromTableRequest{Target: api.At("t"), Predicate: "true"})
	if api.CodeOf(err) != api.CodeUnsupported || !strings.Contains(err.Error(), "engine") {
		t.Errorf("delete: %v, want code 0", err)
	}
	if status, body := get(t, s.url+"/readyz"); status != http.StatusOK {
		t.Errorf("readyz: %d %s", status, body)
	}
}
