package gcs_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/gcs"
	"github.com/lancerest/lancerest/internal/objstore/gcs/gcstest"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// server is the emulator that all tests of the package share.
var server *gcstest.Server

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if server, err = gcstest.Open(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Close()
	return m.Run()
}

func TestSuite(t *testing.T) {
	t.Parallel()
	objtest.Run(t, func(t *testing.T) objstore.Store {
		return open(t, gcs.Options{Bucket: server.Bucket(t), Endpoint: server.Endpoint})
	})
}

// open opens a store that sends no credentials.
func open(t *testing.T, o gcs.Options) *gcs.Store {
	t.Helper()
	o.Anonymous = true
	s, err := gcs.New(t.Context(), o)
	if err != nil {
		t.Fatalf("New(%+v) = %v, want a store", o, err)
	}
	t.Cleanup(func() { _ = s.Close() }) // it lets go of connections, and cannot fail
	return s
}
