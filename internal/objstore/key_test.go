package objstore_test

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
)

func TestCheckKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"a", "a/b", "a b/%2F/$+#?", "...", "a/..b", "ä/日本", "a\\b", "\xff"} {
		if err := objstore.CheckKey(key); err != nil {
			t.Errorf("CheckKey(%q) = %v, want nil", key, err)
		}
		if err := objstore.CheckPrefix(key + "/"); err != nil {
			t.Errorf("CheckPrefix(%q) = %v, want nil", key+"/", err)
		}
	}
	for _, key := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "a/..", "../a", "a\x00b"} {
		if err := objstore.CheckKey(key); !errors.Is(err, objstore.ErrInvalidKey) {
			t.Errorf("CheckKey(%q) = %v, want ErrInvalidKey", key, err)
		}
		if err := objstore.CheckPrefix(key + "/"); !errors.Is(err, objstore.ErrInvalidKey) {
			t.Errorf("CheckPrefix(%q) = %v, want ErrInvalidKey", key+"/", err)
		}
	}
	if err := objstore.CheckPrefix("a"); !errors.Is(err, objstore.ErrInvalidKey) {
		t.Errorf(`CheckPrefix("a") = %v, want ErrInvalidKey`, err)
	}
}

// A valid key is one that no cleaning changes and that cannot climb out of a root.
func FuzzCheckKey(f *testing.F) {
	for _, seed := range []string{"a/b", "", "/", "a/../b", "a//b", "a/.", "\x00", "%2e%2e/a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		valid := objstore.CheckKey(key) == nil
		clean := key != "" && key != "." && path.Clean("/"+key) == "/"+key && !strings.Contains(key, "\x00")
		if valid != clean {
			t.Errorf("CheckKey(%q) says valid = %v, cleaning says %v", key, valid, clean)
		}
	})
}
