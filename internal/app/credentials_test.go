package app_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/s3"
	"github.com/lancerest/lancerest/internal/objstore/s3/s3test"
)

// tokenService stands before the token service of an S3 server and counts what it is asked.
type tokenService struct {
	url   string
	asked atomic.Int64
	away  atomic.Bool // it answers 503
}

func newTokenService(t *testing.T, s *s3test.Server) *tokenService {
	t.Helper()
	behind, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	ts := &tokenService{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind); r.Out.Host = r.In.Host }} // which is signed
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ts.asked.Add(1)
		if ts.away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(listening.Close)
	ts.url = listening.URL
	return ts
}

// collector keeps all that traces bring.
type collector struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := io.Copy(&c.text, body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
}

// Write makes it a log, too.
func (c *collector) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *collector) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// vendingConfig writes a configuration file for a server that vends keys.
func vendingConfig(t *testing.T, s *s3test.Server, ts *tokenService) string {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(`
[[root]]
location = %q
endpoint = %q
region = %q
allow_http = true
access_key_id = "file:%s/id"
secret_access_key = "file:%s/key"
credentials = "vend"
[root.vend]
role_arn = %q
sts_endpoint = %q
`, s.Root(), s.Endpoint, s.Region, dir, dir, s.Role, ts.url)
	for name, text := range map[string]string{"config.toml": text, "id": s.AccessKey, "key": s.SecretKey} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "config.toml")
}

