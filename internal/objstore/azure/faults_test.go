package azure_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/azure"
	"github.com/lancerest/lancerest/internal/objstore/azure/azuretest"
)

// between opens a store on a container of its own, with a handler between it and the emulator, which next leads to.
func between(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, next http.Handler)) *azure.Store {
	t.Helper()
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	next := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = target.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, next) }))
	t.Cleanup(front.Close)
	return open(t, azure.Options{Endpoint: front.URL + "/" + azuretest.Account, Pause: time.Millisecond, BlockSize: 1 << 20})
}

// answer answers as the service does: with a status, a code in the head, and the code again in XML.
func answer(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("x-ms-error-code", code)
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code><Message>It happened.</Message></Error>`, code)
}

// calls are all methods, each on objects that are there.
func calls(t *testing.T, s *azure.Store, info objstore.Info) map[string]func() error {
	ctx := t.Context()
	return map[string]func() error{
		"Get":         func() error { _, _, err := s.Get(ctx, info.Key, 0); return err },
		"Head":        func() error { _, err := s.Head(ctx, info.Key); return err },
		"PutIfAbsent": func() error { _, err := s.PutIfAbsent(ctx, "t/new", []byte("x")); return err },
		"PutIf":       func() error { _, err := s.PutIf(ctx, info.Key, info.ETag, []byte("x")); return err },
		"DeleteIf":    func() error { return s.DeleteIf(ctx, info.Key, info.ETag) },
		"Delete":      func() error { return s.Delete(ctx, info.Key) },
		"DeleteTree":  func() error { _, err := s.DeleteTree(ctx, "t/"); return err },
		"List": func() error {
			for _, err := range s.List(ctx, "t/", "") {
				return err
			}
			return errors.New("nothing is listed")
		},
	}
}

// names of the methods, to run each on a store of its own.
func names() []string {
	return []string{"Get", "Head", "PutIfAbsent", "PutIf", "DeleteIf", "Delete", "DeleteTree", "List"}
}

// ofContract are the errors that say something about an object.
func ofContract() []error {
	return []error{objstore.ErrNotFound, objstore.ErrExists, objstore.ErrChanged, objstore.ErrTooLarge, objstore.ErrInvalidKey}
}

// put puts an object that nothing is in the way of.
func put(t *testing.T, s objstore.Store, key, text string) objstore.Info {
	t.Helper()
	info, err := s.PutIfAbsent(t.Context(), key, []byte(text))
	if err != nil {
		t.Fatalf("PutIfAbsent(%q) = %v", key, err)
	}
	return info
}

func TestPassingFaultsAreTriedAgain(t *testing.T) {
	t.Parallel()
	faults := map[string]func(w http.ResponseWriter){
		"503": func(w http.ResponseWriter) { answer(w, 503, "ServerBusy") },
		"500": func(w http.ResponseWriter) { answer(w, 500, "OperationTimedOut") },
		"429": func(w http.ResponseWriter) { w.WriteHeader(429) },
		"502 of a proxy": func(w http.ResponseWriter) {
			w.WriteHeader(502)
			fmt.Fprint(w, "<html>Bad gateway</html>")
		},
		"a connection that breaks": hangUp,
	}
	for fault, happen := range faults {
		for _, name := range names() {
			t.Run(fault+" in "+name, func(t *testing.T) {
				t.Parallel()
				var faulty atomic.Int32
				s := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
					if faulty.Add(-1) >= 0 {
						happen(w)
						return
					}
					next.ServeHTTP(w, r)
				})
				info := put(t, s, "t/a", "x")
				faulty.Store(2)
				if err := calls(t, s, info)[name](); err != nil {
					t.Errorf("%s past two faults = %v, want nil", name, err)
				}
				if left := faulty.Load(); left >= 0 {
					t.Errorf("%d of two faults did not happen", left)
				}
			})
		}
	}
}

// hangUp closes the connection instead of answering.
func hangUp(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close() // the client sees the end in any case
	}
}

func TestLastingFaultsSayNothingAboutObjects(t *testing.T) {
	t.Parallel()
	faults := map[string]struct {
		happen http.HandlerFunc
		denied bool
	}{
		"an outage":                  {func(w http.ResponseWriter, _ *http.Request) { answer(w, 503, "ServerBusy") }, false},
		"what is unknown":            {func(w http.ResponseWriter, _ *http.Request) { answer(w, 400, "InvalidHeaderValue") }, false},
		"a lease of somebody":        {func(w http.ResponseWriter, _ *http.Request) { answer(w, 412, "LeaseIdMissing") }, false},
		"a conflict of another kind": {func(w http.ResponseWriter, _ *http.Request) { answer(w, 409, "BlobBeingRehydrated") }, false},
		"a proxy that knows no such page": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			fmt.Fprint(w, "<html>404</html>")
		}, false},
		"a missing container":    {func(w http.ResponseWriter, _ *http.Request) { answer(w, 404, "ContainerNotFound") }, false},
		"no permission":          {func(w http.ResponseWriter, _ *http.Request) { answer(w, 403, "AuthorizationPermissionMismatch") }, true},
		"keys that have ended":   {func(w http.ResponseWriter, _ *http.Request) { answer(w, 403, "AuthenticationFailed") }, true},
		"a token that has ended": {func(w http.ResponseWriter, _ *http.Request) { answer(w, 401, "InvalidAuthenticationInfo") }, true},
	}
	for fault, f := range faults {
		for _, name := range names() {
			t.Run(fault+" in "+name, func(t *testing.T) {
				t.Parallel()
				var broken atomic.Bool
				s := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
					if broken.Load() {
						f.happen(w, r)
						return
					}
					next.ServeHTTP(w, r)
				})
				info := put(t, s, "t/a", "x")
				broken.Store(true)
				err := calls(t, s, info)[name]()
				if err == nil || errors.Is(err, objstore.ErrDenied) != f.denied {
					t.Errorf("%s = %v, want an error that is ErrDenied: %t", name, err, f.denied)
				}
				for _, kind := range ofContract() {
					if errors.Is(err, kind) {
						t.Errorf("%s = %v, which says what nobody knows", name, err)
					}
				}
			})
		}
	}
}

func TestMissingContainerIsNoMissingObject(t *testing.T) {
	t.Parallel()
	for name, call := range calls(t, open(t, azure.Options{Container: "nobody-made-it"}), objstore.Info{Key: "t/a", ETag: `"0x1"`}) {
		err := call()
		if err == nil || err.Error() == "nothing is listed" {
			t.Errorf("%s in a container that is not there = %v, want an error", name, err)
		}
		for _, kind := range ofContract() {
			if errors.Is(err, kind) {
				t.Errorf("%s in a container that is not there = %v, which says that it is", name, err)
			}
		}
	}
}

// lost lets the first upload or removal be carried out and loses the answer.
func lost(t *testing.T) (*azure.Store, *atomic.Bool) {
	var armed atomic.Bool
	s := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && armed.CompareAndSwap(true, false) {
			next.ServeHTTP(httptest.NewRecorder(), r)
			hangUp(w)
			return
		}
		next.ServeHTTP(w, r)
	})
	return s, &armed
}

func TestLostAnswers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, armed := lost(t)

	armed.Store(true)
	info := put(t, s, "t/a", "mine")
	if got, err := s.Head(ctx, "t/a"); err != nil || cmp.Diff(got, info) != "" {
		t.Errorf("a put whose answer was lost returned %+v, and there is %+v, %v", info, got, err)
	}

	armed.Store(true)
	next, err := s.PutIf(ctx, "t/a", info.ETag, []byte("mine too"))
	if err != nil {
		t.Fatalf("a replacement whose answer was lost = %v, want nil", err)
	}
	if got, gotInfo, err := s.Get(ctx, "t/a", 0); err != nil || string(got) != "mine too" || cmp.Diff(gotInfo, next) != "" {
		t.Errorf("it returned %+v, and there is %q, %+v, %v", next, got, gotInfo, err)
	}

	// The second try of a removal finds nothing, and cannot know who removed it.
	armed.Store(true)
	if err := s.DeleteIf(ctx, "t/a", next.ETag); !errors.Is(err, objstore.ErrChanged) {
		t.Errorf("a removal whose answer was lost = %v, want ErrChanged", err)
	}
	if _, err := s.Head(ctx, "t/a"); !errors.Is(err, objstore.ErrNotFound) {
		t.Errorf("after it: %v, want ErrNotFound", err)
	}
	put(t, s, "t/b", "x")
	armed.Store(true)
	if err := s.Delete(ctx, "t/b"); err != nil {
		t.Errorf("an unconditional removal whose answer was lost = %v, want nil", err)
	}
}

// An object with the very same bytes that somebody else put is not taken for one's own.
func TestRetryThatMeetsAnotherObject(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	var other *azure.Store
	s := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut && armed.CompareAndSwap(true, false) {
			if _, err := other.PutIfAbsent(context.WithoutCancel(r.Context()), "t/a", []byte("same")); err != nil {
				t.Errorf("the other's put = %v", err)
			}
			answer(w, 503, "ServerBusy")
			return
		}
		next.ServeHTTP(w, r)
	})
	other = s
	armed.Store(true)
	if _, err := s.PutIfAbsent(t.Context(), "t/a", []byte("same")); !errors.Is(err, objstore.ErrExists) {
		t.Errorf("PutIfAbsent whose first try failed while another put = %v, want ErrExists", err)
	}
}

func TestErrorsHoldNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-s1gnature"
	for name, happen := range map[string]http.HandlerFunc{
		"no connection": func(w http.ResponseWriter, _ *http.Request) { hangUp(w) },
		"a refusal": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("x-ms-error-code", "AuthenticationFailed")
			w.WriteHeader(403)
			fmt.Fprintf(w, "<Error><Code>AuthenticationFailed</Code><AuthenticationErrorDetail>%s</AuthenticationErrorDetail></Error>", r.URL.RawQuery)
		},
	} {
		front := httptest.NewServer(happen)
		defer front.Close()
		s, err := azure.New(azure.Options{Container: "c", Account: "a", Endpoint: front.URL, SAS: "sv=2024-11-04&sig=" + secret, Pause: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		for method, call := range calls(t, s, objstore.Info{Key: "t/a", ETag: `"0x1"`}) {
			if err := call(); err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), front.URL) {
				t.Errorf("%s with %s = %v, want an error with the address and without the signature", method, name, err)
			}
		}
	}
}
