package gcs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/gcs"
)

// insert puts an object as another program would: under any name, with any metadata.
func insert(t *testing.T, bucket, name, body string) {
	t.Helper()
	address := server.Endpoint + "/upload/storage/v1/b/" + bucket + "/o?uploadType=media&name=" + url.QueryEscape(name)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if text, _ := io.ReadAll(got.Body); got.StatusCode != http.StatusOK {
		t.Fatalf("insert %q: %s: %s", name, got.Status, text)
	}
}

// What is larger than one request takes is whole, or not there, and never replaces anything.
func TestLargeObjects(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var parts atomic.Int32
	var meanwhile atomic.Bool
	var s *gcs.Store
	s = between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasPrefix(r.URL.Path, "/upload/") && r.Header.Get("Content-Range") != "" {
			parts.Add(1)
			if meanwhile.CompareAndSwap(true, false) {
				put(t, s, "t/taken", "first")
			}
		}
		next.ServeHTTP(w, r)
	})
	data := bytes.Repeat([]byte("0123456789abcdef"), 40<<20/16)
	info, err := s.PutIfAbsent(ctx, "t/large", data)
	if err != nil {
		t.Fatalf("PutIfAbsent of %d bytes = %v, want nil", len(data), err)
	}
	got, gotInfo, err := s.Get(ctx, "t/large", 0)
	if err != nil || !bytes.Equal(got, data) || gotInfo != info {
		t.Errorf("Get = %d bytes, %+v, %v; want the %d bytes that were put, %+v", len(got), gotInfo, err, len(data), info)
	}
	if _, err := s.PutIfAbsent(ctx, "t/large", data); !errors.Is(err, objstore.ErrExists) {
		t.Errorf("PutIfAbsent again = %v, want ErrExists", err)
	}
	meanwhile.Store(true)
	if _, err := s.PutIfAbsent(ctx, "t/taken", data); !errors.Is(err, objstore.ErrExists) {
		t.Errorf("PutIfAbsent of a name that is taken between two parts = %v, want ErrExists", err)
	}
	if got, _, err := s.Get(ctx, "t/taken", 0); err != nil || string(got) != "first" {
		t.Errorf("the object that was there first is %d bytes, %v", len(got), err)
	}
	if parts.Load() < 3 {
		t.Errorf("%d parts were sent: this test is about uploads in parts", parts.Load())
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var pages atomic.Int32
	front := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Query().Get("maxResults") == "3" {
			pages.Add(1)
		}
		next.ServeHTTP(w, r)
	}, 3)
	var want []string
	for i := range 10 {
		want = append(want, put(t, front, fmt.Sprintf("t/%04d", i), "x").Key)
	}
	for after := -1; after < len(want); after++ {
		last := ""
		if after >= 0 {
			last = want[after]
		}
		var got []string
		for info, err := range front.List(ctx, "t/", last) {
			if err != nil {
				t.Fatalf("List after %q = %v", last, err)
			}
			got = append(got, info.Key)
		}
		if !slices.Equal(got, want[after+1:]) {
			t.Errorf("List after %q = %q, want %q", last, got, want[after+1:])
		}
	}
	if pages.Load() < 4 {
		t.Errorf("%d pages of three were asked for: this test is about pages", pages.Load())
	}
	if n, err := front.DeleteTree(ctx, "t/"); n != 10 || err != nil {
		t.Errorf("DeleteTree = %d, %v, want 10, nil", n, err)
	}
}

func TestDeleteTreeGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var broken atomic.Bool
	s := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodDelete && broken.Load() && strings.HasSuffix(r.URL.Path, "5") {
			answer(w, 403, "forbidden", "no")
			return
		}
		next.ServeHTTP(w, r)
	})
	for i := range 20 {
		put(t, s, fmt.Sprintf("t/%02d", i), "x")
	}
	broken.Store(true)
	first, err := s.DeleteTree(ctx, "t/")
	if !errors.Is(err, objstore.ErrDenied) {
		t.Errorf("DeleteTree with two objects that may not be removed = %d, %v, want ErrDenied", first, err)
	}
	broken.Store(false)
	if second, err := s.DeleteTree(ctx, "t/"); first+second != 20 || err != nil {
		t.Errorf("DeleteTree removed %d, and then %d, %v; want 20 together", first, second, err)
	}
}

// Other programs mark directories with objects, and use names that are no keys.
func TestObjectsOfOthers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bucket := server.Bucket(t)
	s := open(t, gcs.Options{Bucket: bucket, Endpoint: server.Endpoint})
	for _, name := range []string{"t/", "t/dir/", "t//a", "t/../b"} {
		insert(t, bucket, name, "")
	}
	put(t, s, "t/dir/a", "x")
	var keys []string
	for info, err := range s.List(ctx, "t/", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	if len(keys) != 1 || keys[0] != "t/dir/a" {
		t.Errorf("List = %q, want the one object with a key", keys)
	}
	if n, err := s.DeleteTree(ctx, "t/"); n != 5 || err != nil {
		t.Errorf("DeleteTree = %d, %v, want all 5 gone", n, err)
	}
	insert(t, bucket, "t/a", "theirs")
	if data, info, err := s.Get(ctx, "t/a", 0); err != nil || string(data) != "theirs" {
		t.Errorf("Get of an object that another program put = %q, %+v, %v", data, info, err)
	}
	if _, err := s.PutIfAbsent(ctx, "t/a", nil); !errors.Is(err, objstore.ErrExists) {
		t.Errorf("PutIfAbsent over another program's object = %v, want ErrExists", err)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, bucket := range []string{"", "a/b"} {
		if _, err := gcs.New(t.Context(), gcs.Options{Bucket: bucket, Anonymous: true}); err == nil {
			t.Errorf("New with bucket %q = nil, want an error", bucket)
		}
	}
	const broken = `{"type": "service_account", "private_key": "s3cr3t"}`
	_, err := gcs.New(t.Context(), gcs.Options{Bucket: "b", ServiceAccount: broken})
	if err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("New with half a service account = %v, want an error that does not show it", err)
	}
}

// The variable that all of Google's libraries know leads to an emulator, without credentials.
func TestEmulatorHost(t *testing.T) {
	t.Setenv("STORAGE_EMULATOR_HOST", server.Endpoint)
	s, err := gcs.New(context.Background(), gcs.Options{Bucket: server.Bucket(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put(t, s, "t/a", "x")
	if data, _, err := s.Get(t.Context(), "t/a", 0); err != nil || string(data) != "x" {
		t.Errorf("Get = %q, %v", data, err)
	}
}

// The front of gcstest is there because the emulator removes whatever the condition says. Once this fails the front can go.
func TestBareEmulator(t *testing.T) {
	t.Parallel()
	s := open(t, gcs.Options{Bucket: server.Bucket(t), Endpoint: server.Bare})
	got, err := objstore.Try(t.Context(), s, "t/")
	if want := (objstore.Conditions{Absent: true, Replace: true}); err != nil || got != want {
		t.Errorf("the emulator judges %+v, %v; want %+v", got, err, want)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.Bare+"/"+server.Bucket(t)+"/a", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	refused, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Body.Close()
	if refused.StatusCode == http.StatusOK {
		t.Error("the emulator takes uploads by the XML API now")
	}
	got, err = objstore.Try(t.Context(), open(t, gcs.Options{Bucket: server.Bucket(t), Endpoint: server.Endpoint}), "t/")
	if err != nil || !got.All() {
		t.Errorf("behind its front the emulator judges %+v, %v; want all", got, err)
	}
}
