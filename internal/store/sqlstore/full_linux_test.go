package sqlstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// TestFullDisk: a full disk is called one when a catalog is opened. Later it makes the catalog one that is not ready, though it can be read, until
// something could be written again; being asked is enough to find that out.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("a small disk cannot be mounted here: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	s := open(t, sqlstore.Options{Path: filepath.Join(dir, "a", "catalog.db")})
	other := filepath.Join(dir, "b", "catalog.db")
	if err := os.Mkdir(filepath.Dir(other), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other+".lock", []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err) // so that it is not the lock for which there is no room
	}
	fillDisk(t, filepath.Join(dir, "fill"))
	if _, err := sqlstore.OpenSQLite(t.Context(), sqlstore.Options{Path: other}); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("OpenSQLite on a full disk: %v, want an error that says so", err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping before anything was to be written: %v", err)
	}
	put := func() error {
		return s.Update(t.Context(), func(tx store.Tx) error { return tx.InsertMeta("k", "x") })
	}
	if err := put(); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("Update on a full disk: %v, want an error that says so", err)
	}
	for range 2 {
		if err := s.Ping(t.Context()); err == nil {
			t.Error("Ping on a full disk succeeds")
		}
	}
	if err := os.Remove(filepath.Join(dir, "fill")); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping once there is room again: %v", err)
	}
	if err := put(); err != nil {
		t.Errorf("Update once there is room again: %v", err)
	}
}

// fillDisk writes a file until the disk is full.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
