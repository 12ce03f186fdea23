package app_test

import (
	"strings"
	"testing"

	"github.com/lancerest/lancerest/internal/app"
)

// TestStateThatIsNone: what is given for a state may hold a password wherever it is misspelt, so that a refusal does not repeat it.
func TestStateThatIsNone(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		"host=127.0.0.1 port=1 password=hush user=u": "begins with postgres://",
		"hush://u:hush@host/db":                      "begins with postgres://",
		"postgres://u:wh@hush@127.0.0.1:1/db":        "write %40",
		"postgres://u:wh@hush/x@127.0.0.1:1/db":      "write %40",
		"postgres://u/hush@127.0.0.1:1/db":           "write %40 and %2F",
		"postgres://u:%hush@127.0.0.1:1/db":          "failed to parse as URL",
		"postgres://u:hush@127.0.0.1:x/db":           "invalid port",
		"postgres://h/db?password=hush&sslmode=x":    "sslmode is invalid",
	} {
		_, err := app.New(t.Context(), app.Config{Data: t.TempDir(), Listen: "127.0.0.1:0", State: state})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want a refusal that says %q and does not repeat it", state, err, want)
		}
	}
}
