package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
)

const nobody = 65534

// A refusal is ErrDenied, never an absence. The test runs as somebody without rights: root gives its file rights up for the
// thread that the test runs on.
func TestErrDenied(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp(os.TempDir(), "denied")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	info, err := s.PutIfAbsent(t.Context(), "r/closed/a", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(dir, "r/closed")
	t.Cleanup(func() {
		_ = os.Chmod(closed, 0o755)
		_ = os.RemoveAll(dir)
	})
	for _, err := range []error{os.Chmod(dir, 0o755), os.Chmod(closed, 0)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Setfsuid(0) }()
	}
	ctx := t.Context()
	_, _, getErr := s.Get(ctx, "r/closed/a", 0)
	_, headErr := s.Head(ctx, "r/closed/a")
	_, putErr := s.PutIfAbsent(ctx, "r/closed/b", nil)
	_, putIfErr := s.PutIf(ctx, "r/closed/a", info.ETag, nil)
	_, treeErr := s.DeleteTree(ctx, "r/closed/")
	var listErr error
	for _, err := range s.List(ctx, "r/closed/", "") {
		listErr = err
	}
	for call, err := range map[string]error{
		"Get": getErr, "Head": headErr, "PutIfAbsent": putErr, "PutIf": putIfErr, "DeleteTree": treeErr, "List": listErr,
		"DeleteIf": s.DeleteIf(ctx, "r/closed/a", info.ETag), "Delete": s.Delete(ctx, "r/closed/a"),
	} {
		if !errors.Is(err, objstore.ErrDenied) {
			t.Errorf("%s in a closed directory = %v, want ErrDenied", call, err)
		}
	}
}
