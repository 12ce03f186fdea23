package azure_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/azure"
	"github.com/lancerest/lancerest/internal/objstore/azure/azuretest"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// server is the emulator that all tests of the package share.
var server *azuretest.Server

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if server, err = azuretest.Open(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Close()
	return m.Run()
}

func TestSuite(t *testing.T) {
	t.Parallel()
	objtest.RunWith(t, func(t *testing.T) objstore.Store { return open(t, azure.Options{}) }, objtest.Options{Except: map[string]string{
		"Store/keys with a backslash are raw": "Azure takes a backslash for a slash, so such keys are refused: TestKeysThatAreOthers",
	}})
}

// open opens a store on a container of its own.
func open(t *testing.T, o azure.Options) *azure.Store {
	t.Helper()
	o.Account, o.AccountKey = azuretest.Account, azuretest.Key
	if o.Container == "" {
		o.Container = server.Container(t)
	}
	if o.Endpoint == "" {
		o.Endpoint = server.Endpoint
	}
	s, err := azure.New(o)
	if err != nil {
		t.Fatalf("New = %v, want a store", err)
	}
	return s
}
