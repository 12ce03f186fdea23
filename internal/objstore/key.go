package objstore

import (
	"fmt"
	"strings"
)

// CheckKey returns nil for a key of the contract's form, else ErrInvalidKey with what is wrong. A key is raw (client contract,
// fact 42): spaces, '%', '+', '#' and any other byte but NUL stand for themselves.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty, want a path such as \"t.lance/_versions/1.manifest\"", ErrInvalidKey)
	case strings.HasPrefix(key, "/"):
		return fmt.Errorf("%w %q: it begins with \"/\", want a path relative to the store's root", ErrInvalidKey, key)
	case strings.Contains(key, "\x00"):
		return fmt.Errorf("%w %q: it holds a NUL byte", ErrInvalidKey, key)
	}
	for segment := range strings.SplitSeq(key, "/") {
		switch segment {
		case "":
			return fmt.Errorf("%w %q: it has an empty segment", ErrInvalidKey, key)
		case ".", "..":
			return fmt.Errorf("%w %q: it has a %q segment", ErrInvalidKey, key, segment)
		}
	}
	return nil
}

// CheckPrefix returns nil for a prefix of the contract's form, which is a key with "/" after it, else ErrInvalidKey with what
// is wrong. The empty prefix is refused: no caller has a reason to list or remove a whole store.
func CheckPrefix(prefix string) error {
	dir, ok := strings.CutSuffix(prefix, "/")
	if !ok {
		return fmt.Errorf("%w: prefix %q does not end in \"/\"", ErrInvalidKey, prefix)
	}
	if err := CheckKey(dir); err != nil {
		return fmt.Errorf("prefix %q: %w", prefix, err)
	}
	return nil
}
