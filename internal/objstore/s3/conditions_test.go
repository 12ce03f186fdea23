package s3_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/alone"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/objstore/s3/s3test"
)

// TestTry: a server that judges conditions is found to, and one that passes over some is found out. Before such a one the whole suite passes
// once a single process judges for it.
func TestTry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan s3test.Step
		want objstore.Conditions
	}{
		"all":             {s3test.Pass, objstore.Conditions{Absent: true, Replace: true, Delete: true}},
		"but no removals": {server.Heedless(http.MethodDelete), objstore.Conditions{Absent: true, Replace: true}},
		"none at all":     {server.Heedless(http.MethodDelete, http.MethodPut), objstore.Conditions{}},
		"says so":         {s3test.SaysNotImplemented, objstore.Conditions{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, f := behind(t)
			f.Always(c.plan)
			got, err := objstore.Try(t.Context(), s, server.Prefix())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the conditions found differ (-want +got):\n%s", diff)
			}
			if got.All() {
				return
			}
			objtest.RunWith(t, func(t *testing.T) objstore.Store {
				judging, err := alone.New(s, got)
				if err != nil {
					t.Fatal(err)
				}
				return &under{inner: judging, prefix: server.Prefix()}
			}, seaweed())
		})
	}
}
