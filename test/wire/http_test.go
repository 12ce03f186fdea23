package wire_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// bodyLimit is the largest JSON body that a server must take: 32 MiB.
const bodyLimit = 32 << 20

// TestUnknownRoutes: 404 as a JSON error whose code is not one that a client takes for a missing table or namespace.
func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"/", "/v1", "/v1/", "/v2/table", "/v1/tables", "/v1/table/a/nonsense", "/v1/table/a/version", "/v1/table/a/version/nonsense",
		"/v1/namespace/a/table", "/v1/namespace/a/b/list", "/v1/table/version/batch-nonsense", "/metrics/../v1", "/favicon.ico", "/v1/table/a%2Fb"} {
		t.Run(p, func(t *testing.T) {
			t.Parallel()
			for _, m := range []string{get, post} {
				a := suite.do(t, call{method: m, path: p})
				if a.status != http.StatusNotFound {
					t.Fatalf("%s\n got %s\nwant 404", a.call, a)
				}
				a.words(t)
				switch a.code() {
				case namespaceNotFound, tableNotFound, 6, tagNotFound, transactionNotFound, versionNotFound, 12, branchNotFound:
					t.Errorf("%s\n got %s: a client takes code %d for a missing object", a.call, a, a.code())
				}
			}
		})
	}
}

// TestRoutesThatLookAlike: a table may be called "version" or "batch-commit"; the two batch routes are never taken for one.
func TestRoutesThatLookAlike(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"version", "batch-commit", "batch-create"} {
		a := suite.do(t, call{op: "TableExists", method: post, path: "/v1/table/" + name + "/exists", query: defaultDelimiterQuery})
		if a.code() != tableNotFound && a.code() != success {
			t.Errorf("%s\n got %s\nwant the table or code 4", a.call, a)
		}
	}
	// A table named "version" in the root: its own version operations.
	a := suite.do(t, call{op: "DescribeTableVersion", method: post, path: "/v1/table/version/version/describe"})
	if a.code() != tableNotFound && a.code() != versionNotFound {
		t.Errorf("%s\n got %s\nwant code 4 or 11", a.call, a)
	}
	suite.send(t, "BatchCreateTableVersions", nil, obj{"entries": list{}}, path("/v1/table/version/batch-create")).fails(t, invalidInput)
}

// TestOperationalEndpoints: live, ready, and the description of the API.
func TestOperationalEndpoints(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"/healthz", "/readyz"} {
		a := suite.do(t, call{method: get, path: p})
		if a.status != http.StatusOK || mediaType(a.header) != "application/json" {
			t.Errorf("%s\n got %s as %q\nwant 200 as JSON", a.call, a, mediaType(a.header))
		}
		if wrong := suite.do(t, call{method: post, path: p}); wrong.status != http.StatusMethodNotAllowed {
			t.Errorf("%s\n got %s\nwant 405", wrong.call, wrong)
		}
	}
}

// bigBody is a valid JSON body of exactly size bytes.
func bigBody(size int) []byte {
	head, tail := `{"properties":{},"padding":"`, `"}`
	return []byte(head + strings.Repeat("x", size-len(head)-len(tail)) + tail)
}

// TestBodyLimit: a JSON body of 32 MiB is taken, one byte more is 413 with code 13.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	suite.send(t, "NamespaceExists", ns, nil, rawBody(string(bigBody(bodyLimit)))).empty(t)
	check := func(t *testing.T, a answer) {
		t.Helper()
		if a.status != http.StatusRequestEntityTooLarge || a.code() != invalidInput {
			t.Fatalf("%s\n got %s\nwant 413 with code 13", a.call, a)
		}
		a.words(t)
	}
	check(t, suite.send(t, "NamespaceExists", ns, nil, rawBody(string(bigBody(bodyLimit+1)))))
	t.Run("gzip bomb", func(t *testing.T) {
		check(t, suite.send(t, "NamespaceExists", ns, nil, rawBody(string(compress(t, bigBody(bodyLimit+1)))), header("Content-Encoding", "gzip")))
	})
}

