package worker_test

import (
	"context"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/internal/engine/worker"
)

// hung is a worker that says that a request goes on although its caller has hung up long ago.
const hung = `
import http.server, socketserver, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def address_string(self): return ""
    def log_message(self, *args): pass
    def do_GET(self):
        text = b'{"memory": 1, "requests": [{"operation": "QueryTable", "abandoned": 99.0}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
server = socketserver.ThreadingUnixStreamServer(sys.argv[2], Handler)
print("ready", flush=True)
server.serve_forever()
`

// silent is a worker that accepts connections and never answers.
const silent = `
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[2])
s.listen()
print("ready", flush=True)
time.sleep(1000)
`

// TestHung: a worker that goes on for a caller who is gone is replaced, since nothing can stop the library.
func TestHung(t *testing.T) {
	t.Parallel()
	l := newLake(t, func(o *worker.Options) { o.Prepare = run(worker.Command{Path: python(t), Args: []string{"-c", hung}}) })
	l.wake(t)
	eventually(t, "a replacement", func() bool {
		return strings.Contains(l.log.String(), "QueryTable goes on 99 s after its caller hung up")
	})
}

// TestSilent: the engine of a worker that says nothing can be closed nevertheless.
func TestSilent(t *testing.T) {
	t.Parallel()
	prepared := make(chan struct{})
	l := newLake(t, func(o *worker.Options) {
		o.Prepare = func(context.Context, func(string)) (worker.Command, error) {
			close(prepared)
			return worker.Command{Path: python(t), Args: []string{"-c", silent}}, nil
		}
	})
	l.wake(t)
	<-prepared
	l.Close()
}
