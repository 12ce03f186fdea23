package app_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/azure"
	"github.com/lancerest/lancerest/internal/objstore/azure/azuretest"
	"github.com/lancerest/lancerest/internal/objstore/gcs"
	"github.com/lancerest/lancerest/internal/objstore/gcs/gcstest"
)

// newRoot is a root with the given settings, and a store that reaches it directly.
func newRoot(t *testing.T, location, settings string, objects objstore.Store) *bucket {
	t.Helper()
	root, err := lance.ParseLocation(location)
	if err != nil {
		t.Fatal(err)
	}
	b := &bucket{root: root, objects: objects, log: &collector{}}
	dir := t.TempDir()
	text := fmt.Sprintf("[[root]]\nlocation = %q\nallow_http = true\n%s", location, settings)
	for name, text := range map[string]string{"config.toml": text, "key": azuretest.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.config = app.Config{
		Data: filepath.Join(dir, "data"), ConfigFile: filepath.Join(dir, "config.toml"), Listen: "127.0.0.1:0", StagedKeep: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	return b
}

// tables commits and describes versions of table t.
func (b *bucket) tables(t *testing.T, s running) {
	t.Helper()
	if got := b.names(t); !slices.Equal(got, []string{catalog.Marker}) {
		t.Errorf("a new root holds %q, want its marker alone", got)
	}
	dir := b.commit(t, s, "t", 1, 2, 3)
	for v := int64(1); v <= 3; v++ {
		resp, err := s.DescribeTableVersion(t.Context(), &api.DescribeTableVersionRequest{Target: api.At("t"), Version: &v})
		if err != nil {
			t.Fatal(err)
		}
		if want := lance.ManifestKey(dir, lance.Main, lance.VersionNumber(v), lance.SchemeV2); resp.Version.ManifestPath != want {
			t.Errorf("version %d is at %s, want %s", v, resp.Version.ManifestPath, want)
		}
	}
}

// drop drops the table and waits for its purge.
func (b *bucket) drop(t *testing.T, s running) {
	t.Helper()
	if _, err := s.DropTable(t.Context(), &api.DropTableRequest{Target: api.At("t")}); err != nil {
		t.Fatal(err)
	}
	until(t, "the purge ends", func() bool { return len(b.names(t)) == 1 })
}

// options are the storage options that a client of table t is given.
func (b *bucket) options(t *testing.T, s running) map[string]string {
	t.Helper()
	described, err := s.DescribeTable(t.Context(), &api.DescribeTableRequest{Target: api.At("t")})
	if err != nil {
		t.Fatal(err)
	}
	return described.StorageOptions
}

func TestRootsOnGoogleCloudStorage(t *testing.T) {
	t.Parallel()
	server := gcstest.Start(t)
	for name, endpoint := range map[string]string{"every condition judged": server.Endpoint, "removals without conditions": server.Bare} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			name := server.Bucket(t)
			objects, err := gcs.New(t.Context(), gcs.Options{Bucket: name, Endpoint: server.Bare})
			if err != nil {
				t.Fatal(err)
			}
			b := newRoot(t, "gs://"+name+"/some/where", fmt.Sprintf("endpoint = %q\n", endpoint), objects)
			s := serve(t, b.config)
			b.tables(t, s)
			if got := b.options(t, s); got["google_base_url"] != endpoint || got["allow_http"] != "true" || !strings.Contains(got["google_service_account_key"], "disable_oauth") {
				t.Errorf("storage options %v, want the endpoint, and that no credentials are wanted", got)
			}
			if endpoint == server.Endpoint { // else they are kept for long
				until(t, "the staged manifests go", func() bool { return len(b.names(t)) == 4 })
			}
			const unjudged = "does not know removing an object only if it is the one that was read"
			bare := endpoint == server.Bare
			if lines := b.check(t); bare && (len(lines) != 1 || !strings.Contains(lines[0], unjudged)) || !bare && len(lines) != 0 {
				t.Errorf("a check finds %q", lines)
			}
			if strings.Contains(b.log.String(), unjudged) != bare {
				t.Errorf("the log of a storage that removes without conditions: %t is\n%s", bare, b.log)
			}
			b.drop(t, s)
		})
	}
}

func TestRootsOnAzure(t *testing.T) {
	t.Parallel()
	server := azuretest.Start(t)
	for name, scheme := range map[string]func(container string) string{
		"az": func(container string) string { return "az://" + container + "/some/where" },
		"abfss": func(container string) string {
			return "abfss://" + container + "@" + azuretest.Account + ".dfs.core.windows.net/some/where"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			name := server.Container(t)
			objects, err := azure.New(azure.Options{Container: name, Account: azuretest.Account, AccountKey: azuretest.Key, Endpoint: server.Endpoint})
			if err != nil {
				t.Fatal(err)
			}
			settings := fmt.Sprintf("endpoint = %q\naccount = %q\naccount_key = \"file:DIR/key\"\n", server.Endpoint, azuretest.Account)
			b := newRoot(t, scheme(name), settings, objects)
			s := serve(t, b.config)
			b.tables(t, s)
			until(t, "the staged manifests go", func() bool { return len(b.names(t)) == 4 })
			want := map[string]string{"azure_storage_account_name": azuretest.Account, "azure_storage_endpoint": server.Endpoint, "allow_http": "true"}
			if diff := cmp.Diff(want, b.options(t, s)); diff != "" {
				t.Errorf("storage options (-want +got):\n%s", diff)
			}
			if lines := b.check(t); len(lines) != 0 {
				t.Errorf("a check finds %q", lines)
			}
			b.drop(t, s)
		})
	}
}

// The emulator's account is flat: keys for one table cannot be made, and a server that is to make some does not begin unless keys for the
// whole container are meant.
func TestVendedKeysOfAFlatAccount(t *testing.T) {
	t.Parallel()
	server := azuretest.Start(t)
	name := server.Container(t)
	objects, err := azure.New(azure.Options{Container: name, Account: azuretest.Account, AccountKey: azuretest.Key, Endpoint: server.Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("endpoint = %q\naccount = %q\naccount_key = \"file:DIR/key\"\ncredentials = \"vend\"\n", server.Endpoint, azuretest.Account)
	narrow := newRoot(t, "az://"+name+"/p", settings, objects)
	if _, err := app.New(t.Context(), narrow.config); err == nil || !strings.Contains(err.Error(), "namespace is flat") {
		t.Errorf("a server that is to make keys for tables in a flat account: %v, want that it says why not", err)
	}
	wide := newRoot(t, "az://"+name+"/p", settings+"[root.vend]\ncontainer_wide = true\nduration = \"20m\"\n", objects)
	s := serve(t, wide.config)
	wide.commit(t, s, "t", 1)
	options := wide.options(t, s)
	holder, err := azure.New(azure.Options{Container: name, Account: azuretest.Account, Endpoint: server.Endpoint, SAS: options["azure_storage_sas_token"]})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.PutIfAbsent(t.Context(), "p/x", nil); err != nil {
		t.Errorf("put with the keys that were given: %v", err)
	}
	if options["expires_at_millis"] == "" || options["azure_storage_account_key"] != "" {
		t.Errorf("keys without an end, or the account's own, are given: %d options", len(options))
	}
}
