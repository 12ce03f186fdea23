package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"github.com/lancerest/lancerest/api"
)

// net/http answers what it cannot read as a request (a head that is too large or malformed) by itself, in plain text, and past every
// handler. Clients take an answer that is not the specification's for an internal error (client contract, fact 24). The listener
// therefore rewrites these answers, which net/http writes in one piece with a head of its own that no other answer has.

// jsonListener accepts connections whose plain-text answers become JSON.
type jsonListener struct{ net.Listener }

// Accept implements net.Listener.
func (l jsonListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &jsonConn{Conn: c}, nil
}

type jsonConn struct{ net.Conn }

// plainHead follows the status line of net/http's own answers.
const plainHead = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// Write implements net.Conn.
func (c *jsonConn) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(p, []byte("HTTP/1.1 4")) && !bytes.HasPrefix(p, []byte("HTTP/1.1 5")) {
		return c.Conn.Write(p)
	}
	status, text, plain := strings.Cut(string(p), plainHead)
	if !plain {
		return c.Conn.Write(p)
	}
	body, err := json.Marshal(api.Errorf(api.CodeInvalidInput, "the request cannot be read: %s", text))
	if err != nil {
		return c.Conn.Write(p)
	}
	if _, err := fmt.Fprintf(c.Conn, "%s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, api.JSONType, len(body), body); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite lets net/http end its side of a connection before the client has ended its own, so that the client can read the answer
// before the connection is gone.
func (c *jsonConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
