//go:build unix

package faults_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
)

// place is where servers keep their state and their tables.
type place struct {
	data  string
	state string // the address of a database; "" for a file in data
	root  string // where tables lie; "" for a directory in data
	// config is a file that says how the root is reached, "" where that need not be said.
	config string
}

// eachState runs a test with the state in SQLite and in PostgreSQL, and with the tables on S3.
func eachState(t *testing.T, test func(t *testing.T, p place)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, place{data: newFolder(t).data})
	})
	t.Run("S3", func(t *testing.T) {
		t.Parallel()
		test(t, onBucket(t, onS3(t).Endpoint))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, place{data: newFolder(t).data, state: pgtest.Start(t, pgtest.Options{}).URL()})
	})
}

// flags say it to a server, beside the data directory.
func (p place) flags() []string {
	var flags []string
	if p.state != "" {
		flags = append(flags, "--state", p.state)
	}
	if p.config != "" {
		flags = append(flags, "--config", p.config)
	}
	return flags
}

// onBucket makes a place whose tables lie in the bucket of the S3 server, which servers reach at the given address.
func onBucket(t *testing.T, endpoint string) place {
	t.Helper()
	server, dir := onS3(t), t.TempDir()
	p := place{data: filepath.Join(dir, "data"), root: server.Root(), config: filepath.Join(dir, "config.toml")}
	text := fmt.Sprintf("[[root]]\nlocation = %q\nendpoint = %q\nallow_http = true\naccess_key_id = \"file:%s/id\"\nsecret_access_key = \"file:%s/key\"\n", p.root, endpoint, dir, dir)
	for name, text := range map[string]string{"config.toml": text, "id": server.AccessKey, "key": server.SecretKey} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(p.data, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// open opens the state in this process. The test closes it, if nobody has before.
func (p place) open(t *testing.T) store.Store {
	t.Helper()
	var s store.Store
	var err error
	if p.state == "" {
		s, err = sqlstore.OpenSQLite(context.Background(), sqlstore.Options{Path: filepath.Join(p.data, "catalog.db")})
	} else {
		s, err = sqlstore.OpenPostgres(context.Background(), sqlstore.PostgresOptions{URL: p.state, MaxConns: 4})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
