package lance

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"
)

// Tags and branches are small JSON files below "<table>/_refs", which Lance clients write and read themselves (client
// contract, facts 65-67). What this file and its neighbours know of them was found by experiment with pylance 14.0.2.

// refSuffix ends the name of every reference file.
const refSuffix = ".json"

// maxRefFileBytes bounds the name of a reference file: what a local file system can hold.
const maxRefFileBytes = 255

// refFields are the members of a reference file. Names count exactly, as for Lance; members that it does not know are ignored.
type refFields struct {
	what   string
	fields map[string]json.RawMessage
	err    error // the first one met
}

func parseRef(what string, data []byte) *refFields {
	r := &refFields{what: what}
	if err := json.Unmarshal(data, &r.fields); err != nil {
		r.err = corrupt(what, "is not a JSON object: %v", err)
	} else if r.fields == nil {
		r.err = corrupt(what, "is null, not a JSON object")
	}
	return r
}

// optional decodes a member into v, and leaves v alone where the member is absent or null.
func (r *refFields) optional(name string, v any) {
	raw, ok := r.fields[name]
	if r.err != nil || !ok || string(raw) == "null" {
		return
	}
	if err := json.Unmarshal(raw, v); err != nil {
		r.err = corrupt(r.what, "member %q: %v", name, err)
	}
}

// required decodes a member into v; its absence is an error.
func (r *refFields) required(name string, v any) {
	if raw, ok := r.fields[name]; r.err == nil && (!ok || string(raw) == "null") {
		r.err = corrupt(r.what, "lacks the member %q", name)
	}
	r.optional(name, v)
}

// branch decodes an optional member that names a branch; absent, null and "main" are Main.
func (r *refFields) branch(name string) Branch {
	var wire string
	r.optional(name, &wire)
	b, err := ParseBranchName(wire)
	if err != nil && r.err == nil {
		r.err = corrupt(r.what, "member %q: %v", name, err)
	}
	return b
}

// time decodes an optional point in time, in UTC; zero where it is absent. Years that its text form cannot hold are an error.
func (r *refFields) time(name string) time.Time {
	var t time.Time
	r.optional(name, &t)
	t = t.UTC()
	if year := t.Year(); r.err == nil && (year < 1 || year > 9999) {
		r.err = corrupt(r.what, "member %q: the year %d is out of range", name, year)
	}
	return t
}

// marshalRef writes a reference file as Lance does: indented by two spaces, no line end after the last brace.
func marshalRef(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// refBranch is a branch's name as a reference file holds it: null for Main.
func refBranch(b Branch) *string {
	if b == Main {
		return nil
	}
	name := string(b)
	return &name
}

// refMetadata returns m, never nil, so that it is written as an object.
func refMetadata(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// refFile returns the file name of a reference: everything but ASCII letters, digits, ".", "-" and "_" is percent-encoded,
// so that the slash of a branch gives "feature%2Fx.json".
func refFile(name string) string {
	return strings.ReplaceAll(escapePath(name), "/", "%2F") + refSuffix
}

// isRefRune reports whether Lance allows r in the name of a reference: letters and digits of any script, ".", "-", "_".
func isRefRune(r rune) bool {
	return strings.ContainsRune(".-_", r) || unicode.IsLetter(r) || unicode.IsNumber(r) ||
		unicode.In(r, unicode.Other_Alphabetic, unicode.Other_Lowercase, unicode.Other_Uppercase)
}
