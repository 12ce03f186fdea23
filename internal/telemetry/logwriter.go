package telemetry

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// LogWriter passes lines on to another writer without ever keeping a request waiting: whoever reads the log may be slow, or may not
// read at all, as the other end of a pipe that nobody empties. Lines that find the queue full are dropped and counted; the
// number is told once there is room again. Create it with NewLogWriter and Close it at the end.
type LogWriter struct {
	lines   chan []byte
	done    chan struct{}
	dropped atomic.Int64

	mu     sync.RWMutex // held for reading while a line is queued
	closed bool
}

// logQueue is how many lines may wait.
const logQueue = 8192

// closeWait bounds how long Close waits for a reader that does not read.
const closeWait = time.Second

// NewLogWriter returns a writer that passes lines on to w.
func NewLogWriter(w io.Writer) *LogWriter {
	l := &LogWriter{lines: make(chan []byte, logQueue), done: make(chan struct{})}
	go l.pass(w)
	return l
}

// Write queues one line. It never fails and never waits; after Close the line is lost.
func (l *LogWriter) Write(line []byte) (int, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return len(line), nil
	}
	select {
	case l.lines <- append([]byte(nil), line...):
	default:
		l.dropped.Add(1)
	}
	return len(line), nil
}

func (l *LogWriter) pass(w io.Writer) {
	defer close(l.done)
	for line := range l.lines {
		// There is nobody to tell that the log cannot be written.
		_, _ = w.Write(line)
		if n := l.dropped.Swap(0); n > 0 {
			_, _ = fmt.Fprintf(w, "level=WARN msg=\"log lines were dropped: they were not read fast enough\" lines=%d\n", n)
		}
	}
}

// Close passes on what is queued, as far as that goes within a second. It may be called twice.
func (l *LogWriter) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.lines)
	}
	l.mu.Unlock()
	select {
	case <-l.done:
	case <-time.After(closeWait):
	}
	return nil
}
