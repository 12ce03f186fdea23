package worker

import (
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// rowStream is the rows of a caller on their way to a worker. What reads it is never held up by a caller who sends nothing: it ends with the
// connection to the worker, which http.Transport waits for.
type rowStream struct {
	*io.PipeReader
	ended  atomic.Bool // the caller's stream was read to its end
	broken atomic.Bool // it broke off before
	done   chan struct{}
}

// rowBuffer is how much is read from a caller at a time.
const rowBuffer = 1 << 20

// Why a stream of rows is read no further.
var (
	errAnswered = errors.New("the worker's answer is there")
	errGone     = errors.New("the connection to the worker is closed")
)

// newRowStream begins to read a caller's stream; cut ends that.
func newRowStream(from io.Reader) *rowStream {
	out, in := io.Pipe()
	s := &rowStream{PipeReader: out, done: make(chan struct{})}
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{in}, struct{ io.Reader }{from}, make([]byte, rowBuffer))
		switch {
		case err == nil:
			s.ended.Store(true)
		case !errors.Is(err, errAnswered) && !errors.Is(err, errGone):
			s.broken.Store(true)
		}
		_ = in.CloseWithError(err) // nil is the end of the stream
	}()
	return s
}

// WriteTo implements io.WriterTo: without it http.Transport would pass on 32 KiB at a time, each a chunk that the worker has to take apart.
func (s *rowStream) WriteTo(w io.Writer) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w}, s.PipeReader, make([]byte, rowBuffer))
}

// cut keeps the stream from being read on: at most one more piece is taken from the caller.
func (s *rowStream) cut() {
	close(s.done)
	_ = s.CloseWithError(errAnswered)
}

// travelOn lets the stream end with the connection that it was put on.
func (s *rowStream) travelOn(info httptrace.GotConnInfo) {
	c, ok := info.Conn.(*watchedConn)
	if !ok {
		return
	}
	go func() {
		select {
		case <-c.closed:
			_ = s.CloseWithError(errGone)
		case <-s.done:
		}
	}()
}

// watchedConn is a connection that tells when it was closed.
type watchedConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

// Close implements net.Conn.
func (c *watchedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
