package httpapi_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/httpapi"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/telemetry"
)

// limited sets the limits of a server.
func limited(l httpapi.Limits) func(*httpapi.Options) {
	return func(o *httpapi.Options) { o.Limits = l }
}

// tagCall is a request that is at work for as long as a gate of tagPut is shut.
func tagCall(tag string) call {
	return call{path: "/v1/table/t/tags/create", body: fmt.Sprintf(`{"tag":%q,"version":1}`, tag)}
}

func tagPut() objtest.Match {
	return objtest.Match{Op: objtest.OpPutIfAbsent, Times: objtest.Forever, Key: func(key string) bool { return strings.Contains(key, "/_refs/tags/") }}
}

// TestLateBody: a body that does not arrive in time is answered 408 as JSON, and nothing is done.
func TestLateBody(t *testing.T) {
	t.Parallel()
	s := newServer(t, limited(httpapi.Limits{BodyTime: 50 * time.Millisecond}))
	r := stall(t, s, "POST /v1/namespace/n/create HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	r.fails(t, http.StatusRequestTimeout, api.CodeInvalidInput, "50ms")
	r = stall(t, s, "POST /v1/namespace/n/create HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 100\r\n\r\n\x1f\x8b")
	r.fails(t, http.StatusRequestTimeout, api.CodeInvalidInput, "50ms")
	s.send(t, call{path: "/v1/namespace/n/exists"}).fails(t, http.StatusNotFound, api.CodeNamespaceNotFound)
}

// TestUnwantedBody: an answer that does not need the body does not wait for it without end.
func TestUnwantedBody(t *testing.T) {
	t.Parallel()
	s := newServer(t, limited(httpapi.Limits{BodyTime: 50 * time.Millisecond}))
	for path, status := range map[string]int{"/nowhere": http.StatusNotFound, "/v1/table": http.StatusMethodNotAllowed, "/healthz": http.StatusMethodNotAllowed} {
		stall(t, s, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n").fails(t, status, api.CodeInvalidInput)
	}
	r := stall(t, s, "POST /v1/table/t/drop HTTP/1.1\r\nHost: x\r\nContent-Encoding: br\r\nTransfer-Encoding: chunked\r\n\r\n")
	r.fails(t, http.StatusUnsupportedMediaType, api.CodeInvalidInput)
	r = stall(t, s, "POST /v1/table/t/insert HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
	r.fails(t, http.StatusNotAcceptable, api.CodeUnsupported)
	s.handler.Drain()
	r = stall(t, s, "POST /v1/table/t/drop HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
	r.fails(t, http.StatusServiceUnavailable, api.CodeServiceUnavailable)
}

// stall sends the beginning of a request and no more of it, and returns the answer.
func stall(t *testing.T, s *server, request string) reply {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	return reply{status: res.StatusCode, header: res.Header, body: string(text)}
}

// TestQueue: with one at work and one waiting, a third is refused at once with 503 code 17 and told when to come back; nothing of it was
// done.
func TestQueue(t *testing.T) {
	t.Parallel()
	s := newServer(t, limited(httpapi.Limits{Concurrent: 1, QueueLength: 1}))
	s.table(t, "t", 1)
	gate := s.objects.Hold(tagPut(), objtest.Before)
	answers := make(chan reply, 3)
	send := func(tag string) { answers <- s.send(t, tagCall(tag)) }
	go send("first")
	within(t, "the first at work", gate.Reached())
	go send("second")
	go send("third")
	refused := within(t, "the one too many", answers)
	refused.fails(t, http.StatusServiceUnavailable, api.CodeServiceUnavailable, "nothing was done")
	if refused.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q, want 1", refused.header.Get("Retry-After"))
	}
	if r := s.get(t, "/healthz"); r.status != http.StatusOK {
		t.Errorf("healthz waits in the queue: %d", r.status)
	}
	gate.Release()
	for range 2 {
		if r := within(t, "the others", answers); r.status != http.StatusOK {
			t.Errorf("%d %s, want success", r.status, r.body)
		}
	}
	tags := s.send(t, call{path: "/v1/table/t/tags/list"}).body
	if n := strings.Count(tags, `"version"`); n != 2 || !strings.Contains(tags, `"first"`) {
		t.Errorf("tags %s, want the first and one of the others", tags)
	}
}

// TestQueueTime: who waits for too long is refused as well.
func TestQueueTime(t *testing.T) {
	t.Parallel()
	s := newServer(t, limited(httpapi.Limits{Concurrent: 1, QueueTime: 20 * time.Millisecond}))
	s.table(t, "t", 1)
	gate := s.objects.Hold(tagPut(), objtest.Before)
	first := async(func() reply { return s.send(t, tagCall("first")) })
	within(t, "the first at work", gate.Reached())
	s.send(t, tagCall("second")).fails(t, http.StatusServiceUnavailable, api.CodeServiceUnavailable, "20ms", "nothing was done")
	gate.Release()
	if r := within(t, "the first", first); r.status != http.StatusOK {
		t.Errorf("the first: %d %s", r.status, r.body)
	}
}

// TestConcurrent: as many are at work at a time as the limit says, and not fewer.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	s := newServer(t, limited(httpapi.Limits{Concurrent: 3, QueueLength: 1, QueueTime: 20 * time.Millisecond}))
	s.table(t, "t", 1)
	var gates []*objtest.Gate
	var answers []<-chan reply
	for _, tag := range []string{"a", "b", "c"} {
		m := tagPut()
		m.Key = func(key string) bool { return strings.HasSuffix(key, "/_refs/tags/"+tag+".json") }
		gates = append(gates, s.objects.Hold(m, objtest.Before))
		answers = append(answers, async(func() reply { return s.send(t, tagCall(tag)) }))
	}
	for _, gate := range gates {
		within(t, "all three at work", gate.Reached())
	}
	s.send(t, tagCall("d")).fails(t, http.StatusServiceUnavailable, api.CodeServiceUnavailable)
	for _, gate := range gates {
		gate.Release()
	}
	for _, a := range answers {
		if r := within(t, "an answer", a); r.status != http.StatusOK {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
}

// TestSlowCallersTakeNoPlace: callers whose bodies have not arrived do not keep others from working.
func TestSlowCallersTakeNoPlace(t *testing.T) {
	t.Parallel()
	s := newServer(t, limited(httpapi.Limits{Concurrent: 1, QueueLength: 1}))
	for range 3 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /v1/namespace/slow/create HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n")
		if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil { // "100 Continue": the server reads the body now
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		s.must(t, "/v1/namespace/"+name+"/create", map[string]any{})
	}
}

// TestGivenUpInTheQueue: a caller who goes away while it waits has had no effect, and gives its turn to the next.
// queued returns once the metrics say that so many operations wait for their turn.
func (s *server) queued(t testing.TB, n int) {
	t.Helper()
	want := fmt.Sprintf("\nlancerest_operations_queued %d\n", n)
	for deadline := time.Now().Add(time.Minute); !strings.Contains(string(s.get(t, "/metrics").body), want); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the metrics do not say %q within a minute", strings.TrimSpace(want))
		}
	}
}

func TestGivenUpInTheQueue(t *testing.T) {
	t.Parallel()
	s := newServer(t, limited(httpapi.Limits{Concurrent: 1, QueueLength: 1}), func(o *httpapi.Options) { o.Metrics = telemetry.New(standing{}, nil) })
	s.table(t, "t", 1)
	gate := s.objects.Hold(tagPut(), objtest.Before)
	first := async(func() reply { return s.send(t, tagCall("first")) })
	within(t, "the first at work", gate.Reached())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	gone := tagCall("gone").with("X-Request-Id", "gone")
	gone.ctx = ctx
	waiting := make(chan error, 1)
	go func() {
		_, err := s.try(http.MethodPost, gone)
		waiting <- err
	}()
	s.queued(t, 1)
	cancel()
	if err := within(t, "the caller that gives up", waiting); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that the caller gave up", err)
	}
	if line := s.log.of(t, "gone"); line["code"] != float64(api.CodeServiceUnavailable) {
		t.Errorf("logged %v, want code 17", line)
	}
	gate.Release()
	if r := within(t, "the first", first); r.status != http.StatusOK {
		t.Errorf("the first: %d %s", r.status, r.body)
	}
	if tags := s.send(t, call{path: "/v1/table/t/tags/list"}).body; strings.Contains(tags, "gone") {
		t.Errorf("tags %s: the caller that gave up had an effect", tags)
	}
}

// TestTooSlow: an operation that takes longer than it may ends, with an error of the server's and not of the caller's.
func TestTooSlow(t *testing.T) {
	t.Parallel()
	s := newServer(t, limited(httpapi.Limits{ReadTime: 50 * time.Millisecond}))
	s.table(t, "t", 1)
	gate := s.objects.Hold(objtest.Match{Times: objtest.Forever}, objtest.Before)
	defer gate.Drop()
	r := s.send(t, call{path: "/v1/table/t/tags/version", body: `{"tag":"x"}`})
	if r.status != http.StatusInternalServerError && r.status != http.StatusServiceUnavailable {
		t.Errorf("%d %s, want 500 or 503", r.status, r.body)
	}
}

// TestLimitsRefused: limits under which nothing could be served make no handler.
func TestLimitsRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for name, limits := range map[string]httpapi.Limits{
		"concurrent": {Concurrent: -1}, "body time": {BodyTime: -time.Second}, "body of": {Body: 5 << 30}, "queue length": {QueueLength: -1},
	} {
		if _, err := httpapi.New(httpapi.Options{Catalog: s.catalog, Limits: limits}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: error %v, want one about %s", limits, err, name)
		}
	}
}