// clientStore is the storage as a client reaches it that has storage options and nothing else.
func clientStore(t *testing.T, options map[string]string, bucket string) objstore.Store {
	t.Helper()
	pathStyle := options["aws_virtual_hosted_style_request"] != "true"
	store, err := s3.New(t.Context(), s3.Options{
		Bucket: bucket, Endpoint: options["aws_endpoint"], Region: options["aws_region"], PathStyle: &pathStyle,
		AccessKeyID: options["aws_access_key_id"], SecretAccessKey: options["aws_secret_access_key"], SessionToken: options["aws_session_token"],
	})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// TestVendedKeys runs a server on a real S3 server with a token service: what it gives to clients reaches their table alone, a thousand who
// want it at once cost one request, and none of the secrets is anywhere but in answers.
func TestVendedKeys(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t)
	ts := newTokenService(t, storage)
	log, traces := &collector{}, &collector{}
	collecting := httptest.NewServer(traces)
	t.Cleanup(collecting.Close)
	config := app.Config{
		Data: t.TempDir(), ConfigFile: vendingConfig(t, storage, ts), Traces: collecting.URL + "/v1/traces",
		Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	s := serve(t, config)
	ctx := context.Background()
	declared := map[string]*api.DeclareTableResponse{}
	for _, name := range []string{"t", "u"} {
		resp, err := s.DeclareTable(ctx, &api.DeclareTableRequest{Target: api.At(name)})
		if err != nil {
			t.Fatal(err)
		}
		declared[name] = resp
	}
	loc, err := lance.ParseLocation(*declared["t"].Location)
	if err != nil {
		t.Fatal(err)
	}
	s.writes(t, declared["t"], storage.Bucket)
	s.cannotReach(t, declared["t"], *declared["u"].Location, storage.Bucket)

	ts.asked.Store(0)
	s.ofAThousand(t, ts)
	again := s.keyed(t, "/v1/table/v/declare", "key")
	if repeated := s.keyed(t, "/v1/table/v/declare", "key"); repeated != again || !strings.Contains(again, "aws_session_token") {
		t.Errorf("%s\nand repeated %s; want the same, with keys", again, repeated)
	}

	ts.away.Store(true)
	if _, err := s.DeclareTable(ctx, &api.DeclareTableRequest{Target: api.At("w")}); err != nil {
		t.Errorf("declare without the token service: %v", err)
	}
	_, err = s.DescribeTable(ctx, &api.DescribeTableRequest{Target: api.At("w")})
	if api.CodeOf(err) != api.CodeServiceUnavailable {
		t.Errorf("describe without the token service: %v, want code 17", err)
	}
	commit := api.CommitTableOperation{DeclareTable: &api.DeclareTableRequest{Target: api.At("x")}}
	if _, err := s.BatchCommitTables(ctx, &api.BatchCommitTablesRequest{Operations: []api.CommitTableOperation{commit}}); err != nil {
		t.Error(err)
	}
	_, metrics := get(t, s.url+"/metrics")
	s.stop()

	var export bytes.Buffer
	if _, err := app.Export(ctx, config, &export); err != nil {
		t.Fatal(err)
	}
	places := map[string]string{"the log": log.String(), "the traces": traces.String(), "the metrics": metrics, "the export": export.String()}
	for _, name := range []string{"catalog.db", "catalog.db-wal"} {
		text, err := os.ReadFile(filepath.Join(config.Data, name))
		if err != nil && name == "catalog.db" {
			t.Fatal(err)
		}
		places[name] = string(text)
	}
	secrets := []string{storage.SecretKey, "aws_secret_access_key", "aws_session_token"}
	for _, resp := range declared {
		secrets = append(secrets, resp.StorageOptions["aws_secret_access_key"], resp.StorageOptions["aws_session_token"])
	}
	for place, text := range places {
		for _, secret := range secrets {
			if secret == "" || strings.Contains(text, secret) {
				t.Errorf("%s holds the secret %.12q…", place, secret)
			}
		}
	}
	for place, mark := range map[string]string{"the log": "keyless", "the traces": "DeclareTable", "the metrics": "DeclareTable", "the export": loc.Key(), "catalog.db": loc.Key()} {
		if !strings.Contains(places[place], mark) {
			t.Errorf("%s does not hold %q: the test looks in the wrong place", place, mark)
		}
	}
}

func isDenied(err error) bool { return errors.Is(err, objstore.ErrDenied) }

// writes makes the first version of a table as a client does that was given storage options and nothing else.
func (r running) writes(t *testing.T, declared *api.DeclareTableResponse, bucket string) {
	t.Helper()
	loc, err := lance.ParseLocation(*declared.Location)
	if err != nil {
		t.Fatal(err)
	}
	store := clientStore(t, declared.StorageOptions, bucket)
	staged := lance.ManifestKey(loc.Key(), lance.Main, 1, lance.SchemeV2) + "-00000000-0000-0000-0000-000000000000"
	if _, err := store.PutIfAbsent(t.Context(), staged, lancetest.Manifest(lancetest.Spec{Version: 1})); err != nil {
		t.Fatal(err)
	}
	created, err := r.CreateTableVersion(t.Context(), &api.CreateTableVersionRequest{Target: api.At("t"), StagedVersion: api.StagedVersion{Version: 1, ManifestPath: staged}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Get(t.Context(), created.Version.ManifestPath, 0); err != nil {
		t.Errorf("the client cannot read its version: %v", err)
	}
}

// cannotReach holds that a table's keys do nothing in another table, at the root's marker, and where the root's tables are listed.
func (r running) cannotReach(t *testing.T, declared *api.DeclareTableResponse, other, bucket string) {
	t.Helper()
	loc, err := lance.ParseLocation(other)
	if err != nil {
		t.Fatal(err)
	}
	store := clientStore(t, declared.StorageOptions, bucket)
	root := loc.Key()[:strings.LastIndexByte(loc.Key(), '/')]
	for _, key := range []string{loc.Key() + "/x", root + "/.lancerest", root + "/x"} {
		_, _, get := store.Get(t.Context(), key, 0)
		_, put := store.PutIfAbsent(t.Context(), key, nil)
		for op, err := range map[string]error{"get": get, "put": put, "delete": store.Delete(t.Context(), key)} {
			if !isDenied(err) {
				t.Errorf("%s %s: %v, want that it is denied", op, key, err)
			}
		}
	}
	for _, prefix := range []string{loc.Key() + "/", root + "/"} {
		var last error
		for _, last = range store.List(t.Context(), prefix, "") {
			continue
		}
		if !isDenied(last) {
			t.Errorf("list %s: %v, want that it is denied", prefix, last)
		}
	}
}

// ofAThousand describes a table that nobody has keys for, a thousand times at once.
func (r running) ofAThousand(t *testing.T, ts *tokenService) {
	t.Helper()
	no := false
	if _, err := r.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At("many"), VendCredentials: &no}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			resp, err := r.DescribeTable(context.Background(), &api.DescribeTableRequest{Target: api.At("many")})
			if err != nil {
				t.Error(err)
			} else if resp.StorageOptions["aws_session_token"] == "" {
				t.Error("an answer lacks keys")
			}
		})
	}
	wg.Wait()
	if n := ts.asked.Load(); n != 1 {
		t.Errorf("a thousand descriptions made %d requests to the token service, want 1", n)
	}
}

