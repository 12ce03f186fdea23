package app_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/check"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/s3"
	"github.com/lancerest/lancerest/internal/objstore/s3/s3test"
)

// bucket is a root on an S3 server, which a catalog reaches through a front and the test directly.
type bucket struct {
	*s3test.Front
	server  *s3test.Server
	root    lance.Location
	objects objstore.Store
	config  app.Config
	log     *collector
}

// newBucket makes a root and the configuration of a server on it.
func newBucket(t *testing.T, server *s3test.Server) *bucket {
	t.Helper()
	b := &bucket{Front: server.Front(t), server: server, log: &collector{}}
	var err error
	if b.root, err = lance.ParseLocation(server.Root()); err != nil {
		t.Fatal(err)
	}
	if b.objects, err = s3.New(t.Context(), s3.Options{Bucket: server.Bucket, Endpoint: server.Endpoint, AccessKeyID: server.AccessKey, SecretAccessKey: server.SecretKey}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := fmt.Sprintf("[[root]]\nlocation = %q\nendpoint = %q\nallow_http = true\naccess_key_id = \"file:%s/id\"\nsecret_access_key = \"file:%s/key\"\n", b.root, b.URL, dir, dir)
	for name, text := range map[string]string{"config.toml": text, "id": server.AccessKey, "key": server.SecretKey} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.config = app.Config{
		Data: filepath.Join(dir, "data"), ConfigFile: filepath.Join(dir, "config.toml"), Listen: "127.0.0.1:0", StagedKeep: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	return b
}

// names returns the keys below the root, relative to it.
func (b *bucket) names(t *testing.T) []string {
	t.Helper()
	var names []string
	for info, err := range b.objects.List(t.Context(), b.root.Key()+"/", "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.TrimPrefix(info.Key, b.root.Key()+"/"))
	}
	return names
}

// commit stages and commits versions of a table that is declared where needed, and returns its directory's key.
func (b *bucket) commit(t *testing.T, s running, table string, versions ...int64) string {
	t.Helper()
	declared, err := s.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At(table)})
	if err != nil {
		t.Fatal(err)
	}
	loc, err := lance.ParseLocation(*declared.Location)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		key := lance.ManifestKey(loc.Key(), lance.Main, lance.VersionNumber(v), lance.SchemeV2) + "-staged"
		if _, err := b.objects.PutIfAbsent(t.Context(), key, lancetest.Manifest(lancetest.Spec{Version: lance.VersionNumber(v)})); err != nil {
			t.Fatal(err)
		}
		req := &api.CreateTableVersionRequest{Target: api.At(table), StagedVersion: api.StagedVersion{Version: v, ManifestPath: key}}
		if _, err := s.CreateTableVersion(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	return loc.Key()
}

// check checks the catalog and returns what is found, as lines.
func (b *bucket) check(t *testing.T) []string {
	t.Helper()
	var lines []string
	_, err := app.Check(t.Context(), b.config, check.Options{StagedAge: time.Hour, Report: func(f check.Finding) {
		lines = append(lines, string(f.Kind)+": "+f.What)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// until waits for a condition.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

func TestRootsOnS3(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	for name, test := range map[string]func(*testing.T, *bucket){
		"tables":                       tablesOnS3,
		"a purge outlives the server":  purgeOnS3,
		"a server without conditions":  heedlessS3,
		"a storage that does not work": brokenS3,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newBucket(t, server))
		})
	}
}

func tablesOnS3(t *testing.T, b *bucket) {
	s := serve(t, b.config)
	if got := b.names(t); !slices.Equal(got, []string{catalog.Marker}) {
		t.Errorf("a new root holds %q, want its marker alone", got)
	}
	dir := b.commit(t, s, "t", 1, 2, 3)
	until(t, "the staged manifests go", func() bool { return len(b.names(t)) == 4 })
	for v := int64(1); v <= 3; v++ {
		resp, err := s.DescribeTableVersion(t.Context(), &api.DescribeTableVersionRequest{Target: api.At("t"), Version: &v})
		if err != nil {
			t.Fatal(err)
		}
		if want := lance.ManifestKey(dir, lance.Main, lance.VersionNumber(v), lance.SchemeV2); resp.Version.ManifestPath != want {
			t.Errorf("version %d is at %s, want %s", v, resp.Version.ManifestPath, want)
		}
	}
	if lines := b.check(t); len(lines) != 0 {
		t.Errorf("a check finds %q", lines)
	}
	// A storage that is away for a moment is waited for; one that stays away makes nothing absent.
	b.Will(s3test.Says(503, "SlowDown"), s3test.Loses)
	one := int64(1)
	describe := &api.DescribeTableVersionRequest{Target: api.At("t"), Version: &one}
	if _, err := s.DescribeTableVersion(t.Context(), describe); err != nil {
		t.Error(err)
	}
	b.Always(s3test.Says(503, "SlowDown"))
	if _, err := s.DescribeTableVersion(t.Context(), describe); api.CodeOf(err) != api.CodeServiceUnavailable {
		t.Errorf("described while the storage is away: %v, want code 17", err)
	}
	b.Always(s3test.Says(404, "NoSuchBucket"))
	if _, err := s.DescribeTableVersion(t.Context(), describe); api.CodeOf(err) == api.CodeTableVersionNotFound || err == nil {
		t.Errorf("described while the bucket is away: %v, want no claim about the version", err)
	}
	b.Always(s3test.Pass)
	if _, err := s.DescribeTableVersion(t.Context(), describe); err != nil {
		t.Error(err)
	}
}

// purgeOnS3 drops a table of many objects from a storage that refuses in the middle. The server ends, and the next one goes on.
func purgeOnS3(t *testing.T, b *bucket) {
	s := serve(t, b.config)
	dir := b.commit(t, s, "t", 1)
	for i := range 1200 {
		if _, err := b.objects.PutIfAbsent(t.Context(), fmt.Sprintf("%s/data/%d.lance", dir, i), nil); err != nil {
			t.Fatal(err)
		}
	}
	// What beside listings is asked of the storage after the drop is a removal, of which the first passes.
	var removals atomic.Int64
	b.Always(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		if r.Method == http.MethodPost {
			if removals.Add(1) > 1 {
				s3test.Says(403, "AccessDenied")(w, r, inner)
				return
			}
		}
		s3test.Pass(w, r, inner)
	})
	if _, err := s.DropTable(t.Context(), &api.DropTableRequest{Target: api.At("t")}); err != nil {
		t.Fatal(err)
	}
	var lines []string
	until(t, "the purge fails", func() bool {
		lines = b.check(t)
		return len(lines) > 0 && !strings.HasPrefix(lines[0], "purge: the objects of a dropped table at "+b.root.String())
	})
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "job: job purge_table") || !strings.Contains(lines[0], "access denied") {
		t.Errorf("a check finds %q, want the purge that fails", lines)
	}
	s.stop()
	if left := len(b.names(t)); left != 1+202 && left != 1+201 {
		t.Errorf("%d objects are left, want what one removal of a thousand leaves", left)
	}
	b.Always(s3test.Pass)
	serve(t, b.config)
	until(t, "the purge ends", func() bool { return len(b.names(t)) == 1 })
}

