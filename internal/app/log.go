package app

import (
	"io"
	"log/slog"

	"github.com/lancerest/lancerest/internal/telemetry"
)

// LogTo returns a logger that writes lines of key=value to w and never keeps a request waiting for whoever reads them, and the function
// that writes out what is left at the end.
func LogTo(w io.Writer, level slog.Level) (*slog.Logger, func() error) {
	lines := telemetry.NewLogWriter(w)
	return slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: level})), lines.Close
}
