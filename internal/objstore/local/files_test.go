package local_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/local"
)

func TestNewRefusesWhatIsNoDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	write(t, file, "x")
	for _, root := range []string{file, filepath.Join(dir, "absent")} {
		if s, err := local.New(local.Options{Root: root}); err == nil {
			t.Errorf("New(%q) = %v, nil, want an error", root, s)
		}
	}
}

func TestRootIsSlashUnlessSaid(t *testing.T) {
	t.Parallel()
	s, err := local.New(local.Options{})
	if err != nil {
		t.Fatalf("New = %v, want nil", err)
	}
	file := filepath.Join(t.TempDir(), "a b")
	write(t, file, "x")
	data, info, err := s.Get(t.Context(), strings.TrimPrefix(file, "/"), 0)
	if err != nil || string(data) != "x" || info.Key != file[1:] {
		t.Errorf("Get = %q, %+v, %v, want \"x\" under the path without its first slash", data, info, err)
	}
	// Names that are not there, so that nothing is lost should it not be refused.
	for _, prefix := range []string{"lancerest-no-such-directory/", "/"} {
		if _, err := s.DeleteTree(t.Context(), prefix); !errors.Is(err, objstore.ErrInvalidKey) {
			t.Errorf("DeleteTree(%q) = %v, want ErrInvalidKey", prefix, err)
		}
	}
}

// The ETag is the one that Lance's own library gives to the same file, so that both sides can use it as a cache key.
func TestETagIsTheClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	file := filepath.Join(dir, "a")
	write(t, file, strings.Repeat("x", 0x170))
	for _, c := range []struct {
		at     time.Time
		micros string
	}{
		{time.UnixMicro(0x6616a5d011f75).Add(999), "6616a5d011f75"},
		{time.Unix(-5, 0), "0"},
	} {
		if err := os.Chtimes(file, c.at, c.at); err != nil {
			t.Fatal(err)
		}
		stat, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("\"%x-%s-170\"", stat.Sys().(*syscall.Stat_t).Ino, c.micros)
		info, err := s.Head(t.Context(), "a")
		if err != nil || info.ETag != want || !info.Modified.Equal(c.at) {
			t.Errorf("Head = %+v, %v, want ETag %s of %v", info, err, want, c.at)
		}
	}
}

// The store stamps files itself, in whole microseconds that always increase: the kernel's own times may not differ between an
// object and the one that follows it, and the ETag is made of them.
func TestPutsAreStampedInOrder(t *testing.T) {
	eachWay(t, func(t *testing.T, s *local.Store, _ string) {
		var last time.Time
		for i := range 50 {
			info, err := s.PutIfAbsent(t.Context(), fmt.Sprintf("t/%d", i), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !info.Modified.After(last) || info.Modified.Nanosecond()%1000 != 0 {
				t.Fatalf("put %d is of %v, want a whole microsecond after %v", i, info.Modified, last)
			}
			last = info.Modified
		}
	})
}

func TestWhatIsNoRegularFileIsNoObject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	if err := os.MkdirAll(filepath.Join(dir, "t/directory"), 0o755); err != nil {
		t.Fatal(err)
	}
	// Opening a pipe for reading waits for a writer, if one is not careful.
	if err := syscall.Mkfifo(filepath.Join(dir, "t/pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "t/broken")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"t/directory", "t/pipe", "t/broken"} {
		if _, _, err := s.Get(t.Context(), key, 0); !errors.Is(err, objstore.ErrNotFound) {
			t.Errorf("Get(%q) = %v, want ErrNotFound", key, err)
		}
		if _, err := s.Head(t.Context(), key); !errors.Is(err, objstore.ErrNotFound) {
			t.Errorf("Head(%q) = %v, want ErrNotFound", key, err)
		}
		// But its name is taken, and nothing is overwritten.
		if _, err := s.PutIfAbsent(t.Context(), key, nil); !errors.Is(err, objstore.ErrExists) {
			t.Errorf("PutIfAbsent(%q) = %v, want ErrExists", key, err)
		}
	}
	if got := list(t, s, "t/"); len(got) != 0 {
		t.Errorf("List = %q, want nothing", got)
	}
}

func TestAFileInTheWayOfADirectoryIsNeitherAbsentNorTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	write(t, filepath.Join(dir, "a"), "x")
	_, err := s.PutIfAbsent(t.Context(), "a/b/c", nil)
	if err == nil || errors.Is(err, objstore.ErrExists) || errors.Is(err, objstore.ErrNotFound) {
		t.Errorf("PutIfAbsent below a file = %v, want an error that is not of the contract's kinds", err)
	}
}

// eachWay runs a test with and without named temporary files.
func eachWay(t *testing.T, run func(t *testing.T, s *local.Store, dir string)) {
	t.Parallel()
	for name, prepare := range map[string]func(*local.Store){"anonymous": func(*local.Store) {}, "named": (*local.Store).NameTemporaries} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir)
			prepare(s)
			run(t, s, dir)
		})
	}
}

