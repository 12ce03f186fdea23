package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/telemetry"
)

// fakeCollector takes spans over HTTP as a collector does, and keeps them.
type fakeCollector struct {
	*httptest.Server

	mu       sync.Mutex
	refuse   bool
	err      error
	raw      bytes.Buffer
	resource map[string]string
	spans    []*spans.Span
	came     chan struct{} // one value for each request, as far as there is room
}

func newCollector(t testing.TB) *fakeCollector {
	t.Helper()
	c := &fakeCollector{came: make(chan struct{}, 100)}
	c.Server = httptest.NewServer(c)
	t.Cleanup(func() {
		c.Close()
		if c.err != nil {
			t.Error(c.err)
		}
	})
	return c
}

// ServeHTTP takes one export.
func (c *fakeCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.take(r); err != nil {
		c.err = errors.Join(c.err, err)
	}
	if c.refuse {
		w.WriteHeader(http.StatusForbidden)
	}
	select {
	case c.came <- struct{}{}:
	default:
	}
}

func (c *fakeCollector) take(r *http.Request) error {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = unzipped
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if r.URL.Path != "/v1/traces" || r.Method != http.MethodPost {
		return errors.New("asked for " + r.Method + " " + r.URL.Path)
	}
	c.raw.Write(data)
	var request collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(data, &request); err != nil {
		return err
	}
	for _, of := range request.ResourceSpans {
		c.resource = attributes(of.Resource.Attributes)
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	return nil
}

// names returns the names of the spans that came.
func (c *fakeCollector) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := []string{}
	for _, s := range c.spans {
		names = append(names, s.Name)
	}
	return names
}

func (c *fakeCollector) url() string { return c.URL + "/v1/traces" }

// attributes writes attributes as text.
func attributes(all []*common.KeyValue) map[string]string {
	m := map[string]string{}
	for _, kv := range all {
		var texts []string
		switch v := kv.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			texts = append(texts, v.StringValue)
		case *common.AnyValue_ArrayValue:
			for _, e := range v.ArrayValue.Values {
				texts = append(texts, e.GetStringValue())
			}
		default:
			texts = append(texts, strings.TrimPrefix(kv.Value.String(), "int_value:"))
		}
		m[kv.Key] = strings.Join(texts, ",")
	}
	return m
}

// traced runs a server that sends its traces to a collector until the returned function is called.
func traced(t *testing.T, endpoint string) (url string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a, err := app.New(ctx, app.Config{Data: t.TempDir(), Listen: "127.0.0.1:0", Traces: endpoint, Version: "1.2.3"})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	return a.URL(), func() {
		t.Helper()
		cancel()
		if err := errors.Join(<-ended, a.Close()); err != nil {
			t.Error(err)
		}
	}
}

// post sends a request and returns the id that the server gave it.
func post(t *testing.T, url, body string, header map[string]string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.Header.Get("X-Request-Id")
}

// TestTracesOfAServer: each operation is one span, named for it, that tells what it came to; it belongs to the caller's trace where there is
// one; it holds no secret; and a server that stops sends what waits.
func TestTracesOfAServer(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-do-not-tell"
	c := newCollector(t)
	url, stop := traced(t, c.url())
	began := time.Now()
	header := map[string]string{
		"traceparent": "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01", "tracestate": "vendor=1",
		"x-api-key": secret, "Authorization": "Bearer " + secret, "Cookie": secret, "baggage": "key=" + secret, "x-lance-ctx-a": secret,
	}
	secrets := `{"identity":{"api_key":"` + secret + `"},"properties":{"a":"` + secret + `"},"context":{"b":"` + secret + `"}}`
	requests := []string{
		post(t, url+"/v1/namespace/n/create?storage_options="+secret, secrets, header),
		post(t, url+"/v1/table/n$none/describe?token="+secret, `{"version":"`+secret+`"}`, header),
		post(t, url+"/v1/table/n$none/describe", `{}`, nil),
		post(t, url+"/v1/nowhere", ``, header),
	}
	post(t, url+"/v1/table/unsampled/describe", `{}`, map[string]string{"traceparent": "00-aaaa456789abcdef0123456789abcdef-0123456789abcdef-00"})
	stop()
	if diff := cmp.Diff([]string{"CreateNamespace", "DescribeTable", "DescribeTable"}, c.names()); diff != "" {
		t.Fatalf("spans (-want +got):\n%s", diff)
	}
	want := []map[string]string{
		{"lancerest.request": requests[0], "lancerest.id": "n", "http.response.status_code": "200"},
		{"lancerest.request": requests[1], "lancerest.code": "13", "http.response.status_code": "400"},
		{"lancerest.request": requests[2], "lancerest.id": "n,none", "lancerest.code": "4", "http.response.status_code": "404"},
	}
	for i, s := range c.spans {
		if diff := cmp.Diff(want[i], attributes(s.Attributes)); diff != "" {
			t.Errorf("attributes of span %d (-want +got):\n%s", i, diff)
		}
		started, ended := time.Unix(0, int64(s.StartTimeUnixNano)), time.Unix(0, int64(s.EndTimeUnixNano))
		if started.Before(began) || !ended.After(started) || s.Kind != spans.Span_SPAN_KIND_SERVER || s.Status.GetCode() != spans.Status_STATUS_CODE_UNSET {
			t.Errorf("span %d: %v", i, s)
		}
		fromCaller := string(s.ParentSpanId) == "\x01\x23\x45\x67\x89\xab\xcd\xef" && s.TraceId[0] == 0x01 && s.TraceState == "vendor=1"
		if fromCaller != (i < 2) {
			t.Errorf("span %d has trace %x, parent %x and state %q; want the caller's: %v", i, s.TraceId, s.ParentSpanId, s.TraceState, i < 2)
		}
	}
	if c.resource["service.name"] != "lancerest" || c.resource["service.version"] != "1.2.3" {
		t.Errorf("resource %v", c.resource)
	}
	if bytes.Contains(c.raw.Bytes(), []byte(secret)) {
		t.Error("the spans tell a secret")
	}
}

