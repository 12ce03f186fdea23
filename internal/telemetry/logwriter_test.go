package telemetry_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/internal/telemetry"
)

// stuck is a reader's end that nobody empties, until it is let go.
type stuck struct {
	bytes.Buffer
	free chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.free
	return s.Buffer.Write(p)
}

func TestLogWriterPassesLinesOn(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := telemetry.NewLogWriter(&out)
	for i := range 3 {
		fmt.Fprintf(l, "line %d\n", i)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if got, want := out.String(), "line 0\nline 1\nline 2\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLogWriterWaitsForNobody(t *testing.T) {
	t.Parallel()
	out := &stuck{free: make(chan struct{})}
	l := telemetry.NewLogWriter(out)
	const lines = 20_000
	for i := range lines {
		fmt.Fprintf(l, "line %d\n", i) // would never return if it waited
	}
	close(out.free)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	got := out.String()
	if !strings.HasPrefix(got, "line 0\n") || !strings.Contains(got, "were dropped") || strings.Count(got, "\n") >= lines {
		t.Errorf("%d lines passed on, want some, and word of the dropped ones", strings.Count(got, "\n"))
	}
}
