package s3_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lancerest/lancerest/internal/objstore/s3"
)

// front stands before the S3 server and does with each request what its plan says; where that is used up it passes requests on.
type front struct {
	*httptest.Server
	inner *httputil.ReverseProxy

	mu   sync.Mutex
	plan []step
	rest step // what becomes of requests once the plan is used up
	seen []string
}

// step is what becomes of one request.
type step func(w http.ResponseWriter, r *http.Request, inner http.Handler)

// pass lets a request through.
func pass(w http.ResponseWriter, r *http.Request, inner http.Handler) { inner.ServeHTTP(w, r) }

// says answers in place of the server, with S3's error document.
func says(status int, code string) step {
	return answers(status, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>`+code+`</Code><Message>made up</Message></Error>`)
}

// answers does so with any body.
func answers(status int, body string) step {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client is gone
	}
}

// loses cuts the connection instead of answering, without passing the request on.
func loses(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// losesAnswer passes the request on and cuts the connection instead of answering.
func losesAnswer(_ http.ResponseWriter, r *http.Request, inner http.Handler) {
	inner.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// tears lets the head of an answer through and half of its body.
func tears(w http.ResponseWriter, r *http.Request, inner http.Handler) {
	whole := httptest.NewRecorder()
	inner.ServeHTTP(whole, r)
	for name, values := range whole.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(whole.Code)
	body := whole.Body.Bytes()
	_, _ = w.Write(body[:len(body)/2])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// times repeats a step.
func times(n int, s step) []step { return slices.Repeat([]step{s}, n) }

// behind returns a store that reaches the server through a front.
func behind(t *testing.T, change ...func(*s3.Options)) (*s3.Store, *front) {
	t.Helper()
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{inner: &httputil.ReverseProxy{
		// The host stays: it is part of what is signed.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, r.In.Host
		},
	}}
	f.rest = pass
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return open(t, append([]func(*s3.Options){func(o *s3.Options) { o.Endpoint = f.URL }}, change...)...), f
}

// will sets what becomes of the next requests.
func (f *front) will(plan ...step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.seen = plan, nil
}

// always sets what becomes of every request.
func (f *front) always(rest step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rest = rest
}

// requests returns the requests since will, as methods with the names of parameters: "GET", "POST?delete".
func (f *front) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	kind := r.Method
	for _, name := range []string{"delete", "uploads", "uploadId", "list-type"} {
		if r.URL.Query().Has(name) {
			kind += "?" + name
		}
	}
	f.seen = append(f.seen, kind)
	next := f.rest
	if len(f.plan) > 0 {
		next, f.plan = f.plan[0], f.plan[1:]
	}
	f.mu.Unlock()
	next(w, r, f.inner)
}

// count counts requests of a kind.
func count(requests []string, kind string) int {
	n := 0
	for _, r := range requests {
		if strings.HasPrefix(r, kind) {
			n++
		}
	}
	return n
}
