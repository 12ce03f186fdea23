package wire_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// obj and list spell JSON bodies.
type (
	obj  map[string]any
	list []any
)

// success stands for "no error" where an error code is expected.
const success = -1

// The error codes of the specification.
const (
	unsupported           = 0
	namespaceNotFound     = 1
	namespaceExists       = 2
	namespaceNotEmpty     = 3
	tableNotFound         = 4
	tableExists           = 5
	indexNotFound         = 6
	tagNotFound           = 8
	tagExists             = 9
	transactionNotFound   = 10
	versionNotFound       = 11
	invalidInput          = 13
	conflict              = 14
	internalError         = 18
	invalidTableState     = 19
	branchNotFound        = 22
	branchExists          = 23
	defaultDelimiterQuery = "delimiter=%24"
)

// statusOf is the HTTP status that belongs to an error code.
func statusOf(code int) int {
	switch code {
	case unsupported:
		return http.StatusNotAcceptable
	case namespaceNotFound, tableNotFound, 6, tagNotFound, transactionNotFound, versionNotFound, 12, branchNotFound:
		return http.StatusNotFound
	case namespaceExists, namespaceNotEmpty, tableExists, 7, tagExists, conflict, invalidTableState, branchExists:
		return http.StatusConflict
	case invalidInput, 20:
		return http.StatusBadRequest
	case 15:
		return http.StatusForbidden
	case 16:
		return http.StatusUnauthorized
	case 17:
		return http.StatusServiceUnavailable
	case 21:
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}

// call is one request, as raw as a test wants it.
type call struct {
	op     string // the operation it is meant for; "" for none
	method string
	path   string // escaped, sent as it stands
	query  string // raw, without the question mark
	body   []byte // nil sends none
	header http.Header
}

// option changes a call before it is sent.
type option func(*call)

// query replaces the query string; the default is the delimiter "$" as every namespace client sends it.
func query(raw string) option { return func(c *call) { c.query = raw } }

// andQuery appends to the query string.
func andQuery(raw string) option { return func(c *call) { c.query += "&" + raw } }

// path replaces the escaped path.
func path(escaped string) option { return func(c *call) { c.path = escaped } }

// header sets a header; an empty value removes it.
func header(name, value string) option {
	return func(c *call) {
		if value == "" {
			c.header.Del(name)
			return
		}
		c.header.Set(name, value)
	}
}

// rawBody sends the bytes as they stand.
func rawBody(b string) option { return func(c *call) { c.body = []byte(b) } }

// method replaces the HTTP method.
func method(m string) option { return func(c *call) { c.method = m } }

// noBody sends no body and no Content-Type.
func noBody() option {
	return func(c *call) {
		c.body = nil
		c.header.Del("Content-Type")
	}
}

// answer is what came back.
type answer struct {
	call   call
	status int
	header http.Header
	body   []byte
}

// send performs a call of the operation on the object named by id. body is marshalled for operations that take JSON, with the
// object's id added as the namespace client does; nil means "{}" there. Operations without a JSON body ignore it.
func (e *environment) send(t *testing.T, opName string, id []string, body obj, opts ...option) answer {
	t.Helper()
	op := operationNamed(t, opName)
	c := call{op: opName, method: op.method, path: op.pathFor(id), query: defaultDelimiterQuery, header: http.Header{}}
	switch {
	case op.arrow:
		c.header.Set("Content-Type", "application/vnd.apache.arrow.stream")
		c.body = []byte("not read by a catalog without an engine")
	case op.json:
		whole := obj{}
		if id != nil && !op.bareMap {
			whole["id"] = id
		}
		for k, v := range body {
			whole[k] = v
		}
		c.header.Set("Content-Type", "application/json")
		c.body = marshal(t, whole)
	}
	for _, o := range opts {
		o(&c)
	}
	return e.do(t, c)
}

// do performs a call and reads the whole answer.
func (e *environment) do(t *testing.T, c call) answer {
	t.Helper()
	u, err := url.Parse(e.base)
	if err != nil {
		t.Fatalf("base URL %q: %v", e.base, err)
	}
	plain, err := url.PathUnescape(c.path)
	if err != nil {
		t.Fatalf("path %q cannot be sent by this client: %v", c.path, err)
	}
	u.Path, u.RawPath, u.RawQuery = plain, c.path, c.query
	var body io.Reader
	if c.body != nil {
		body = bytes.NewReader(c.body)
	}
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), c.method, u.String(), body)
	if err != nil {
		t.Fatalf("make request %s %s: %v", c.method, c.path, err)
	}
	req.URL = u
	req.Close = len(c.body) > 1<<20 // a server may refuse a large body and hang up; no later call shall meet that connection
	for k, v := range c.header {
		req.Header[k] = v
	}
	res, err := e.http.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: read the answer: %v", c, err)
	}
	a := answer{call: c, status: res.StatusCode, header: res.Header, body: got}
	if c.op != "" {
		e.note(c.op, a.code())
	}
	return a
}

