//go:build unix

package app_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
)

// sharedBuffer is a log that a test reads while a server writes to it.
type sharedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *sharedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *sharedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestSlowStatementsNameTheirOperation: each statement that is logged as slow says for which operation, or which job, it was.
func TestSlowStatementsNameTheirOperation(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{})
	var log sharedBuffer
	s := serve(t, app.Config{
		State: cluster.URL(), Root: filepath.Join(t.TempDir(), "tables"), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		StatePool: app.StatePool{SlowStatement: time.Nanosecond},
	})
	if _, err := s.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At("a")}); err != nil {
		t.Fatal(err)
	}
	s.commit(t, "a", 1)
	if _, err := s.DropTable(t.Context(), &api.DropTableRequest{Target: api.At("a")}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/readyz", "/metrics"} {
		if status, body := get(t, s.url+path); status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, body)
		}
	}
	want := map[string]string{
		"DeclareTable": "INSERT INTO objects", "CreateTableVersion": "INSERT INTO versions", "DropTable": "COMMIT", "job purge_table": "DELETE FROM jobs",
		"jobs": "FROM jobs", "recover": "FROM transactions", "readyz": "FROM schema_migrations", "backlog": "FROM transactions",
	}
	line := regexp.MustCompile(`msg="slow statement" operation=("[^"]*"|\S*) took=\S+ times=\d+ sql=(.*)`)
	var missing []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { // the job runs when it likes
		missing = nil
		found := line.FindAllStringSubmatch(log.String(), -1)
		for operation, sql := range want {
			if !slices.ContainsFunc(found, func(m []string) bool {
				return regexp.MustCompile(`^"?`+operation+`"?$`).MatchString(m[1]) && regexp.MustCompile(sql).MatchString(m[2])
			}) {
				missing = append(missing, operation+": "+sql)
			}
		}
		if len(missing) == 0 {
			break
		}
	}
	if diff := cmp.Diff([]string(nil), missing); diff != "" {
		t.Errorf("no slow statement of these is logged with its operation (-want +got):\n%s\n%s", diff, log.String())
	}
}