// Names of 255 bytes are the most a file system holds; a temporary name made of one must not be longer.
func TestLongNames(t *testing.T) {
	eachWay(t, func(t *testing.T, s *local.Store, _ string) {
		longest := strings.Repeat("ä", 127) + "x"
		info, err := s.PutIfAbsent(t.Context(), "t/"+longest, []byte("x"))
		if err != nil {
			t.Fatalf("PutIfAbsent of a name of 255 bytes = %v, want nil", err)
		}
		if _, err := s.PutIf(t.Context(), "t/"+longest, info.ETag, []byte("y")); err != nil {
			t.Errorf("PutIf of a name of 255 bytes = %v, want nil", err)
		}
		tooLong := "t/" + longest + "x"
		_, _, getErr := s.Get(t.Context(), tooLong, 0)
		_, putErr := s.PutIfAbsent(t.Context(), tooLong, nil)
		for _, err := range []error{getErr, putErr, s.Delete(t.Context(), tooLong)} {
			if !errors.Is(err, objstore.ErrInvalidKey) {
				t.Errorf("a name of 256 bytes: %v, want ErrInvalidKey", err)
			}
		}
	})
}

func TestNothingIsLeftBesideWhatWasPut(t *testing.T) {
	eachWay(t, func(t *testing.T, s *local.Store, dir string) {
		info, err := s.PutIfAbsent(t.Context(), "t/a", []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = s.PutIfAbsent(t.Context(), "t/a", []byte("loses"))
		if _, err := s.PutIf(t.Context(), "t/a", info.ETag, []byte("y")); err != nil {
			t.Fatal(err)
		}
		_, _ = s.PutIf(t.Context(), "t/a", info.ETag, []byte("loses"))
		if got := names(t, filepath.Join(dir, "t")); !slices.Equal(got, []string{"a"}) {
			t.Errorf("the directory holds %q, want only \"a\"", got)
		}
	})
}

// What is put can be read by whom the umask lets, as what clients write can.
func TestFilesHaveTheRightsOfClientsFiles(t *testing.T) {
	eachWay(t, func(t *testing.T, s *local.Store, dir string) {
		if _, err := s.PutIfAbsent(t.Context(), "t/a", nil); err != nil {
			t.Fatal(err)
		}
		plain, err := os.Create(filepath.Join(dir, "plain"))
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		want, err := plain.Stat()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.Stat(filepath.Join(dir, "t/a"))
		if err != nil || got.Mode() != want.Mode() {
			t.Errorf("the mode is %v, %v, want %v", got.Mode(), err, want.Mode())
		}
	})
}

func TestListFollowsNoLinkOutOfItsPrefix(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	write(t, filepath.Join(dir, "r/t/sub/file"), "inside")
	write(t, filepath.Join(dir, "r/other/secret"), "outside")
	for link, target := range map[string]string{
		"inside":  "sub/file",
		"outside": "../other/secret",
		"dir":     "sub",
		"up":      "..",
		"circle":  "circle",
		"broken":  "nowhere",
	} {
		if err := os.Symlink(target, filepath.Join(dir, "r/t", link)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := list(t, s, "r/t/"), []string{"r/t/inside", "r/t/sub/file"}; !slices.Equal(got, want) {
		t.Errorf("List = %q, want %q", got, want)
	}
}

func TestDeleteTreeFollowsNoLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	kept := filepath.Join(dir, "r/other/kept")
	write(t, kept, "x")
	write(t, filepath.Join(dir, "r/t/a/b/file"), "x")
	for link, target := range map[string]string{"r/t/a/up": "../../other", "r/t/file": kept, "r/link": "other"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for prefix, want := range map[string]int{"r/t/": 3, "r/link/": 1} {
		if removed, err := s.DeleteTree(t.Context(), prefix); err != nil || removed != want {
			t.Errorf("DeleteTree(%q) = %d, %v, want %d, nil", prefix, removed, err, want)
		}
	}
	if got := names(t, filepath.Join(dir, "r")); !slices.Equal(got, []string{"other"}) {
		t.Errorf("left are %q, want only \"other\"", got)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what the links led to: %v, want it untouched", err)
	}
}

// More names than are read at a time, and directories without files.
func TestDeleteTreeRemovesLargeAndEmptyDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	if err := os.MkdirAll(filepath.Join(dir, "r/t/empty/empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 2500 {
		write(t, filepath.Join(dir, "r/t/_versions", fmt.Sprintf("%d.manifest", i)), "")
	}
	removed, err := s.DeleteTree(t.Context(), "r/t/")
	if err != nil || removed != 2500 {
		t.Errorf("DeleteTree = %d, %v, want 2500, nil", removed, err)
	}
	if got := names(t, filepath.Join(dir, "r")); len(got) != 0 {
		t.Errorf("left are %q, want nothing", got)
	}
}

// A file that somebody cuts short while it is read is handed out as it was before or after, or not at all.
func TestGetBesideAFileThatIsCutShort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	whole := strings.Repeat("x", 1<<20)
	for round := range 200 {
		key := fmt.Sprint(round)
		file := filepath.Join(dir, key)
		write(t, file, whole)
		cut := make(chan error)
		go func() { cut <- os.Truncate(file, 0) }()
		data, info, err := s.Get(t.Context(), key, 0)
		if err == nil && (info.Size != int64(len(data)) || len(data) > 0 && string(data) != whole) {
			t.Errorf("Get = %d bytes, described as %d, not what was ever written", len(data), info.Size)
		}
		if errors.Is(err, objstore.ErrNotFound) {
			t.Errorf("Get = %v, want the bytes or an error of no kind", err)
		}
		if err := <-cut; err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, file, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

// names returns what a directory holds.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

// list returns the keys under a prefix.
func list(t *testing.T, s objstore.Store, prefix string) []string {
	t.Helper()
	var keys []string
	for info, err := range s.List(t.Context(), prefix, "") {
		if err != nil {
			t.Fatalf("List(%q) = %v, want no error", prefix, err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}
