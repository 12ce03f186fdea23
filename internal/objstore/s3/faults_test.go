package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/s3"
	"github.com/lancerest/lancerest/internal/objstore/s3/s3test"
)

// always is enough steps for every try of a request.
const always = 40

// call is one call of a store on a key.
type call func(ctx context.Context, s *s3.Store, key, etag string) error

func calls() map[string]call {
	return map[string]call{
		"Get": func(ctx context.Context, s *s3.Store, key, _ string) error {
			_, _, err := s.Get(ctx, key, 0)
			return err
		},
		"Head": func(ctx context.Context, s *s3.Store, key, _ string) error {
			_, err := s.Head(ctx, key)
			return err
		},
		"PutIfAbsent": func(ctx context.Context, s *s3.Store, key, _ string) error {
			_, err := s.PutIfAbsent(ctx, key, []byte("new"))
			return err
		},
		"PutIf": func(ctx context.Context, s *s3.Store, key, etag string) error {
			_, err := s.PutIf(ctx, key, etag, []byte("new"))
			return err
		},
		"DeleteIf": func(ctx context.Context, s *s3.Store, key, etag string) error { return s.DeleteIf(ctx, key, etag) },
		"Delete":   func(ctx context.Context, s *s3.Store, key, _ string) error { return s.Delete(ctx, key) },
		"List": func(ctx context.Context, s *s3.Store, key, _ string) error {
			for _, err := range s.List(ctx, key+"/", "") {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"DeleteTree": func(ctx context.Context, s *s3.Store, key, _ string) error {
			_, err := s.DeleteTree(ctx, key+"/")
			return err
		},
	}
}

// meaning is what an error says about an object, "unknown" for none of the contract's.
func meaning(err error) string {
	for word, sentinel := range map[string]error{
		"absent": objstore.ErrNotFound, "exists": objstore.ErrExists, "changed": objstore.ErrChanged, "denied": objstore.ErrDenied,
		"unsupported": objstore.ErrUnsupported,
	} {
		if errors.Is(err, sentinel) {
			return word
		}
	}
	if err == nil {
		return "done"
	}
	return "unknown"
}

// TestAnswers: what each kind of answer means for each kind of request. Nothing but the server's word makes an object absent.
func TestAnswers(t *testing.T) {
	t.Parallel()
	everywhere := func(word string, but map[string]string) map[string]string {
		want := map[string]string{}
		for name := range calls() {
			want[name] = word
			if other, ok := but[name]; ok {
				want[name] = other
			}
		}
		return want
	}
	for name, c := range map[string]struct {
		plan []s3test.Step
		want map[string]string
	}{
		"no such object": {s3test.Times(always, s3test.Says(404, "NoSuchKey")), map[string]string{
			"Get": "absent", "Head": "absent", "PutIfAbsent": "unknown", "PutIf": "changed", "DeleteIf": "changed", "Delete": "done", "List": "unknown", "DeleteTree": "unknown",
		}},
		"no such bucket":        {s3test.Times(always, s3test.Says(404, "NoSuchBucket")), everywhere("unknown", nil)},
		"a proxy knows nothing": {s3test.Times(always, s3test.Answers(404, "<html>not found</html>")), everywhere("unknown", nil)},
		"404 and nothing else":  {s3test.Times(always, s3test.Answers(404, "")), everywhere("unknown", nil)},
		"forbidden":             {s3test.Times(always, s3test.Says(403, "AccessDenied")), everywhere("denied", nil)},
		"unauthorized":          {s3test.Times(always, s3test.Says(401, "Unauthorized")), everywhere("denied", nil)},
		"no condition":          {s3test.Times(always, s3test.Says(501, "NotImplemented")), everywhere("unsupported", nil)},
		"wrong region":          {s3test.Times(always, s3test.Says(301, "PermanentRedirect")), everywhere("unknown", nil)},
		"archived":              {s3test.Times(always, s3test.Says(403, "InvalidObjectState")), everywhere("unknown", nil)},
		"failed condition": {s3test.Times(1, s3test.Says(412, "PreconditionFailed")), map[string]string{
			"Get": "unknown", "Head": "unknown", "PutIfAbsent": "exists", "PutIf": "changed", "DeleteIf": "changed", "Delete": "unknown", "List": "unknown", "DeleteTree": "unknown",
		}},
		"failed condition, said with 304": {s3test.Times(1, s3test.Answers(304, "")), map[string]string{
			"Get": "unknown", "Head": "unknown", "PutIfAbsent": "exists", "PutIf": "changed", "DeleteIf": "changed", "Delete": "unknown", "List": "unknown", "DeleteTree": "unknown",
		}},
		"failing for good":        {s3test.Times(always, s3test.Says(500, "InternalError")), everywhere("unknown", nil)},
		"down for good":           {s3test.Times(always, s3test.Says(503, "ServiceUnavailable")), everywhere("unknown", nil)},
		"busy for good":           {s3test.Times(always, s3test.Says(503, "SlowDown")), everywhere("unknown", nil)},
		"lost for good":           {s3test.Times(always, s3test.Loses), everywhere("unknown", nil)},
		"busy for a while":        {[]s3test.Step{s3test.Says(503, "SlowDown"), s3test.Says(429, "TooManyRequests"), s3test.Says(500, "InternalError"), s3test.Says(400, "RequestTimeout"), s3test.Loses}, everywhere("done", map[string]string{"PutIfAbsent": "exists"})},
		"in conflict for a while": {s3test.Times(3, s3test.Says(409, "ConditionalRequestConflict")), everywhere("done", map[string]string{"PutIfAbsent": "exists"})},
	} {
		for of, do := range calls() {
			t.Run(name+"/"+of, func(t *testing.T) {
				t.Parallel()
				s, f := behind(t)
				key := server.Prefix() + "a"
				info, err := s.PutIfAbsent(t.Context(), key, []byte("old"))
				if err != nil {
					t.Fatal(err)
				}
				f.Will(c.plan...)
				err = do(t.Context(), s, key, info.ETag)
				if got := meaning(err); got != c.want[of] {
					t.Errorf("%s = %v, which says %q, want %q", of, err, got, c.want[of])
				}
				if err != nil && strings.Contains(err.Error(), server.SecretKey) {
					t.Errorf("the error shows the secret key: %v", err)
				}
				if got := len(f.Requests()); got > 7 {
					t.Errorf("%d requests, want no more than 7", got)
				}
			})
		}
	}
}

// TestConflictThatStays: a name at which others are busy all the time is taken if something stands there, and otherwise nobody knows.
func TestConflictThatStays(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]bool{"exists": true, "unknown": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, f := behind(t)
			key := server.Prefix() + "a"
			if there {
				if _, err := s.PutIfAbsent(t.Context(), key, []byte("old")); err != nil {
					t.Fatal(err)
				}
			}
			f.Will(s3test.Times(6, s3test.Says(409, "ConditionalRequestConflict"))...)
			if _, err := s.PutIfAbsent(t.Context(), key, []byte("new")); meaning(err) != name {
				t.Errorf("PutIfAbsent = %v, which says %q, want %q", err, meaning(err), name)
			}
		})
	}
}

