package s3test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Front stands before the S3 server and does with each request what its plan says; where that is used up it passes requests on.
type Front struct {
	*httptest.Server
	server *Server
	inner  *httputil.ReverseProxy

	mu   sync.Mutex
	plan []Step
	rest Step // what becomes of requests once the plan is used up
	seen []string
}

// Step is what becomes of one request.
type Step func(w http.ResponseWriter, r *http.Request, inner http.Handler)

// Pass lets a request through.
func Pass(w http.ResponseWriter, r *http.Request, inner http.Handler) { inner.ServeHTTP(w, r) }

// Says answers in place of the server, with S3's error document.
func Says(status int, code string) Step {
	return Answers(status, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>`+code+`</Code><Message>made up</Message></Error>`)
}

// Answers does so with any body.
func Answers(status int, body string) Step {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client is gone
	}
}

// Loses cuts the connection instead of answering, without passing the request on.
func Loses(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// LosesAnswer passes the request on and cuts the connection instead of answering.
func LosesAnswer(_ http.ResponseWriter, r *http.Request, inner http.Handler) {
	inner.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// Late cuts the connection at once and passes the request on after a while: it takes effect when its sender has given it up, or is dead.
func Late(after time.Duration) Step {
	return func(_ http.ResponseWriter, r *http.Request, inner http.Handler) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			late := r.Clone(context.WithoutCancel(r.Context()))
			late.Body = io.NopCloser(bytes.NewReader(body))
			time.AfterFunc(after, func() { inner.ServeHTTP(httptest.NewRecorder(), late) })
		}
		panic(http.ErrAbortHandler)
	}
}

// Tears lets the head of an answer through and half of its body.
func Tears(w http.ResponseWriter, r *http.Request, inner http.Handler) {
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

// Times repeats a step.
func Times(n int, s Step) []Step { return slices.Repeat([]Step{s}, n) }

// Front starts a front that ends with t.
func (s *Server) Front(t testing.TB) *Front {
	t.Helper()
	target, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	f := &Front{server: s, rest: Pass, inner: &httputil.ReverseProxy{
		// The host stays: it is part of what is signed.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, r.In.Host
		},
	}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// Will sets what becomes of the next requests.
func (f *Front) Will(plan ...Step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.seen = plan, nil
}

// Always sets what becomes of every request.
func (f *Front) Always(rest Step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rest = rest
}

// Requests returns the requests since Will, as methods with the names of parameters: "GET", "POST?delete".
func (f *Front) Requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

// Heedless passes every request on without its conditions, as servers do that know none, and signs it anew.
func (s *Server) Heedless(methods ...string) Step {
	return func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		if slices.Contains(methods, r.Method) {
			r.Header.Del("If-Match")
			r.Header.Del("If-None-Match")
			keys := aws.Credentials{AccessKeyID: s.AccessKey, SecretAccessKey: s.SecretKey}
			r.URL.Host = r.Host
			if err := v4.NewSigner().SignHTTP(r.Context(), keys, r, r.Header.Get("X-Amz-Content-Sha256"), "s3", s.Region, time.Now()); err != nil {
				panic(err)
			}
		}
		inner.ServeHTTP(w, r)
	}
}

// SaysNotImplemented refuses what has a condition.
func SaysNotImplemented(w http.ResponseWriter, r *http.Request, inner http.Handler) {
	if r.Header.Get("If-Match")+r.Header.Get("If-None-Match") != "" {
		Says(501, "NotImplemented")(w, r, inner)
		return
	}
	inner.ServeHTTP(w, r)
}
