package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/app"
)

// What net/http refuses by itself is answered in the specification's shape too (case C1).
func TestUnreadableRequestsAreAnsweredInJSON(t *testing.T) {
	t.Parallel()
	s := serve(t, app.Config{Data: filepath.Join(t.TempDir(), "data")})
	for name, tc := range map[string]struct {
		request string
		status  int
	}{
		"malformed path":      {"GET /v1/table/%zz/describe HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"large head":          {"GET /v1/table HTTP/1.1\r\nHost: x\r\nX-Big: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", 431},
		"no host":             {"GET /v1/table HTTP/1.1\r\n\r\n", 400},
		"no HTTP":             {"hello\r\n\r\n", 400},
		"two lengths":         {"POST /v1/table/t/describe HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
		"unknown encoding":    {"POST /v1/table/t/describe HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: rot13\r\n\r\n{}", 501},
		"options of the host": {"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// The server may close its side before all of it is sent.
			_, _ = fmt.Fprint(conn, tc.request)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			var e api.Error
			if err := json.Unmarshal(body, &e); err != nil || e.Code != api.CodeInvalidInput || e.Message == "" {
				t.Errorf("body %q (%v), want an error of code 13", body, err)
			}
			if resp.StatusCode != tc.status || resp.Header.Get("Content-Type") != api.JSONType {
				t.Errorf("status %d of type %q, want %d of %s", resp.StatusCode, resp.Header.Get("Content-Type"), tc.status, api.JSONType)
			}
		})
	}
}
