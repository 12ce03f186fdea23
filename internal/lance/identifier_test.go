package lance_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lancerest/lancerest/internal/lance"
)

// wantInvalid fails the test unless err is an *InvalidError whose text holds part.
func wantInvalid(t *testing.T, err error, part string) {
	t.Helper()
	var invalid *lance.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got error %v, want an *InvalidError about %q", err, part)
	}
	if !strings.Contains(err.Error(), part) {
		t.Errorf("got error %q, want it to speak of %q", err, part)
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"t", "CON", "50%25", "a b", "a$b", "*", "a.b", "...", "é", "e\u0301", "表", `a\b`, `"`, "a+b", strings.Repeat("x", 255),
	} {
		if err := lance.CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v, want nil", name, err)
		}
	}
	for _, tc := range []struct{ name, input, want string }{
		{"empty", "", "is empty"},
		{"dot", ".", "reserved"},
		{"dots", "..", "reserved"},
		{"slash", "a/b", `contains "/"`},
		{"leading blank", " a", "white space"},
		{"trailing blank", "a ", "white space"},
		{"trailing no-break space", "a\u00a0", "white space"},
		{"NUL", "a\x00", "control"},
		{"newline", "a\nb", "control"},
		{"DEL", "a\x7f", "control"},
		{"C1", "a\u0085b", "control"},
		{"not UTF-8", "\xff", "UTF-8"},
		{"too long", strings.Repeat("x", 5000), "5000 bytes"},
		{"too long in bytes only", strings.Repeat("é", 128), "256 bytes"},
		{"too long to be quoted whole", "a" + strings.Repeat("é", 200), `é"… (401 bytes)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := lance.CheckName(tc.input)
			wantInvalid(t, err, tc.want)
			if len(err.Error()) > 250 {
				t.Errorf("message has %d bytes, want a short one", len(err.Error()))
			}
		})
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		joined, delimiter string
		want              []string
	}{
		{"$", "$", nil},
		{".", ".", nil},
		{"::", "::", nil},
		{"t", "$", []string{"t"}},
		{"ns$t", "$", []string{"ns", "t"}},
		{"ns.t", "$", []string{"ns.t"}},
		{"main.users", ".", []string{"main", "users"}},
		{"ns/t", "/", []string{"ns", "t"}},
		{"a__delim__b", "__delim__", []string{"a", "b"}},
		{"a\x1fb$c", "\x1f", []string{"a", "b$c"}},
		{"50%25", "$", []string{"50%25"}},
	} {
		got, err := lance.ParseID(tc.joined, tc.delimiter)
		if err != nil {
			t.Errorf("ParseID(%q, %q): %v", tc.joined, tc.delimiter, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("ParseID(%q, %q) (-want +got):\n%s", tc.joined, tc.delimiter, diff)
		}
		if joined := lance.JoinID(got, tc.delimiter); joined != tc.joined {
			t.Errorf("JoinID(%q, %q) = %q, want %q", got, tc.delimiter, joined, tc.joined)
		}
	}
}

func TestParseIDRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, joined, delimiter, want string }{
		{"empty id", "", "$", "bare delimiter"},
		{"empty part in the middle", "a$$b", "$", "empty name"},
		{"empty part in front", "$a", "$", "empty name"},
		{"empty part at the end", "a$", "$", "empty name"},
		{"two delimiters", "$$", "$", "empty name"},
		{"empty delimiter", "ab", "", "delimiter"},
		{"delimiter not UTF-8", "ab", "\xff", "UTF-8"},
		{"delimiter too long", "ab", strings.Repeat("-", 65), "65 bytes"},
		{"reserved part", "a$..", "$", "reserved"},
		{"slash in a part", "a$b/c", "$", `contains "/"`},
		{"not UTF-8", "a$\xff", "$", "UTF-8"},
		{"too deep", strings.Repeat("a$", 64) + "a", "$", "64 levels"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := lance.ParseID(tc.joined, tc.delimiter)
			wantInvalid(t, err, tc.want)
		})
	}
}

func TestCheckPath(t *testing.T) {
	t.Parallel()
	deep := slices.Repeat([]string{"a"}, lance.MaxDepth)
	for _, tc := range []struct {
		parts     []string
		delimiter string
	}{
		{nil, "$"},
		{nil, ""},
		{[]string{"ns", "t"}, "$"},
		{[]string{"ns", "a$b"}, ""},
		{[]string{"ns", "a$b"}, "\x1f"},
		{[]string{"a", ":b"}, "::"},
		{deep, "$"},
	} {
		if err := lance.CheckPath(tc.parts, tc.delimiter); err != nil {
			t.Errorf("CheckPath(%q, %q) = %v, want nil", tc.parts, tc.delimiter, err)
		}
	}
	for _, tc := range []struct {
		name      string
		parts     []string
		delimiter string
		want      string
	}{
		{"delimiter in a name", []string{"ns", "a$b"}, "$", "another delimiter"},
		{"names that merge with the delimiter", []string{"a:", "b"}, "::", "reads differently"},
		{"empty name", []string{"ns", ""}, "$", "is empty"},
		{"empty name without a delimiter", []string{""}, "", "is empty"},
		{"too deep", append(deep, "a"), "$", "65 levels"},
		{"delimiter not UTF-8", []string{"a"}, "\xff", "UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			wantInvalid(t, lance.CheckPath(tc.parts, tc.delimiter), tc.want)
		})
	}
}

func TestDecodeSegment(t *testing.T) {
	t.Parallel()
	for escaped, want := range map[string]string{
		"":            "",
		"ns$t":        "ns$t",
		"ns%24t":      "ns$t",
		"a+b":         "a b",
		"a%20b":       "a b",
		"a%2Bb":       "a+b",
		"a%2Fb":       "a/b",
		"50%2525":     "50%25",
		"%E8%A1%A8":   "表",
		"表":           "表",
		"a%2bb%2f%7e": "a+b/~",
	} {
		got, err := lance.DecodeSegment(escaped)
		if err != nil || got != want {
			t.Errorf("DecodeSegment(%q) = %q, %v, want %q", escaped, got, err, want)
		}
	}
	for escaped, want := range map[string]string{
		"%":      "two hexadecimal digits",
		"a%2":    "two hexadecimal digits",
		"%zz":    "two hexadecimal digits",
		"%FF":    "UTF-8",
		"a%C3":   "UTF-8",
		"\xff":   "UTF-8",
		"%25%GG": "two hexadecimal digits",
	} {
		_, err := lance.DecodeSegment(escaped)
		wantInvalid(t, err, want)
	}
}

// FuzzParseID holds that whatever ParseID accepts is a valid path with that delimiter, and joins back to the same text.
func FuzzParseID(f *testing.F) {
	for _, seed := range [][2]string{{"$", "$"}, {"a$b", "$"}, {"a$$b", "$"}, {"a:::b", "::"}, {".", "."}, {"", ""}, {"é\x1fb", "\x1f"}, {"aaaa", "aa"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, joined, delimiter string) {
		parts, err := lance.ParseID(joined, delimiter)
		if err != nil {
			return
		}
		if err := lance.CheckPath(parts, delimiter); err != nil {
			t.Errorf("ParseID(%q, %q) = %q, which CheckPath refuses: %v", joined, delimiter, parts, err)
		}
		if got := lance.JoinID(parts, delimiter); got != joined {
			t.Errorf("JoinID(ParseID(%q, %q)) = %q", joined, delimiter, got)
		}
	})
}

// FuzzCheckPath holds that every path that CheckPath accepts survives the joined form.
func FuzzCheckPath(f *testing.F) {
	f.Add("a:", "b", "::")
	f.Add("ns", "t", "$")
	f.Fuzz(func(t *testing.T, first, second, delimiter string) {
		parts := []string{first, second}
		if delimiter == "" || lance.CheckPath(parts, delimiter) != nil {
			return
		}
		got, err := lance.ParseID(lance.JoinID(parts, delimiter), delimiter)
		if err != nil || !slices.Equal(got, parts) {
			t.Errorf("ParseID(JoinID(%q, %q)) = %q, %v", parts, delimiter, got, err)
		}
	})
}

// FuzzDecodeSegment holds that decoding happens exactly once: the form encoding of any text decodes to that text.
func FuzzDecodeSegment(f *testing.F) {
	for _, seed := range []string{"ns%24t", "a+b", "50%2525", "%FF", "%", "表"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, escaped string) {
		decoded, err := lance.DecodeSegment(escaped)
		if err != nil {
			return
		}
		var again strings.Builder
		for i := range len(decoded) {
			again.WriteString("%")
			again.WriteByte("0123456789abcdef"[decoded[i]>>4])
			again.WriteByte("0123456789abcdef"[decoded[i]&15])
		}
		if got, err := lance.DecodeSegment(again.String()); err != nil || got != decoded {
			t.Errorf("decoding %q gave %q, whose encoding gives %q, %v", escaped, decoded, got, err)
		}
	})
}
