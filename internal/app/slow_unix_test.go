//go:build unix

package app_test

import (
	"bytes"
	"fmt"
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

// TestRoundTripsOfACommit: a commit of ten tables asks the database as often as one of a single table, and all in a few round trips: one to look,
// three to reserve, two to resolve, COMMIT included.
func TestRoundTripsOfACommit(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{})
	var log sharedBuffer
	s := serve(t, app.Config{
		State: cluster.URL(), Root: filepath.Join(t.TempDir(), "tables"), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		StatePool: app.StatePool{SlowStatement: time.Nanosecond},
	})
	const tables = 10
	batch := &api.BatchCreateTableVersionsRequest{}
	for i := range tables {
		name := fmt.Sprint("t", i)
		if _, err := s.DeclareTable(t.Context(), &api.DeclareTableRequest{Target: api.At(name)}); err != nil {
			t.Fatal(err)
		}
		s.commit(t, name, 1)
		batch.Entries = append(batch.Entries, api.CreateTableVersionEntry{ID: []string{name}, StagedVersion: s.stage(t, name, 2)})
	}
	if _, err := s.BatchCreateTableVersions(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	trips := func(operation string) (times []string) {
		for _, m := range regexp.MustCompile(`operation=`+operation+` took=\S+ times=(\d+) `).FindAllStringSubmatch(log.String(), -1) {
			times = append(times, m[1])
		}
		return times
	}
	single := trips("CreateTableVersion")
	if diff := cmp.Diff([]string{"2", "5", "2", "1", "3", "1"}, single[len(single)-6:]); diff != "" || len(single) != 6*tables {
		t.Errorf("round trips of %d single commits: %d; statements in those of the last (-want +got):\n%s", tables, len(single), diff)
	}
	if diff := cmp.Diff([]string{"20", "50", "11", "1", "21", "1"}, trips("BatchCreateTableVersions")); diff != "" {
		t.Errorf("statements in the round trips of a batch of %d (-want +got):\n%s", tables, diff)
	}
}