// TestPutWithLostAnswer: a put that was sent again knows its own work from that of others.
func TestPutWithLostAnswer(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("0123456789abcdef"), 21<<16) // five parts
	parts := func(o *s3.Options) { o.PartSize = 5 << 20 }
	for _, c := range []struct {
		name string
		data []byte
		lost []s3test.Step
		by   string // what another writer put there meanwhile
		want string
	}{
		{name: "it had its effect", data: []byte("new"), lost: []s3test.Step{s3test.LosesAnswer}, want: "done"},
		{name: "it had its effect, twice lost", data: []byte("new"), lost: []s3test.Step{s3test.LosesAnswer, s3test.LosesAnswer}, want: "done"},
		{name: "it had none", data: []byte("new"), lost: []s3test.Step{s3test.Loses}, want: "done"},
		{name: "another was first", data: []byte("new"), lost: []s3test.Step{s3test.Loses}, by: "other", want: "exists"},
		{name: "another was first, with the same bytes", data: []byte("new"), lost: []s3test.Step{s3test.Loses}, by: "new", want: "exists"},
		{name: "the end of an upload in parts", data: large, lost: append(s3test.Times(6, s3test.Pass), s3test.LosesAnswer), want: "done"},
		{name: "an upload in parts that another overtakes", data: large, by: "other", want: "exists"},
		{name: "an upload in parts is in conflict once", data: large, lost: append(s3test.Times(6, s3test.Pass), s3test.Says(409, "ConditionalRequestConflict")), want: "done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, f := behind(t, parts)
			key := server.Prefix() + "a"
			if c.by != "" {
				if _, err := open(t).PutIfAbsent(t.Context(), key, []byte(c.by)); err != nil {
					t.Fatal(err)
				}
			}
			f.Will(c.lost...)
			info, err := s.PutIfAbsent(t.Context(), key, c.data)
			if meaning(err) != c.want {
				t.Fatalf("PutIfAbsent = %v, which says %q, want %q (%v)", err, meaning(err), c.want, f.Requests())
			}
			got, there, err := s.Get(t.Context(), key, 0)
			if err != nil {
				t.Fatal(err)
			}
			if c.want != "done" {
				if string(got) != c.by {
					t.Errorf("the object is %.40q now, want %q untouched", got, c.by)
				}
				return
			}
			if !bytes.Equal(got, c.data) {
				t.Errorf("the object has %d bytes, want %d", len(got), len(c.data))
			}
			if info.Modified.IsZero() {
				there.Modified = time.Time{}
			}
			if diff := cmp.Diff(there, info); diff != "" {
				t.Errorf("the put describes the object differently (-Get +PutIfAbsent):\n%s", diff)
			}
		})
	}
}