// TestBodies: what arrives compressed counts with its size in memory; what is broken is told from what is too large.
func TestBodies(t *testing.T) {
	t.Parallel()
	s := newServer(t, limited(httpapi.Limits{Body: 1 << 10}))
	fits := `{"pad":"` + strings.Repeat("x", 1<<10-10) + `"}`
	for name, c := range map[string]struct {
		body, encoding string
		status         int
	}{
		"exactly":             {fits, "", http.StatusOK},
		"one more":            {fits + " ", "", http.StatusRequestEntityTooLarge},
		"compressed":          {zip(t, fits), "gzip", http.StatusOK},
		"bomb":                {zip(t, strings.Repeat(" ", 2<<20)), "gzip", http.StatusRequestEntityTooLarge},
		"small bomb":          {zip(t, fits+" "), "GZIP", http.StatusRequestEntityTooLarge},
		"bomb in a bomb":      {zip(t, zip(t, strings.Repeat(" ", 2<<20))), "gzip", http.StatusRequestEntityTooLarge},
		"no gzip":             {"{}", "gzip", http.StatusBadRequest},
		"cut gzip":            {zip(t, fits)[:20], "gzip", http.StatusBadRequest},
		"damaged gzip":        {damaged(zip(t, fits)), "gzip", http.StatusBadRequest},
		"wrong checksum":      {checksum(zip(t, fits)), "gzip", http.StatusBadRequest},
		"unknown encoding":    {fits, "br", http.StatusUnsupportedMediaType},
		"two encodings":       {fits, "gzip, gzip", http.StatusUnsupportedMediaType},
		"no text":             {"{\"a\":\"\xff\"}", "", http.StatusBadRequest},
		"two values":          {"{} {}", "", http.StatusBadRequest},
		"a list":              {"[]", "", http.StatusBadRequest},
		"nothing":             {"", "", http.StatusOK},
		"null":                {" null ", "", http.StatusOK},
		"unknown field":       {`{"nobody":{"knows":[1]}}`, "", http.StatusOK},
		"deeply nested":       {`{"pad":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, "", http.StatusOK},
		"wrong kind of field": {`{"identity":7}`, "", http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.must(t, "/v1/namespace/"+strings.ReplaceAll(name, " ", "-")+"/create", map[string]any{})
			r := s.send(t, call{path: "/v1/namespace/" + strings.ReplaceAll(name, " ", "-") + "/exists", body: c.body, header: map[string]string{"Content-Encoding": c.encoding}})
			if c.status != http.StatusOK {
				r.fails(t, c.status, api.CodeInvalidInput)
			} else if r.status != c.status || r.body != "" {
				t.Errorf("%d %s, want success with an empty body", r.status, r.body)
			}
		})
	}
}

// zip compresses a text.
func zip(t testing.TB, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// damaged changes the compressed bytes, checksum only what is said of them.
func damaged(zipped string) string {
	b := []byte(zipped)
	for i := 10; i < len(b)-8; i++ {
		b[i] ^= 0xff
	}
	return string(b)
}

func checksum(zipped string) string {
	b := []byte(zipped)
	b[len(b)-8] ^= 0xff
	return string(b)
}

// TestAllBodies: the bodies that are held at a time have a bound together, and what is refused for it is given back.
func TestAllBodies(t *testing.T) {
	t.Parallel()
	s := newServer(t, limited(httpapi.Limits{Bodies: 1 << 10}))
	large := call{path: "/v1/namespace/n/create", body: `{"properties":{"a":"` + strings.Repeat("x", 1<<10) + `"}}`}
	for range 3 {
		r := s.send(t, large)
		r.fails(t, http.StatusServiceUnavailable, api.CodeServiceUnavailable, "nothing was done")
	}
	for _, body := range []string{`{}`, `{"properties":{"a":"` + strings.Repeat("x", 900) + `"}}`, `{"properties":7}`, `{`} {
		s.send(t, call{path: "/v1/namespace/n/create", body: body})
	}
	s.must(t, "/v1/namespace/m/create", map[string]any{"properties": map[string]string{"a": strings.Repeat("x", 900)}})
}