// String shows the call in one line, long bodies cut.
func (c call) String() string {
	s := c.method + " " + c.path
	if c.query != "" {
		s += "?" + c.query
	}
	if c.body == nil {
		return s + " (no body)"
	}
	return s + " " + cut(c.body)
}

// String shows the answer in one line.
func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, cut(a.body)) }

// cut shortens a body for messages.
func cut(b []byte) string {
	if len(b) > 400 {
		return fmt.Sprintf("%s… (%d bytes)", b[:400], len(b))
	}
	return string(b)
}

// code is the error code in the answer, success for a 2xx, or -2 for anything else.
func (a answer) code() int {
	if a.status/100 == 2 {
		return success
	}
	var e struct {
		Code *int `json:"code"`
	}
	if json.Unmarshal(a.body, &e) != nil || e.Code == nil {
		return -2
	}
	return *e.Code
}

// ok fails the test unless the answer is the operation's success, and returns its JSON object. Numbers stay json.Number.
func (a answer) ok(t *testing.T) obj {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("%s\n got %s\nwant 200", a.call, a)
	}
	if got := mediaType(a.header); got != "application/json" {
		t.Fatalf("%s: Content-Type = %q, want application/json", a.call, got)
	}
	return decode(t, a.body)
}

// empty fails the test unless the answer is an empty 200, which only the two exists operations give.
func (a answer) empty(t *testing.T) {
	t.Helper()
	if a.status != http.StatusOK || len(a.body) != 0 {
		t.Fatalf("%s\n got %s\nwant 200 and no body", a.call, a)
	}
}

// fails fails the test unless the answer is an error of exactly this code with its status in the one shape of errors
// (client contract, facts 23 to 26). It returns the error's words: error and detail.
func (a answer) fails(t *testing.T, code int) string {
	t.Helper()
	if a.status != statusOf(code) || a.code() != code {
		t.Fatalf("%s\n got %s\nwant status %d with code %d", a.call, a, statusOf(code), code)
	}
	return a.words(t)
}

// failsWith fails the test unless the answer is an error of one of these codes; for points that the specification leaves open.
func (a answer) failsWith(t *testing.T, codes ...int) string {
	t.Helper()
	for _, c := range codes {
		if a.code() == c {
			return a.fails(t, c)
		}
	}
	t.Fatalf("%s\n got %s\nwant one of the codes %v", a.call, a, codes)
	return ""
}

// words checks the shape of an error and returns its error and detail texts.
func (a answer) words(t *testing.T) string {
	t.Helper()
	if got := mediaType(a.header); got != "application/json" {
		t.Fatalf("%s\n got %s\nwith Content-Type %q, want application/json", a.call, a, got)
	}
	m := decode(t, a.body)
	if _, ok := m["code"].(json.Number); !ok {
		t.Fatalf("%s\n got %s\nwant an integer code", a.call, a)
	}
	text, ok := m["error"].(string)
	if !ok || text == "" {
		t.Fatalf("%s\n got %s\nwant a sentence in error", a.call, a)
	}
	detail, _ := m["detail"].(string)
	return text + " " + detail
}

// mentions fails the test unless every word stands in text.
func mentions(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("error %q does not name %q", text, w)
		}
	}
}

func mediaType(h http.Header) string {
	m, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return h.Get("Content-Type")
	}
	return m
}

// decode reads exactly one JSON object with its numbers kept as they are written.
func decode(t *testing.T, b []byte) obj {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var m obj
	if err := d.Decode(&m); err != nil {
		t.Fatalf("answer %q is not a JSON object: %v", cut(b), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("answer %q goes on after its JSON object", cut(b))
	}
	return m
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("marshal %v: %v", v, err)
	}
	return b
}

// str, num and items read a member of a JSON object, failing the test when it has another type.
func (o obj) str(t *testing.T, key string) string {
	t.Helper()
	s, ok := o[key].(string)
	if !ok {
		t.Fatalf("member %q of %v is not a string", key, o)
	}
	return s
}

func (o obj) num(t *testing.T, key string) int64 {
	t.Helper()
	n, ok := o[key].(json.Number)
	if !ok {
		t.Fatalf("member %q of %v is not a number", key, o)
	}
	v, err := n.Int64()
	if err != nil {
		t.Fatalf("member %q of %v is not an integer: %v", key, o, err)
	}
	return v
}

func (o obj) items(t *testing.T, key string) []any {
	t.Helper()
	l, ok := o[key].([]any)
	if !ok {
		t.Fatalf("member %q of %v is not a list", key, o)
	}
	return l
}

func (o obj) object(t *testing.T, key string) obj {
	t.Helper()
	return asObject(t, o[key])
}

func asObject(t *testing.T, v any) obj {
	t.Helper()
	m, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("%v is not a JSON object", v)
	}
	return m
}

// strings reads a list of strings.
func (o obj) strings(t *testing.T, key string) []string {
	t.Helper()
	out := []string{}
	for _, v := range o.items(t, key) {
		s, ok := v.(string)
		if !ok {
			t.Fatalf("%v in member %q is not a string", v, key)
		}
		out = append(out, s)
	}
	return out
}

// token is a short random word, unique enough for names on a shared server.
func token() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
