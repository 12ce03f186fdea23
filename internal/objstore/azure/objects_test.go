package azure_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/azure"
)

// insert puts a blob as another program would: under any name, with any metadata.
func insert(t *testing.T, container, name, text string, metadata map[string]*string) {
	t.Helper()
	client, err := server.Client(container)
	if err != nil {
		t.Fatal(err)
	}
	body := streaming.NopCloser(strings.NewReader(text))
	if _, err := client.NewBlockBlobClient(name).Upload(t.Context(), body, &blockblob.UploadOptions{Metadata: metadata}); err != nil {
		t.Fatal(err)
	}
}

// list returns the keys under a prefix.
func list(t *testing.T, s objstore.Store, prefix, after string) []string {
	t.Helper()
	var keys []string
	for info, err := range s.List(t.Context(), prefix, after) {
		if err != nil {
			t.Fatalf("List(%q, %q) = %v", prefix, after, err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// What goes up in blocks is whole, or not there, and never replaces anything.
func TestLargeObjects(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var blocks, faults atomic.Int32
	var first sync.Mutex
	meanwhile := false
	var s *azure.Store
	s = between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Query().Get("comp") == "block" {
			if faults.Add(-1) >= 0 {
				answer(w, 503, "ServerBusy")
				return
			}
			blocks.Add(1)
			// Before any block, because Azurite takes blocks that wait for a blob for the blob.
			first.Lock()
			if meanwhile {
				meanwhile = false
				put(t, s, "t/taken", "first")
			}
			first.Unlock()
		}
		next.ServeHTTP(w, r)
	})
	data := bytes.Repeat([]byte("0123456789abcde\n"), 5<<20/16+1)
	faults.Store(2)
	info, err := s.PutIfAbsent(ctx, "t/large", data)
	if err != nil {
		t.Fatalf("PutIfAbsent of %d bytes = %v, want nil", len(data), err)
	}
	got, gotInfo, err := s.Get(ctx, "t/large", 0)
	if err != nil || !bytes.Equal(got, data) || gotInfo != info {
		t.Errorf("Get = %d bytes, %+v, %v; want the %d bytes that were put, %+v", len(got), gotInfo, err, len(data), info)
	}
	if blocks.Load() != 6 {
		t.Errorf("%d blocks were sent, want 6", blocks.Load())
	}
	if _, err := s.PutIfAbsent(ctx, "t/large", data); !errors.Is(err, objstore.ErrExists) {
		t.Errorf("PutIfAbsent again = %v, want ErrExists", err)
	}
	next, err := s.PutIf(ctx, "t/large", info.ETag, data[1:])
	if err != nil || next.ETag == info.ETag || next.Size != info.Size-1 {
		t.Errorf("PutIf = %+v, %v", next, err)
	}
	if _, err := s.PutIf(ctx, "t/large", info.ETag, data); !errors.Is(err, objstore.ErrChanged) {
		t.Errorf("PutIf again = %v, want ErrChanged", err)
	}
	meanwhile = true
	if _, err := s.PutIfAbsent(ctx, "t/taken", data); !errors.Is(err, objstore.ErrExists) {
		t.Errorf("PutIfAbsent of a name that is taken meanwhile = %v, want ErrExists", err)
	}
	if got, _, err := s.Get(ctx, "t/taken", 0); err != nil || string(got) != "first" {
		t.Errorf("the object that was there first is %d bytes, %v", len(got), err)
	}
}

// Whoever puts a blob discards the blocks that others have sent for its name.
func TestLargePutsOfOneName(t *testing.T) {
	t.Parallel()
	s := open(t, azure.Options{BlockSize: 64 << 10})
	for round := range 5 {
		key := fmt.Sprintf("t/%d", round)
		var winners atomic.Int32
		var group errgroup.Group
		for i := range 8 {
			group.Go(func() error {
				_, err := s.PutIfAbsent(t.Context(), key, bytes.Repeat([]byte{byte(i)}, 300_000+i))
				if err == nil {
					winners.Add(1)
				}
				if err != nil && !errors.Is(err, objstore.ErrExists) {
					return err
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil || winners.Load() != 1 {
			t.Fatalf("round %d: %d puts succeeded, others failed with %v; want one, and ErrExists", round, winners.Load(), err)
		}
		data, _, err := s.Get(t.Context(), key, 0)
		if err != nil || len(data) < 300_000 || !bytes.Equal(data, bytes.Repeat(data[:1], 300_000+int(data[0]))) {
			t.Errorf("round %d: the object has %d bytes that are not one writer's, %v", round, len(data), err)
		}
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	s := open(t, azure.Options{PageSize: 3})
	var want []string
	for i := range 10 {
		want = append(want, put(t, s, fmt.Sprintf("t/%04d", i), "x").Key)
	}
	for after := range want {
		if diff := cmp.Diff(want[after+1:], list(t, s, "t/", want[after])); after < 9 && diff != "" {
			t.Errorf("List after %q (-want +got):\n%s", want[after], diff)
		}
	}
	if diff := cmp.Diff(want, list(t, s, "t/", "")); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
}

// A tree goes 256 objects a request.
func TestDeleteTreeInBatches(t *testing.T) {
	t.Parallel()
	const objects = 300
	for refused, wantSingle := range map[string]int32{"": 0, "AuthorizationPermissionMismatch": objects} {
		var batches, single atomic.Int32
		s := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.URL.Query().Get("comp") == "batch" {
				batches.Add(1)
				if refused != "" {
					answer(w, 403, refused)
					return
				}
			} else if r.Method == http.MethodDelete {
				single.Add(1)
			}
			next.ServeHTTP(w, r)
		})
		var group errgroup.Group
		group.SetLimit(16)
		for i := range objects {
			group.Go(func() error {
				_, err := s.PutIfAbsent(t.Context(), fmt.Sprintf("t/%d/a b+%%/%d", i%3, i), nil)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if n, err := s.DeleteTree(t.Context(), "t/"); n != objects || err != nil {
			t.Errorf("DeleteTree = %d, %v, want %d, nil", n, err, objects)
		}
		if left := list(t, s, "t/", ""); len(left) != 0 {
			t.Errorf("%d objects are left", len(left))
		}
		if batches.Load() != 2 || single.Load() != wantSingle {
			t.Errorf("with batches refused %q: %d batches and %d single requests, want 2 and %d", refused, batches.Load(), single.Load(), wantSingle)
		}
	}
}

// Directories are blobs with a mark, in a hierarchical namespace as in what older programs leave in a flat one. In the former the order of a
// listing is that of a walk.
func TestDirectories(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	container := server.Container(t)
	s := open(t, azure.Options{Container: container, PageSize: 2})
	folder := map[string]*string{"hdi_isfolder": to.Ptr("true")}
	for _, dir := range []string{"t/b", "t/b/c"} {
		insert(t, container, dir, "", folder)
	}
	want := []string{"t/a", "t/b-", "t/b/c/x", "t/b/y", "t/z"}
	for _, key := range want {
		put(t, s, key, key)
	}
	insert(t, container, "t//x", "", nil)
	insert(t, container, "t/b/", "", nil)
	if diff := cmp.Diff(want, list(t, s, "t/", "")); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[3:], list(t, s, "t/", want[2])); diff != "" {
		t.Errorf("List after %q (-want +got):\n%s", want[2], diff)
	}
	if _, err := s.Head(ctx, "t/b"); !errors.Is(err, objstore.ErrNotFound) {
		t.Errorf("Head of a directory = %v, want ErrNotFound", err)
	}
	if _, _, err := s.Get(ctx, "t/b", 0); !errors.Is(err, objstore.ErrNotFound) {
		t.Errorf("Get of a directory = %v, want ErrNotFound", err)
	}
	if n, err := s.DeleteTree(ctx, "t/"); n != 9 || err != nil {
		t.Errorf("DeleteTree = %d, %v, want all 9 gone", n, err)
	}
	client, err := server.Client(container)
	if err != nil {
		t.Fatal(err)
	}
	page, err := client.NewListBlobsFlatPager(nil).NextPage(ctx)
	if err != nil || len(page.Segment.BlobItems) != 0 {
		t.Errorf("%d blobs are left, %v", len(page.Segment.BlobItems), err)
	}
}

// A key with a backslash would be another key to the service.
func TestKeysThatAreOthers(t *testing.T) {
	t.Parallel()
	s := open(t, azure.Options{})
	put(t, s, "t/a/b", "x")
	info := objstore.Info{Key: `t/a\b`, ETag: `"0x1"`}
	for name, call := range calls(t, s, info) {
		if name == "PutIfAbsent" || name == "List" || name == "DeleteTree" {
			continue
		}
		if err := call(); !errors.Is(err, objstore.ErrInvalidKey) {
			t.Errorf("%s(%q) = %v, want ErrInvalidKey", name, info.Key, err)
		}
	}
	if _, err := s.PutIfAbsent(t.Context(), `t\c`, nil); !errors.Is(err, objstore.ErrInvalidKey) {
		t.Errorf("PutIfAbsent = %v, want ErrInvalidKey", err)
	}
	if _, err := s.DeleteTree(t.Context(), `t\a/`); !errors.Is(err, objstore.ErrInvalidKey) {
		t.Errorf("DeleteTree = %v, want ErrInvalidKey", err)
	}
	for _, err := range s.List(t.Context(), `t\a/`, "") {
		if !errors.Is(err, objstore.ErrInvalidKey) {
			t.Errorf("List = %v, want ErrInvalidKey", err)
		}
	}
	if got := list(t, s, "t/", ""); len(got) != 1 {
		t.Errorf("there is %q, want the one object", got)
	}
}
