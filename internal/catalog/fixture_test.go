package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/azure"
	"github.com/lancerest/lancerest/internal/objstore/gcs"
	"github.com/lancerest/lancerest/internal/objstore/mem"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/objstore/s3"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// tester is what the helpers need of a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
	Cleanup(func())
}

// lake is what servers share: one state and one storage.
type lake struct {
	dir     string
	state   store.Store
	objects objstore.Store
	root    lance.Location
}

func newLake(t testing.TB) *lake {
	t.Helper()
	return openLake(t, t.TempDir())
}

// openLake opens a lake whose state is in a directory. Every closure of an update runs twice, so that one that keeps anything
// outside of itself is found out.
func openLake(t tester, dir string) *lake {
	t.Helper()
	l := &lake{dir: dir}
	l.openStorage(t)
	l.state = l.openState(t)
	return l
}

// openStorage opens the lake's storage. Where the environment names a server, as test/withs3, withgcs and withazure do, it is a prefix in that
// server's bucket, which all tests share.
func (l *lake) openStorage(t tester) {
	t.Helper()
	objects, err := openBucket()
	if err != nil {
		t.Fatal(err)
	}
	root := "memory://lake/tables"
	if l.objects = objects; objects == nil {
		l.objects = mem.New()
	} else {
		root = bucketOf() + "/" + uuid.NewString()
	}
	if l.root, err = lance.ParseLocation(root); err != nil {
		t.Fatal(err)
	}
}

// bucketOf is the bucket that the environment names; "" for none.
func bucketOf() string {
	for _, named := range []struct{ scheme, variable string }{
		{"s3", "LANCEREST_TEST_S3_BUCKET"}, {"gs", "LANCEREST_TEST_GCS_BUCKET"}, {"az", "LANCEREST_TEST_AZURE_CONTAINER"},
	} {
		if name := os.Getenv(named.variable); name != "" {
			return named.scheme + "://" + name
		}
	}
	return ""
}

// openBucket opens it, once; nil for none.
var openBucket = sync.OnceValues(func() (objstore.Store, error) {
	switch scheme, name, _ := strings.Cut(bucketOf(), "://"); scheme {
	case "s3":
		return s3.New(context.Background(), s3.Options{Bucket: name})
	case "gs":
		return gcs.New(context.Background(), gcs.Options{Bucket: name})
	case "az":
		return azure.New(azure.Options{Container: name})
	}
	return nil, nil
})

// openState opens the lake's state. Where LANCEREST_STATE names a PostgreSQL database, as test/withpostgres sets it, it lies there in a schema
// of its own, and each server has connections of its own.
func (l *lake) openState(t tester) store.Store {
	t.Helper()
	database := os.Getenv("LANCEREST_STATE")
	if database == "" && l.state != nil {
		return l.state
	}
	var state store.Store
	var err error
	if database == "" {
		state, err = sqlstore.OpenSQLite(context.Background(), sqlstore.Options{Path: filepath.Join(l.dir, "catalog.db"), RunTwice: true})
	} else {
		state, err = openPostgres(database, l.dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := state.Close(); err != nil {
			t.Error(err)
		}
	})
	return state
}

// server is one catalog on a lake, with ways to fail and hold what it does to the state and to storage.
type server struct {
	*catalog.Catalog
	lake    *lake
	objects *objtest.Faulty
	state   *faultyState

	mu     sync.Mutex
	events []catalog.Event
}

