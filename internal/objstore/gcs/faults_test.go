package gcs_test

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

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/gcs"
)

// between opens a store on a bucket of its own, with a handler between it and the emulator, which next leads to. Listings may
// come in pages of another size than the service's.
func between(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, next http.Handler), pageSize ...int) *gcs.Store {
	t.Helper()
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	next := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, next) }))
	t.Cleanup(front.Close)
	next.ModifyResponse = func(r *http.Response) error {
		// Parts of an upload are to come through here too.
		r.Header.Set("Location", strings.Replace(r.Header.Get("Location"), server.Endpoint, front.URL, 1))
		return nil
	}
	o := gcs.Options{Bucket: server.Bucket(t), Endpoint: front.URL}
	if len(pageSize) > 0 {
		o.PageSize = pageSize[0]
	}
	s := open(t, o)
	s.Hurry()
	return s
}

// answer answers as the service does: with a status and an error in JSON.
func answer(w http.ResponseWriter, status int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error": {"code": %d, "message": %q, "errors": [{"message": %[2]q, "domain": "global", "reason": %q}]}}`, status, message, reason)
}

// calls are all methods, each on objects that are there.
func calls(t *testing.T, s *gcs.Store, info objstore.Info) map[string]func() error {
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
		"429": func(w http.ResponseWriter) {
			answer(w, 429, "rateLimitExceeded", "The object exceeded the rate limit.")
		},
		"403 with a quota's reason": func(w http.ResponseWriter) {
			answer(w, 403, "userRateLimitExceeded", "The user has exceeded the rate limit.")
		},
		"503": func(w http.ResponseWriter) { answer(w, 503, "backendError", "Backend error.") },
		"500": func(w http.ResponseWriter) { w.WriteHeader(500) },
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
		"an outage": {func(w http.ResponseWriter, _ *http.Request) { answer(w, 503, "backendError", "Backend error.") }, false},
		"a quota": {func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 403, "rateLimitExceeded", "The project exceeded the rate limit.")
		}, false},
		"throttling": {func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 429, "rateLimitExceeded", "The object exceeded the rate limit.")
		}, false},
		"a proxy that knows no such page": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			fmt.Fprint(w, "<html>404</html>")
		}, false},
		"no permission": {func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 403, "forbidden", "x does not have storage.objects.get access to the Google Cloud Storage object.")
		}, true},
		"keys that have ended": {func(w http.ResponseWriter, _ *http.Request) { answer(w, 401, "authError", "Invalid Credentials") }, true},
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

func TestMissingBucketIsNoMissingObject(t *testing.T) {
	t.Parallel()
	// Google's text for it; the emulator's is another, and both are to be understood.
	documented := between(t, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		answer(w, 404, "notFound", "The specified bucket does not exist.")
	})
	for who, s := range map[string]*gcs.Store{"Google": documented, "the emulator": open(t, gcs.Options{Bucket: "nobody-made-it", Endpoint: server.Endpoint})} {
		for name, call := range calls(t, s, objstore.Info{Key: "t/a", ETag: `"1"`}) {
			err := call()
			if err == nil || err.Error() == "nothing is listed" {
				t.Errorf("%s in a bucket that %s does not have = %v, want an error", name, who, err)
			}
			for _, kind := range ofContract() {
				if errors.Is(err, kind) {
					t.Errorf("%s in a bucket that %s does not have = %v, which says that it is there", name, who, err)
				}
			}
		}
	}
}

// Google's answers name what is missing, so that an absence costs one request.
func TestAbsenceCostsOneRequest(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	s := between(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		requests.Add(1)
		if r.URL.Query().Get("alt") == "media" {
			w.WriteHeader(404)
			fmt.Fprint(w, "No such object: bucket/t/a")
			return
		}
		answer(w, 404, "notFound", "No such object: bucket/t/a")
	})
	for _, name := range []string{"Get", "Head"} {
		requests.Store(0)
		err := calls(t, s, objstore.Info{Key: "t/a", ETag: `"1"`})[name]()
		if !errors.Is(err, objstore.ErrNotFound) || requests.Load() != 1 {
			t.Errorf("%s of an absent object = %v after %d requests, want ErrNotFound after one", name, err, requests.Load())
		}
	}
}

// lost lets the first upload or removal be carried out and loses the answer.
func lost(t *testing.T) (*gcs.Store, *atomic.Bool) {
	var armed atomic.Bool
	s := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodGet && armed.CompareAndSwap(true, false) {
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
	var other *gcs.Store
	s := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPost && armed.CompareAndSwap(true, false) {
			if _, err := other.PutIfAbsent(context.WithoutCancel(r.Context()), "t/a", []byte("same")); err != nil {
				t.Errorf("the other's put = %v", err)
			}
			answer(w, 503, "backendError", "Backend error.")
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
	const secret = "s3cr3t-t0ken"
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Parts of an upload go to an address that is a key in itself.
		if strings.HasPrefix(r.URL.Path, "/upload/") && r.URL.Query().Get("upload_id") == "" {
			w.Header().Set("Location", "http://"+r.Host+"/upload/x?upload_id="+secret)
			return
		}
		hangUp(w)
	}))
	defer front.Close()
	s, err := gcs.New(t.Context(), gcs.Options{Bucket: "b", Endpoint: front.URL, Token: secret})
	if err != nil {
		t.Fatal(err)
	}
	s.Hurry()
	_, err = s.PutIfAbsent(t.Context(), "t/a", make([]byte, 17<<20))
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("an upload that fails = %v, want an error without the upload's id or the token", err)
	}
	if err := calls(t, s, objstore.Info{Key: "t/a", ETag: `"1"`})["Head"](); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a look that fails = %v, want an error without the token", err)
	}
}