// heedlessS3 runs on a server that judges no condition.
func heedlessS3(t *testing.T, b *bucket) {
	b.Always(b.server.Heedless(http.MethodPut, http.MethodDelete))
	s := serve(t, b.config)
	for _, want := range []string{"level=WARN", "does not know putting an object only where there is none", "past the catalog"} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, b.log)
		}
	}
	dir := b.commit(t, s, "t", 1, 2)
	// A version that stands there is not overwritten: its writer went past the catalog before the commit, and is taken in.
	key := lance.ManifestKey(dir, lance.Main, 3, lance.SchemeV2)
	if _, err := b.objects.PutIfAbsent(t.Context(), key, lancetest.Manifest(lancetest.Spec{Version: 3, Mark: "foreign"})); err != nil {
		t.Fatal(err)
	}
	if _, err := b.objects.PutIfAbsent(t.Context(), key+"-staged", lancetest.Manifest(lancetest.Spec{Version: 3})); err != nil {
		t.Fatal(err)
	}
	_, err := s.CreateTableVersion(t.Context(), &api.CreateTableVersionRequest{Target: api.At("t"), StagedVersion: api.StagedVersion{Version: 3, ManifestPath: key + "-staged"}})
	if api.CodeOf(err) != api.CodeConcurrentModification {
		t.Errorf("commit of a version that stands there: %v, want code 14", err)
	}
	if data, _, err := b.objects.Get(t.Context(), key, 0); err != nil || lancetest.Mark(data) != "foreign" {
		t.Errorf("the version that stood there is %q, %v", lancetest.Mark(data), err)
	}
	if lines := b.check(t); len(lines) != 1 || !strings.HasPrefix(lines[0], "storage: the storage at "+b.root.String()+" does not know") {
		t.Errorf("a check finds %q, want a note about the storage", lines)
	}
	repair := check.Options{Repair: true, Report: func(check.Finding) {}}
	if _, err := app.Check(t.Context(), b.config, repair); err == nil || !strings.Contains(err.Error(), "stop the server") {
		t.Errorf("a repair beside the server: %v, want that it is refused", err)
	}
	s.stop()
	if _, err := app.Check(t.Context(), b.config, repair); err != nil {
		t.Errorf("a repair after the server: %v", err)
	}
	shared := b.config
	shared.State = "postgres://127.0.0.1:1/nowhere"
	if _, err := app.New(context.Background(), shared); err == nil || !strings.Contains(err.Error(), "servers that share a state") {
		t.Errorf("with a state that others share: %v, want that it is refused", err)
	}
}

// brokenS3 starts on storages that cannot be used.
func brokenS3(t *testing.T, b *bucket) {
	for name, c := range map[string]struct {
		says s3test.Step
		want string
	}{
		"no bucket":  {s3test.Says(404, "NoSuchBucket"), "NoSuchBucket"},
		"no keys":    {s3test.Says(403, "InvalidAccessKeyId"), "access denied"},
		"away":       {s3test.Says(503, "ServiceUnavailable"), "ServiceUnavailable"},
		"other keys": {s3test.Says(403, "SignatureDoesNotMatch"), "SignatureDoesNotMatch"},
	} {
		b.Always(c.says)
		a, err := app.New(context.Background(), b.config)
		if err == nil {
			t.Fatalf("%s: the server begins: %v", name, a.Close())
		}
		if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), b.root.String()) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want the root and %q in it, and no secret", name, err, c.want)
		}
	}
	b.Always(s3test.Pass)
	serve(t, b.config).stop()
}
