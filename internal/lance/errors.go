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
