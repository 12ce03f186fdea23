package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/local"
)

// While anybody holds a directory's lock, conditional calls wait for it, and no longer than their context.
func TestConditionalCallsWaitForTheLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	info, err := s.PutIfAbsent(t.Context(), "t/a", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(filepath.Join(dir, "t"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.DeleteIf(ctx, "t/a", info.ETag); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("DeleteIf beside a held lock = %v, want context.DeadlineExceeded", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.PutIf(ctx, "t/a", info.ETag, []byte("y")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("PutIf beside a held lock = %v, want context.DeadlineExceeded", err)
	}
	// Puts need no lock.
	if _, err := s.PutIfAbsent(t.Context(), "t/b", nil); err != nil {
		t.Errorf("PutIfAbsent beside a held lock = %v, want nil", err)
	}
	if got := names(t, filepath.Join(dir, "t")); fmt.Sprint(got) != "[a b]" {
		t.Errorf("the directory holds %q, want \"a\" and \"b\"", got)
	}
	removed := make(chan error, 1)
	go func() { removed <- s.DeleteIf(t.Context(), "t/a", info.ETag) }()
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-removed; err != nil {
		t.Errorf("DeleteIf once the lock is free = %v, want nil", err)
	}
}

const rivalRoot = "LANCEREST_TEST_RIVAL_ROOT"

// rivalRounds is how often each process puts and removes.
const rivalRounds = 60

// Two processes put under one name and remove what they see there. Puts and removals that succeeded in both together must
// balance: an object is never removed twice, and never by the ETag of another.
func TestConditionalDeleteHoldsBetweenProcesses(t *testing.T) {
	t.Parallel()
	if root := os.Getenv(rivalRoot); root != "" {
		puts, removals := contend(t, open(t, root))
		fmt.Printf("rival: %d %d\n", puts, removals)
		return
	}
	dir := t.TempDir()
	rival := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	rival.Env = append(os.Environ(), rivalRoot+"="+dir)
	var output strings.Builder
	rival.Stdout, rival.Stderr = &output, &output
	if err := rival.Start(); err != nil {
		t.Fatal(err)
	}
	puts, removals := contend(t, open(t, dir))
	if err := rival.Wait(); err != nil {
		t.Fatalf("the other process: %v\n%s", err, output.String())
	}
	var otherPuts, otherRemovals int
	_, report, _ := strings.Cut(output.String(), "rival: ")
	if _, err := fmt.Sscan(report, &otherPuts, &otherRemovals); err != nil {
		t.Fatalf("the other process reported no counts: %v\n%s", err, output.String())
	}
	left := 0
	if _, err := os.Stat(filepath.Join(dir, "t/a")); err == nil {
		left = 1
	}
	if puts+otherPuts-removals-otherRemovals != left {
		t.Errorf("puts %d + %d, removals %d + %d, but %d objects are left", puts, otherPuts, removals, otherRemovals, left)
	}
}

// contend puts and removes in two goroutines and counts what succeeded.
func contend(t *testing.T, s *local.Store) (puts, removals int) {
	t.Helper()
	var put, removed atomic.Int64
	done := make(chan struct{}, 2)
	for range 2 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range rivalRounds {
				if _, err := s.PutIfAbsent(t.Context(), "t/a", []byte("same")); err == nil {
					put.Add(1)
				} else if !errors.Is(err, objstore.ErrExists) {
					t.Errorf("PutIfAbsent = %v, want nil or ErrExists", err)
				}
				info, err := s.Head(t.Context(), "t/a")
				if err != nil {
					continue
				}
				if err := s.DeleteIf(t.Context(), "t/a", info.ETag); err == nil {
					removed.Add(1)
				} else if !errors.Is(err, objstore.ErrChanged) {
					t.Errorf("DeleteIf = %v, want nil or ErrChanged", err)
				}
			}
		}()
	}
	<-done
	<-done
	return int(put.Load()), int(removed.Load())
}