// keyed sends a request with an Idempotency-Key and returns its answer.
func (r running) keyed(t *testing.T, path, key string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", path, res.StatusCode, body, err)
	}
	return string(body)
}

// TestOperatorsKeys: mode static, said by a flag alone, gives the operator's own keys, and the log warns of it; client gives what is
// needed beside them.
func TestOperatorsKeys(t *testing.T) {
	storage := s3test.Start(t)
	for _, v := range storage.Environ(nil) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	for mode, secret := range map[string]string{"static": storage.SecretKey, "client": "", "": ""} {
		log := &collector{}
		s := serve(t, app.Config{Data: t.TempDir(), Root: storage.Root(), Credentials: mode, Logger: slog.New(slog.NewTextHandler(log, nil))})
		resp, err := s.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At("t")})
		if err != nil {
			t.Fatal(err)
		}
		o := resp.StorageOptions
		if o["aws_secret_access_key"] != secret || o["aws_endpoint"] != storage.Endpoint || o["aws_region"] != storage.Region || o["allow_http"] != "true" {
			t.Errorf("mode %q gives the endpoint %q in region %q, http %q, and keys %t", mode, o["aws_endpoint"], o["aws_region"], o["allow_http"], o["aws_secret_access_key"] != "")
		}
		if secret != "" {
			s.writes(t, resp, storage.Bucket)
		}
		s.stop()
		if warned := strings.Contains(log.String(), "level=WARN msg=\"credentials static"); warned != (mode == "static") || strings.Contains(log.String(), storage.SecretKey) {
			t.Errorf("mode %q: the log says %s", mode, log)
		}
	}
}

// TestRoleByFlag: with the environment that every S3 client reads, a root and a role are all that vending keys needs.
func TestRoleByFlag(t *testing.T) {
	storage := s3test.Start(t)
	for _, v := range storage.Environ(nil) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	s := serve(t, app.Config{Data: t.TempDir(), Root: storage.Root(), STSRoleARN: storage.Role})
	resp, err := s.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At("t")})
	if err != nil {
		t.Fatal(err)
	}
	if o := resp.StorageOptions; o["aws_session_token"] == "" || o["aws_access_key_id"] == storage.AccessKey || o["expires_at_millis"] == "" || o["refresh_offset_millis"] != "150000" {
		t.Errorf("%d options, until %q, to be renewed %q before; want temporary keys", len(o), o["expires_at_millis"], o["refresh_offset_millis"])
	}
	s.writes(t, resp, storage.Bucket)
}

// TestRootsRefused: what is wrong with roots is said before anything is made.
func TestRootsRefused(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "broken.toml")
	if err := os.WriteFile(broken, []byte("[[root]]\nlocation = '/srv'\nsize = 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]app.Config{
		"line 3: there is no setting \"root.size\"": {ConfigFile: broken},
		"no such file":            {ConfigFile: broken + "x"},
		"none, static, vend":      {Root: "s3://b/t", Credentials: "some"},
		"--sts-role-arn":          {Root: "s3://b/t", Credentials: "vend"},
		"lies on this machine":    {Credentials: "static"},
		"vend.role_arn is for s3": {STSRoleARN: "arn:aws:iam::1:role/x"},
	} {
		c.Data, c.Listen = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0"
		_, err := app.New(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that says %q", err, want)
		}
		if _, err := os.Stat(c.Data); !os.IsNotExist(err) {
			t.Errorf("%s: something was made", want)
		}
	}
}