// TestReplacingWithLostAnswer is the same for PutIf.
func TestReplacingWithLostAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost []s3test.Step
		by   string
		want string
	}{
		"it had its effect":  {[]s3test.Step{s3test.LosesAnswer}, "", "done"},
		"it had none":        {[]s3test.Step{s3test.Loses}, "", "done"},
		"another was faster": {[]s3test.Step{s3test.Loses}, "other", "changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, f := behind(t)
			key := server.Prefix() + "a"
			old, err := s.PutIfAbsent(t.Context(), key, []byte("old"))
			if err != nil {
				t.Fatal(err)
			}
			want := "new"
			if c.by != "" {
				if _, err := s.PutIf(t.Context(), key, old.ETag, []byte(c.by)); err != nil {
					t.Fatal(err)
				}
				want = c.by
			}
			f.Will(c.lost...)
			if _, err := s.PutIf(t.Context(), key, old.ETag, []byte("new")); meaning(err) != c.want {
				t.Errorf("PutIf = %v, which says %q, want %q", err, meaning(err), c.want)
			}
			if got, _, err := s.Get(t.Context(), key, 0); err != nil || string(got) != want {
				t.Errorf("the object is %q, %v, want %q", got, err, want)
			}
		})
	}
}

// TestTornAnswers: an answer that ends early is asked for again, and never taken for the object.
func TestTornAnswers(t *testing.T) {
	t.Parallel()
	s, f := behind(t)
	key := server.Prefix() + "a"
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<12)
	if _, err := s.PutIfAbsent(t.Context(), key, data); err != nil {
		t.Fatal(err)
	}
	f.Will(s3test.Tears, s3test.Tears)
	if got, _, err := s.Get(t.Context(), key, 0); err != nil || !bytes.Equal(got, data) {
		t.Errorf("Get = %d bytes, %v, want %d", len(got), err, len(data))
	}
	f.Will(s3test.Times(always, s3test.Tears)...)
	if got, _, err := s.Get(t.Context(), key, 0); meaning(err) != "unknown" || got != nil {
		t.Errorf("Get of what is torn every time = %d bytes, %v, want an error of no kind", len(got), err)
	}
}