// server starts a server. Staged manifests stay for as long as the test unless change says otherwise.
func (l *lake) server(t tester, change ...func(*catalog.Options)) *server {
	t.Helper()
	s := &server{lake: l, objects: objtest.NewFaulty(l.objects), state: newFaultyState(l.openState(t))}
	opts := catalog.Options{
		Store: s.state, Roots: []catalog.Root{{Location: l.root, Objects: s.objects}}, Notify: s.notify, StagedKeep: time.Hour,
		CommitTimeout: 20 * time.Second,
	}
	for _, f := range change {
		f(&opts)
	}
	var err error
	if s.Catalog, err = catalog.New(context.Background(), opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// What the test did not let go of would hold Close up.
		s.kill()
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newServer starts a server on a lake of its own.
func newServer(t testing.TB, change ...func(*catalog.Options)) *server {
	t.Helper()
	return newLake(t).server(t, change...)
}

func (s *server) notify(_ context.Context, e catalog.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// told reports how often an event of a kind was notified.
func (s *server) told(kind catalog.EventKind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// kill makes the server unable to do anything more, as death does: what it has under way fails.
func (s *server) kill() {
	s.state.dead.Store(true)
	s.objects.Heal()
	s.objects.Fail(objtest.Match{Times: objtest.Forever}, objtest.Before, nil)
}

// faultyState is a store.Store that fails on demand.
type faultyState struct {
	store.Store
	dead atomic.Bool

	mu     sync.Mutex
	before func() error // called once for the next Update, before it runs
	after  func() error // called once for the next Update, once it is durable
}

func newFaultyState(inner store.Store) *faultyState { return &faultyState{Store: inner} }

// beforeUpdate makes the next Update call f first, and fail with its error.
func (s *faultyState) beforeUpdate(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// afterUpdate makes the next Update call f when it is durable, and fail with its error.
func (s *faultyState) afterUpdate(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = f
}

func (s *faultyState) take() (before, after func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after = s.before, s.after
	s.before, s.after = nil, nil
	return before, after
}

func (s *faultyState) View(ctx context.Context, fn func(store.Reader) error) error {
	if s.dead.Load() {
		return fmt.Errorf("view: %w", store.ErrUnavailable)
	}
	return s.Store.View(ctx, fn)
}

func (s *faultyState) Update(ctx context.Context, fn func(store.Tx) error) error {
	if s.dead.Load() {
		return fmt.Errorf("update: %w", store.ErrUnavailable)
	}
	before, after := s.take()
	if before != nil {
		if err := before(); err != nil {
			return err
		}
	}
	if err := s.Store.Update(ctx, fn); err != nil || after == nil {
		return err
	}
	return after()
}

// table is a table that a test declared.
type table struct {
	id       []string
	dir      string // the key of its directory
	location string
}

// table is one that may be declared in a directory of the test's choice, right below the root.
func (l *lake) table(name, dir string) table {
	return table{id: []string{name}, dir: l.root.Key() + "/" + dir, location: l.root.String() + "/" + dir}
}

// declare declares a table in the root namespace.
func (s *server) declare(t tester, name string) table {
	t.Helper()
	resp, err := s.DeclareTable(context.Background(), &api.DeclareTableRequest{Target: api.At(name)})
	if err != nil {
		t.Fatal(err)
	}
	return tableAt(t, name, *resp.Location)
}

func tableAt(t tester, name, location string) table {
	t.Helper()
	loc, err := lance.ParseLocation(location)
	if err != nil {
		t.Fatal(err)
	}
	return table{id: []string{name}, dir: loc.Key(), location: location}
}

// staged is a manifest that a client has written and asks to have published.
type staged struct {
	table table
	api.StagedVersion
	data []byte
}

// stage writes a staged manifest of a version of main, as clients do.
func (l *lake) stage(t tester, tb table, v int64) staged {
	t.Helper()
	return l.stageOn(t, tb, lance.Main, v)
}

func (l *lake) stageOn(t tester, tb table, b lance.Branch, v int64) staged {
	t.Helper()
	mark := uuid.NewString()
	data := lancetest.Manifest(lancetest.Spec{Version: lance.VersionNumber(v), Read: lance.VersionNumber(v - 1), Mark: mark})
	return l.stageBytes(t, tb, b, v, data)
}

func (l *lake) stageBytes(t tester, tb table, b lance.Branch, v int64, data []byte) staged {
	t.Helper()
	path := lance.ManifestKey(tb.dir, b, lance.VersionNumber(v), lance.SchemeV2) + "-" + uuid.NewString()
	l.put(t, path, data)
	sv := staged{table: tb, data: data, StagedVersion: api.StagedVersion{
		Version: v, ManifestPath: path, Metadata: map[string]string{"mark": lancetest.Mark(data)},
	}}
	if b != lance.Main {
		name := string(b)
		sv.Branch = &name
	}
	return sv
}

// bypass publishes a manifest under a version's final name, as writers do that know nothing of the catalog.
func (l *lake) bypass(t tester, tb table, v int64) []byte {
	t.Helper()
	data := lancetest.Manifest(lancetest.Spec{Version: lance.VersionNumber(v), Read: lance.VersionNumber(v - 1), Mark: "bypass " + uuid.NewString()})
	l.put(t, tb.final(v), data)
	return data
}

func (l *lake) put(t tester, key string, data []byte) {
	t.Helper()
	if _, err := l.objects.PutIfAbsent(context.Background(), key, data); err != nil {
		t.Fatal(err)
	}
}

func (l *lake) remove(t tester, key string) {
	t.Helper()
	if err := l.objects.Delete(context.Background(), key); err != nil {
		t.Fatal(err)
	}
}

// holds fails the test unless an object has these bytes; nil means that there is none.
func (l *lake) holds(t tester, key string, want []byte) {
	t.Helper()
	got, _, err := l.objects.Get(context.Background(), key, 0)
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		if want != nil {
			t.Errorf("there is no object %s", key)
		}
	case err != nil:
		t.Fatal(err)
	case want == nil:
		t.Errorf("there is an object %s (mark %q), want none", key, lancetest.Mark(got))
	case !bytes.Equal(got, want):
		t.Errorf("object %s has mark %q, want %q", key, lancetest.Mark(got), lancetest.Mark(want))
	}
}

// final is the key of a version of main.
func (tb table) final(v int64) string { return tb.finalOn(lance.Main, v) }

func (tb table) finalOn(b lance.Branch, v int64) string {
	return lance.ManifestKey(tb.dir, b, lance.VersionNumber(v), lance.SchemeV2)
}

// create commits one staged version.
func (s *server) create(ctx context.Context, sv staged) (*api.TableVersion, error) {
	resp, err := s.CreateTableVersion(ctx, sv.request())
	if err != nil {
		return nil, err
	}
	return resp.Version, nil
}

func (sv staged) request() *api.CreateTableVersionRequest {
	return &api.CreateTableVersionRequest{Target: api.At(sv.table.id...), StagedVersion: sv.StagedVersion}
}

// batch commits staged versions together.
func (s *server) batch(ctx context.Context, versions ...staged) (*api.BatchCreateTableVersionsResponse, error) {
	req := &api.BatchCreateTableVersionsRequest{}
	for _, sv := range versions {
		req.Entries = append(req.Entries, api.CreateTableVersionEntry{ID: sv.table.id, StagedVersion: sv.StagedVersion})
	}
	return s.BatchCreateTableVersions(ctx, req)
}

// mixed performs operations together.
func (s *server) mixed(ctx context.Context, ops ...api.CommitTableOperation) (*api.BatchCommitTablesResponse, error) {
	return s.BatchCommitTables(ctx, &api.BatchCommitTablesRequest{Operations: ops})
}

// mustCreate commits one staged version, which has to succeed.
func (s *server) mustCreate(t tester, sv staged) *api.TableVersion {
	t.Helper()
	v, err := s.create(context.Background(), sv)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// fill commits versions first to last of main.
func (s *server) fill(t tester, tb table, first, last int64) {
	t.Helper()
	for v := first; v <= last; v++ {
		s.mustCreate(t, s.lake.stage(t, tb, v))
	}
}

// describe describes one version of main.
func (s *server) describe(ctx context.Context, tb table, v int64) (*api.TableVersion, error) {
	resp, err := s.DescribeTableVersion(ctx, &api.DescribeTableVersionRequest{Target: api.At(tb.id...), Version: &v})
	if err != nil {
		return nil, err
	}
	return &resp.Version, nil
}

// shows fails the test unless a version is described and its manifest holds these bytes.
func (s *server) shows(t tester, tb table, v int64, want []byte) {
	t.Helper()
	got, err := s.describe(context.Background(), tb, v)
	if err != nil {
		t.Errorf("describe version %d of %v: %v", v, tb.id, err)
		return
	}
	if got.Version != v || got.ManifestPath != tb.final(v) {
		t.Errorf("version %d of %v is described as %d at %s, want it at %s", v, tb.id, got.Version, got.ManifestPath, tb.final(v))
	}
	s.lake.holds(t, got.ManifestPath, want)
}

// list returns the versions of main, oldest first.
func (s *server) list(t tester, tb table) []int64 {
	t.Helper()
	numbers, err := s.listOn(tb, lance.Main)
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

func (s *server) listOn(tb table, b lance.Branch) ([]int64, error) {
	name := b.String()
	resp, err := s.ListTableVersions(context.Background(), &api.ListTableVersionsRequest{Target: api.At(tb.id...), Branch: &name})
	if err != nil {
		return nil, err
	}
	numbers := []int64{}
	for _, v := range resp.Versions {
		numbers = append(numbers, v.Version)
	}
	return numbers, nil
}

// listed fails the test unless the versions of main are the given ones.
func (s *server) listed(t tester, tb table, want ...int64) {
	t.Helper()
	if got := s.list(t, tb); !slices.Equal(got, want) {
		t.Errorf("versions of %v are %v, want %v", tb.id, got, want)
	}
}

// wantCode fails the test unless err is an error of the code whose text holds all the given words.
func wantCode(t tester, err error, code api.Code, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want code %v", code)
	}
	if got := api.CodeOf(err); got != code {
		t.Fatalf("code %v, want %v: %v", got, code, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// putOf selects the puts of one key.
func putOf(key string) objtest.Match {
	return objtest.Match{Op: objtest.OpPutIfAbsent, Key: is(key)}
}

func is(key string) func(string) bool { return func(k string) bool { return k == key } }

// within waits for a channel, and fails the test if it takes a minute: something waits that must not.
func within[T any](t tester, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("%s: nothing happened within a minute", what)
		panic("unreachable")
	}
}

// async runs f and returns where its result will be.
func async[T any](f func() T) <-chan T {
	c := make(chan T, 1)
	go func() { c <- f() }()
	return c
}

// pending returns the transactions that are pending now.
func (l *lake) pending(t tester) []lance.TransactionID {
	t.Helper()
	var ids []lance.TransactionID
	err := l.state.View(context.Background(), func(r store.Reader) (err error) {
		ids, err = r.PendingTransactions(time.Now().Add(time.Hour), 1000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// abandon leaves a batch of versions pending: a server of its own reserves it, publishes the first of the versions, and dies.
func (l *lake) abandon(t tester, versions ...staged) {
	t.Helper()
	s := l.server(t, func(o *catalog.Options) { o.Parallel = 1 })
	reached := make(chan error, 1)
	m := objtest.Match{Op: objtest.OpPutIfAbsent, Nth: min(len(versions), 2), Key: func(key string) bool {
		return slices.ContainsFunc(versions, func(sv staged) bool {
			branch := lance.Main
			if sv.Branch != nil {
				branch = lance.Branch(*sv.Branch)
			}
			return key == sv.table.finalOn(branch, sv.Version)
		})
	}}
	gate := s.objects.Hold(m, objtest.Before)
	go func() {
		_, err := s.batch(context.Background(), versions...)
		reached <- err
	}()
	within(t, "publish", gate.Reached())
	s.kill()
	gate.Drop()
	wantCode(t, within(t, "the dying server's answer", reached), api.CodeInternal)
	if len(l.pending(t)) == 0 {
		t.Fatal("nothing was left pending")
	}
}

// runJobs runs the jobs of a kind, whether they are due or not.
func (s *server) runJobs(t tester, kind string) int {
	t.Helper()
	var jobs []store.Job
	err := s.lake.state.View(context.Background(), func(r store.Reader) (err error) {
		jobs, err = r.Jobs(kind, 0, 1000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		if err := s.RunJob(context.Background(), job); err != nil {
			t.Errorf("job %s: %v", kind, err)
		}
	}
	return len(jobs)
}
