package lance

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// InvalidError says that an input breaks a rule of this package: a name, an id, a location, a path, a reference. It is the
// caller's mistake, never a storage fault; the catalog answers it with code 13 (spec section 5.2).
type InvalidError struct {
	What string // the kind of input and the input itself, quoted and shortened: `name "a/b"`
	Why  string // the rule that it breaks and what would be right
}

// Error returns "<what>: <why>".
func (e *InvalidError) Error() string { return e.What + ": " + e.Why }

// invalid builds an InvalidError about an input of the given kind.
func invalid(kind, input, why string, args ...any) error {
	if len(args) > 0 {
		why = fmt.Sprintf(why, args...)
	}
	return &InvalidError{What: kind + " " + quote(input), Why: why}
}

// quote returns s quoted, cut to a length that suits a message.
func quote(s string) string {
	const limit = 80
	if len(s) <= limit {
		return strconv.Quote(s)
	}
	cut := limit
	for cut > limit-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "… (" + strconv.Itoa(len(s)) + " bytes)"
}

// CorruptError says that an object in storage is not what its name promises: a manifest, a tag or a branch file that cannot
// be read. The caller's request is not at fault; the catalog answers it with code 19, invalid table state (case C5).
type CorruptError struct {
	What string // the kind of object, with its name where it has one: `tag file "v1"`
	Why  string // what is wrong with it: its size, its magic number, a field
}

// Error returns "<what>: <why>".
func (e *CorruptError) Error() string { return e.What + ": " + e.Why }

// corrupt builds a CorruptError.
func corrupt(what, why string, args ...any) error {
	return &CorruptError{What: what, Why: fmt.Sprintf(why, args...)}
}