func compress(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestRequestEncodings: gzip is read, anything else is named and refused.
func TestRequestEncodings(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	body := marshal(t, obj{"id": child(ns, "zipped"), "properties": obj{"a": "b"}})
	got := suite.send(t, "DeclareTable", child(ns, "zipped"), nil, rawBody(string(compress(t, body))), header("Content-Encoding", "gzip")).ok(t)
	if p := got.object(t, "properties"); p["a"] != "b" {
		t.Errorf("properties = %v, want what the compressed body said", p)
	}
	suite.send(t, "NamespaceExists", ns, nil, header("Content-Encoding", "identity")).empty(t)
	suite.send(t, "NamespaceExists", ns, nil, rawBody("not gzip"), header("Content-Encoding", "gzip")).fails(t, invalidInput)
	for _, encoding := range []string{"br", "zstd", "gzip, br"} {
		a := suite.send(t, "NamespaceExists", ns, nil, header("Content-Encoding", encoding))
		if a.status != http.StatusUnsupportedMediaType {
			t.Fatalf("%s\n got %s\nwant 415", a.call, a)
		}
		mentions(t, a.words(t), encoding)
	}
}

// TestOtherContentTypes: a JSON operation looks at the body and not at its label, for clients label it badly; but what is
// plainly something else is refused as JSON.
func TestOtherContentTypes(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	for _, label := range []string{"application/json", "APPLICATION/JSON", "application/json;charset=UTF-8"} {
		suite.send(t, "NamespaceExists", ns, nil, header("Content-Type", label)).empty(t)
	}
	for _, label := range []string{"text/plain", "application/xml", "nonsense"} {
		a := suite.send(t, "NamespaceExists", ns, nil, header("Content-Type", label))
		if a.status == http.StatusOK {
			continue // taken for what it is
		}
		if a.status != http.StatusBadRequest && a.status != http.StatusUnsupportedMediaType {
			t.Errorf("%s (%s)\n got %s\nwant 200, 400 or 415", a.call, label, a)
		}
		a.words(t)
	}
}

// TestQueryParameters: a value that does not parse is refused by name; unknown parameters are ignored.
func TestQueryParameters(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	ns := tb.id[:1]
	for op, id := range map[string][]string{"ListTables": ns, "ListAllTables": nil} {
		mentions(t, suite.send(t, op, id, nil, andQuery("include_declared=maybe")).fails(t, invalidInput), "include_declared")
	}
	for _, name := range []string{"check_declared", "with_table_uri", "load_detailed_metadata"} {
		mentions(t, suite.send(t, "DescribeTable", tb.id, nil, andQuery(name+"=1e3")).fails(t, invalidInput), name)
	}
	mentions(t, suite.send(t, "ListTableVersions", tb.id, nil, andQuery("descending=down")).fails(t, invalidInput), "descending")
	suite.send(t, "ListTables", ns, nil, andQuery("no_such_parameter=1")).ok(t)
	for _, malformed := range []string{"limit=%zz", "limit=1;x=2", "%=1"} {
		suite.send(t, "ListTables", ns, nil, andQuery(malformed)).fails(t, invalidInput)
	}
}

// rawExchange writes a request byte by byte as given and reads one answer.
func rawExchange(t *testing.T, request string) (*http.Response, []byte) {
	t.Helper()
	u, err := url.Parse(suite.base)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialTimeout("tcp", u.Host, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, strings.ReplaceAll(request, "HOST", u.Host)); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer to %q: %v", request, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

// TestBareRequests: a POST with neither Content-Type nor Content-Length, as the namespace client sends (fact 6); one with
// Expect: 100-continue; a path that is no valid encoding.
func TestBareRequests(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	segment := tb.id[0] + "%24t"
	t.Run("neither type nor length", func(t *testing.T) {
		t.Parallel()
		res, body := rawExchange(t, "POST /v1/table/"+segment+"/version/list?delimiter=%24&limit=1&descending=true HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n")
		if res.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`"versions":[]`)) {
			t.Errorf("got %d %s, want 200 and no versions", res.StatusCode, body)
		}
	})
	t.Run("expect 100-continue", func(t *testing.T) {
		t.Parallel()
		request := "POST /v1/table/%s/exists HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}"
		res, body := rawExchange(t, fmt.Sprintf(request, segment))
		if res.StatusCode != http.StatusContinue && res.StatusCode != http.StatusOK {
			t.Errorf("got %d %s, want 100 or 200", res.StatusCode, body)
		}
	})
	t.Run("doubled slash on the wire", func(t *testing.T) {
		t.Parallel()
		res, body := rawExchange(t, "POST //v1//table/"+segment+"/exists HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		if res.StatusCode/100 == 3 {
			t.Errorf("got %d %s, want no redirect", res.StatusCode, body)
		}
	})
}

// TestAnswerHeaders: JSON answers are marked as such, and nothing is answered with 204.
func TestAnswerHeaders(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	suite.send(t, "TableExists", tb.id, nil).empty(t)
	suite.send(t, "NamespaceExists", tb.id[:1], nil).empty(t)
	suite.send(t, "DropTable", tb.id, nil).ok(t)
	suite.send(t, "DropNamespace", tb.id[:1], nil).ok(t)
}
