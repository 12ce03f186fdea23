package sqlstore_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// faulty is the system's files, except that writing or flushing the log fails while it is told so.
type faulty struct {
	vfs.VFS
	write, flush atomic.Pointer[error]
}

func (f *faulty) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return nil, flags, sqlite3.CANTOPEN // OpenFilename is what the driver calls
}

func (f *faulty) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := vfsutil.WrapOpenFilename(f.VFS, name, flags)
	if err != nil {
		return nil, flags, err
	}
	return &faultyFile{File: file, fs: f, log: strings.HasSuffix(name.String(), "-wal")}, flags, nil
}

type faultyFile struct {
	vfs.File
	fs  *faulty
	log bool
}

func (f *faultyFile) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(f.File) }

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.fs.write.Load(); f.log && err != nil {
		return 0, *err
	}
	return f.File.WriteAt(p, off)
}

func (f *faultyFile) Sync(flags vfs.SyncFlag) error {
	if err := f.fs.flush.Load(); f.log && err != nil {
		return *err
	}
	return f.File.Sync(flags)
}

// openFaulty opens a catalog on a faulty file system of its own.
func openFaulty(t *testing.T) (*sqlstore.SQLite, *faulty) {
	t.Helper()
	f := &faulty{VFS: vfs.Find("")}
	name := fmt.Sprintf("faulty-%p", f)
	vfs.Register(name, f)
	t.Cleanup(func() { vfs.Unregister(name) })
	return open(t, sqlstore.OnVFS(sqlstore.Options{Path: t.TempDir() + "/catalog.db"}, name)), f
}

// A commit whose flush fails may be in the log all the same, so nobody is told that it is not: neither those whose closure succeeded
// nor those whose closure's error may rest on rows of the group. One that is sure to have written nothing is unavailable.
func TestCommitFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault func(f *faulty) *atomic.Pointer[error]
		cause error
		want  error
	}{
		{"flush", func(f *faulty) *atomic.Pointer[error] { return &f.flush }, sqlite3.IOERR_FSYNC, store.ErrUnknown},
		{"write", func(f *faulty) *atomic.Pointer[error] { return &f.write }, sqlite3.IOERR_WRITE, store.ErrUnknown},
		{"disk full", func(f *faulty) *atomic.Pointer[error] { return &f.write }, sqlite3.FULL, store.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, f := openFaulty(t)
			put := func(key string) error {
				return s.Update(t.Context(), func(tx store.Tx) error { return tx.InsertMeta(key, "x") })
			}
			if err := put("before"); err != nil {
				t.Fatalf("before the fault: %v", err)
			}
			fault := c.fault(f)
			fault.Store(&c.cause)
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					if err := put(fmt.Sprint(i % 2)); !errors.Is(err, c.want) {
						t.Errorf("during the fault: got error %v, want %v", err, c.want)
					}
				})
			}
			wg.Wait()
			fault.Store(nil)
			if err := put("after"); err != nil {
				t.Errorf("after the fault: %v", err)
			}
			err := s.View(t.Context(), func(r store.Reader) error {
				for key, want := range map[string]error{"before": nil, "0": store.ErrNotFound, "1": store.ErrNotFound, "after": nil} {
					if _, err := r.Meta(key); !errors.Is(err, want) {
						t.Errorf("%s: got error %v, want %v", key, err, want)
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("View: %v", err)
			}
		})
	}
}