// TestServersFailureIsAnError: only what the server could not do marks a span.
func TestServersFailureIsAnError(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	traces, err := telemetry.NewTraces(t.Context(), telemetry.TraceOptions{Endpoint: c.url()})
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []int{200, 499, 500, 503} {
		_, span := traces.Start(t.Context(), "Op", time.Now(), func(string) string { return "" })
		span.End(telemetry.Outcome{Status: status, Code: 18})
		if len(span.TraceID()) != 32 {
			t.Errorf("trace id %q", span.TraceID())
		}
	}
	if err := traces.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, s := range c.spans {
		if got := s.Status.GetCode() == spans.Status_STATUS_CODE_ERROR; got != (i >= 2) || s.Status.GetMessage() != "" {
			t.Errorf("span %d: status %v", i, s.Status)
		}
	}
	if len(c.spans) != 4 {
		t.Errorf("%d spans, want 4", len(c.spans))
	}
}

// TestNoTraces: without traces there is nothing to do, and nothing to check for.
func TestNoTraces(t *testing.T) {
	t.Parallel()
	var traces *telemetry.Traces
	ctx, span := traces.Start(t.Context(), "Op", time.Now(), nil)
	span.End(telemetry.Outcome{Status: 200, Code: -1})
	if ctx != t.Context() || span.TraceID() != "" || traces.Close(t.Context()) != nil {
		t.Error("no traces do something")
	}
}

// TestCollectorGone: that the collector cannot be reached is no reason for a server to fail, to hang when it stops, or to serve worse.
func TestCollectorGone(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	url, stop := traced(t, gone.URL+"/v1/traces")
	if post(t, url+"/v1/namespace/n/create", `{}`, nil) == "" {
		t.Error("no answer")
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the stop took %s", took)
	}
}

// TestReport: it is told once that spans cannot be delivered, and once that they can again. It sets how often spans are sent, for the
// whole process: it cannot run beside others.
func TestReport(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	c := newCollector(t)
	c.refuse = true
	told := make(chan error, 100)
	traces, err := telemetry.NewTraces(t.Context(), telemetry.TraceOptions{Endpoint: c.url(), Report: func(err error) { told <- err }})
	if err != nil {
		t.Fatal(err)
	}
	send := func() {
		t.Helper()
		_, span := traces.Start(t.Context(), "Op", time.Now(), func(string) string { return "" })
		span.End(telemetry.Outcome{Status: 200, Code: -1})
		select {
		case <-c.came:
		case <-time.After(time.Minute):
			t.Fatal("no spans came within a minute")
		}
	}
	for range 3 {
		send()
	}
	if err := <-told; err == nil {
		t.Error("told that all is well")
	}
	c.mu.Lock()
	c.refuse = false
	c.mu.Unlock()
	for range 2 {
		send()
	}
	if err := traces.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-told; err != nil {
		t.Errorf("told of %v, want that all is well again", err)
	}
	if len(told) != 0 {
		t.Errorf("told %d more times", len(told))
	}
}

// TestEndpointRefused: what is no URL is refused with one that is, and a password in it is not repeated.
func TestEndpointRefused(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"", "collector:4318", "/v1/traces", "ftp://c/v1/traces", "http://", "http://u:hunter2@c:x/", "grpc://u:hunter2@c"} {
		_, err := telemetry.NewTraces(t.Context(), telemetry.TraceOptions{Endpoint: endpoint})
		if err == nil || !strings.Contains(err.Error(), "http://127.0.0.1:4318/v1/traces") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: error %v, want one that shows a right one and no secret", endpoint, err)
		}
	}
}

func BenchmarkSpan(b *testing.B) {
	c := newCollector(b)
	on, err := telemetry.NewTraces(b.Context(), telemetry.TraceOptions{Endpoint: c.url()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = on.Close(context.Background()) })
	for name, traces := range map[string]*telemetry.Traces{"off": nil, "on": on} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, span := traces.Start(b.Context(), "Op", time.Time{}, func(string) string { return "" })
				span.End(telemetry.Outcome{Request: "r", Target: []string{"t"}, Status: 200, Code: -1})
			}
		})
	}
}
