package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/httpapi"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/mem"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// lake is what servers share: a state and a storage, and the state's clock.
type lake struct {
	root    lance.Location
	dir     string // of the state
	state   *sqlstore.SQLite
	objects objstore.Store
	access  *access.Access // what the root gives to clients; nil is nothing
	ahead   atomic.Int64   // how far the state's clock is ahead, in nanoseconds
}

func newLake(t testing.TB) *lake {
	t.Helper()
	l := &lake{objects: mem.New(), dir: t.TempDir()}
	var err error
	l.state, err = sqlstore.OpenSQLite(context.Background(), sqlstore.Options{
		Path: filepath.Join(l.dir, "catalog.db"), Now: func() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.state.Close(); err != nil {
			t.Error(err)
		}
	})
	if l.root, err = lance.ParseLocation("memory://lake/tables"); err != nil {
		t.Fatal(err)
	}
	return l
}

// server is one running server on a lake.
type server struct {
	lake    *lake
	url     string
	handler *httpapi.Handler
	catalog *catalog.Catalog
	objects *objtest.Faulty
	state   *watched
	log     *lines
}

// serve starts a server on a port of its own; change says how it differs from the usual one.
func (l *lake) serve(t testing.TB, change ...func(*httpapi.Options)) *server {
	t.Helper()
	s := &server{lake: l, objects: objtest.NewFaulty(l.objects), state: &watched{Store: l.state}, log: newLines()}
	var err error
	s.catalog, err = catalog.New(context.Background(), catalog.Options{
		Store: s.state, Roots: []catalog.Root{{Location: l.root, Objects: s.objects, Access: l.access}}, StagedKeep: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	opts := httpapi.Options{Catalog: s.catalog, Logger: slog.New(slog.NewJSONHandler(s.log, nil))}
	for _, f := range change {
		f(&opts)
	}
	if s.handler, err = httpapi.New(opts); err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(s.handler)
	s.url = listening.URL
	t.Cleanup(func() {
		listening.CloseClientConnections() // a test that failed may have left requests waiting
		listening.Close()
		if err := s.catalog.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newServer starts a server on a lake of its own.
func newServer(t testing.TB, change ...func(*httpapi.Options)) *server {
	t.Helper()
	return newLake(t).serve(t, change...)
}

// watched is a state that tells of its next update before it runs.
type watched struct {
	store.Store
	mu     sync.Mutex
	before func() error // called once; its error fails the update
}

func (s *watched) beforeUpdate(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

func (s *watched) Update(ctx context.Context, fn func(store.Tx) error) error {
	s.mu.Lock()
	before := s.before
	s.before = nil
	s.mu.Unlock()
	if before != nil {
		if err := before(); err != nil {
			return err
		}
	}
	return s.Store.Update(ctx, fn)
}

// lines is a log, one JSON object a line.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // replaced and closed at each line
}

func newLines() *lines { return &lines{more: make(chan struct{})} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.more)
	l.more = make(chan struct{})
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// find waits for a line that match accepts: a line is written after its request was answered.
func (l *lines) find(t testing.TB, what string, match func(map[string]any) bool) map[string]any {
	t.Helper()
	patience := time.After(time.Minute)
	for {
		l.mu.Lock()
		text, more := l.text.String(), l.more
		l.mu.Unlock()
		for line := range strings.Lines(text) {
			entry := map[string]any{}
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatalf("the log holds %q: %v", line, err)
			}
			if match(entry) {
				return entry
			}
		}
		select {
		case <-more:
		case <-patience:
			t.Fatalf("no line %s in the log:\n%s", what, text)
		}
	}
}

// of finds the line of a request by its id.
func (l *lines) of(t testing.TB, request string) map[string]any {
	t.Helper()
	return l.find(t, "of request "+request, func(e map[string]any) bool { return e["request"] == request })
}

// reply is an answer as it arrived.
type reply struct {
	status int
	header http.Header
	body   string
}

// call is a request that a test sends.
type call struct {
	path   string // with its query
	body   string
	header map[string]string
	ctx    context.Context // nil for one that does not end
}

// with returns the call with one more header.
func (c call) with(name, value string) call {
	header := map[string]string{name: value}
	for k, v := range c.header {
		if k != name {
			header[k] = v
		}
	}
	c.header = header
	return c
}

// send sends a POST and returns the answer.
func (s *server) send(t testing.TB, c call) reply {
	t.Helper()
	r, err := s.try(http.MethodPost, c)
	if err != nil {
		t.Error(err) // not Fatal: tests send from goroutines too
	}
	return r
}

// get sends a GET.
func (s *server) get(t testing.TB, path string) reply {
	t.Helper()
	r, err := s.try(http.MethodGet, call{path: path})
	if err != nil {
		t.Error(err)
	}
	return r
}

func (s *server) try(method string, c call) (reply, error) {
	if c.ctx == nil {
		c.ctx = context.Background()
	}
	req, err := http.NewRequestWithContext(c.ctx, method, s.url+c.path, strings.NewReader(c.body))
	if err != nil {
		return reply{}, err
	}
	for name, value := range c.header {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	text, err := io.ReadAll(res.Body)
	return reply{status: res.StatusCode, header: res.Header, body: string(text)}, errors.Join(err, res.Body.Close())
}

// must sends a request that has to succeed.
func (s *server) must(t testing.TB, path string, body any) reply {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r := s.send(t, call{path: path, body: string(text)})
	if r.status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", path, text, r.status, r.body)
	}
	return r
}

// fails fails the test unless the answer is a JSON error with the status, the code and all the words.
func (r reply) fails(t testing.TB, status int, code api.Code, words ...string) {
	t.Helper()
	var e api.Error
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || r.header.Get("Content-Type") != api.JSONType {
		t.Errorf("%d %s %q: want a JSON error", r.status, r.header.Get("Content-Type"), r.body)
		return
	}
	if r.status != status || e.Code != code {
		t.Errorf("%d with code %v, want %d with %v: %s", r.status, e.Code, status, code, r.body)
	}
	if e.Message == "" || e.Instance != r.header.Get("X-Request-Id") {
		t.Errorf("error %+v under request %q: want a text, and the request as its instance", e, r.header.Get("X-Request-Id"))
	}
	for _, w := range words {
		if !strings.Contains(e.Message, w) {
			t.Errorf("error %q does not say %q", e.Message, w)
		}
	}
}

// declare declares a table in the root namespace and returns the key of its directory.
func (s *server) declare(t testing.TB, name string) string {
	t.Helper()
	var resp api.DeclareTableResponse
	if err := json.Unmarshal([]byte(s.must(t, "/v1/table/"+name+"/declare", map[string]any{}).body), &resp); err != nil {
		t.Fatal(err)
	}
	loc, err := lance.ParseLocation(*resp.Location)
	if err != nil {
		t.Fatal(err)
	}
	return loc.Key()
}

// stage writes a staged manifest of a version as clients do, and returns the request that publishes it.
func (s *server) stage(t testing.TB, dir string, v int64) api.StagedVersion {
	t.Helper()
	data := lancetest.Manifest(lancetest.Spec{Version: lance.VersionNumber(v), Read: lance.VersionNumber(v - 1), Mark: uuid.NewString()})
	path := lance.ManifestKey(dir, lance.Main, lance.VersionNumber(v), lance.SchemeV2) + "-" + uuid.NewString()
	if _, err := s.lake.objects.PutIfAbsent(context.Background(), path, data); err != nil {
		t.Fatal(err)
	}
	return api.StagedVersion{Version: v, ManifestPath: path}
}

// table declares a table with versions 1 to n.
func (s *server) table(t testing.TB, name string, n int64) string {
	t.Helper()
	dir := s.declare(t, name)
	for v := int64(1); v <= n; v++ {
		s.must(t, "/v1/table/"+name+"/version/create", s.stage(t, dir, v))
	}
	return dir
}

// async runs f and returns where its result will be.
func async[T any](f func() T) <-chan T {
	c := make(chan T, 1)
	go func() { c <- f() }()
	return c
}

// within waits for a channel, and fails the test if it takes a minute: something waits that must not.
func within[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("%s: nothing happened within a minute", what)
		panic("unreachable")
	}
}

func toJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