// TestContextEndsThePauses: who does not wait any longer is answered at once, with the context's error and what was in the way.
func TestContextEndsThePauses(t *testing.T) {
	t.Parallel()
	s, f := behind(t, func(o *s3.Options) { o.Pause = time.Hour })
	ctx, cancel := context.WithCancelCause(t.Context())
	f.Will(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		time.AfterFunc(20*time.Millisecond, func() { cancel(nil) })
		s3test.Says(503, "SlowDown")(w, r, inner)
	})
	_, err := s.Head(ctx, server.Prefix()+"a")
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "SlowDown") {
		t.Errorf("Head = %v, want the context's error and SlowDown", err)
	}
}

// TestTreeInThousands: a tree goes a thousand objects with one request, and what cannot be removed is an error.
func TestTreeInThousands(t *testing.T) {
	t.Parallel()
	s, f := behind(t)
	prefix := server.Prefix()
	fill(t, s, prefix, 2300)
	f.Will()
	if removed, err := s.DeleteTree(t.Context(), prefix); err != nil || removed != 2300 {
		t.Errorf("DeleteTree = %d, %v, want 2300", removed, err)
	}
	if requests := f.Requests(); count(requests, "POST?delete") != 3 || count(requests, "GET") != 4 || len(requests) != 7 {
		t.Errorf("%v, want 3 removals and 4 listings", requests)
	}
	fill(t, s, prefix, 2)
	f.Will(s3test.Pass, s3test.Answers(200, `<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>`))
	if removed, err := s.DeleteTree(t.Context(), prefix); meaning(err) != "denied" || removed != 0 {
		t.Errorf("DeleteTree = %d, %v, want none and ErrDenied", removed, err)
	}
	f.Will(s3test.Pass, s3test.Answers(200, `<DeleteResult><Error><Key>k</Key><Code>InternalError</Code><Message>no</Message></Error></DeleteResult>`))
	if removed, err := s.DeleteTree(t.Context(), prefix); meaning(err) != "unknown" || removed != 0 {
		t.Errorf("DeleteTree = %d, %v, want none and an error", removed, err)
	}
	if removed, err := s.DeleteTree(t.Context(), prefix); err != nil || removed != 2 {
		t.Errorf("DeleteTree again = %d, %v, want 2", removed, err)
	}
}

// TestListPages: a long listing is read page by page, and only as far as it is wanted.
func TestListPages(t *testing.T) {
	t.Parallel()
	s, f := behind(t)
	prefix := server.Prefix()
	want := fill(t, s, prefix, 1100)
	f.Will(s3test.Says(503, "SlowDown"), s3test.Pass, s3test.Says(503, "SlowDown"))
	var got []string
	for info, err := range s.List(t.Context(), prefix, "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d keys, want the %d that were put, in order", len(got), len(want))
	}
	if requests := f.Requests(); len(requests) != 4 {
		t.Errorf("%d requests, want two pages and each once more", len(requests))
	}
	f.Will()
	for range s.List(t.Context(), prefix, want[10]) {
		break
	}
	if requests := f.Requests(); len(requests) != 1 {
		t.Errorf("%d requests for the first key, want one", len(requests))
	}
}

// fill puts n objects and returns their keys in order.
func fill(t *testing.T, s *s3.Store, prefix string, n int) []string {
	t.Helper()
	keys := make([]string, n)
	next := make(chan int)
	errs := make(chan error, 16)
	for range cap(errs) {
		go func() {
			for i := range next {
				if _, err := s.PutIfAbsent(t.Context(), keys[i], []byte("x")); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%05d", prefix, i)
		next <- i
	}
	close(next)
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// behind returns a store that reaches the server through a front.
func behind(t *testing.T, change ...func(*s3.Options)) (*s3.Store, *s3test.Front) {
	t.Helper()
	f := server.Front(t)
	return open(t, append([]func(*s3.Options){func(o *s3.Options) { o.Endpoint = f.URL }}, change...)...), f
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
