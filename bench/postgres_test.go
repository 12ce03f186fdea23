//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
)

// The whole program on two small catalogs in PostgreSQL: every operation is answered with success, pgbench runs what the server does, and none of
// the figures is missing.
func TestSmallRunOnPostgres(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "bench")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	cluster := pgtest.Start(t, pgtest.Options{})
	run := exec.CommandContext(t.Context(), binary, "-postgres", "-duration=100ms", "-rounds=1", "-clients=2", "-tables=120", "-large=240", "-dir", t.TempDir())
	run.Env = append(os.Environ(), "LANCEREST_STATE="+cluster.URL(), "PATH="+os.Getenv("PATH")+":"+cluster.Programs())
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, op := range stateOperations(operations()) {
		figures := regexp.MustCompile(`(?m)^` + op.name + ` +with (120|240) tables +[0-9][0-9,.]*/s `)
		if n := len(figures.FindAll(out, -1)); n != 2 {
			t.Errorf("%s has figures of %d servers, want 2:\n%s", op.name, n, out)
		}
	}
	if n := len(regexp.MustCompile(`(?m)^create +pgbench +[0-9][0-9,.]*/s `).FindAll(out, -1)); n != 2 {
		t.Errorf("there are figures of pgbench on %d databases, want 2:\n%s", n, out)
	}
	if n := cluster.Count(t, `SELECT count(*) FROM pg_database WHERE datname IN ('bench120', 'bench240')`); n != 2 {
		t.Errorf("there are %d databases, want 2", n)
	}
}

// What pgbench runs are the statements that were logged, with values of pgbench's for their parameters.
func TestScriptOf(t *testing.T) {
	t.Parallel()
	logged, err := statementsOf("CreateTableVersion", `
time=x level=WARN msg="slow statement" operation=DeclareTable took=1ms times=1 sql=COMMIT
time=x level=WARN msg="slow statement" operation=CreateTableVersion took=1ms times=2 sql="BEGIN VIEW; SELECT o.id, CAST($1 AS TEXT) FROM objects o WHERE p.path = $1 AND o.name = $2; SELECT a FROM versions WHERE table_id = $1 AND version = $2"
time=x level=WARN msg="slow statement" operation=CreateTableVersion took=1ms times=1 sql="BEGIN UPDATE; SELECT version FROM versions WHERE table_id = $1 ORDER BY version DESC LIMIT 1"
time=x level=WARN msg="slow statement" operation=CreateTableVersion took=1ms times=1 sql="INSERT INTO versions (table_id, digest, new) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING; UPDATE transactions SET state = $2, entries = COALESCE($3, entries) WHERE id = $1"
time=x level=WARN msg="slow statement" operation=CreateTableVersion took=1ms times=1 sql=COMMIT
`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := scriptOf(logged)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(`
\set txn random(1000000000000000000, 9000000000000000000)
BEGIN VIEW;
SELECT o.id, CAST('w' AS TEXT) FROM objects o WHERE p.path = 'w' AND o.name = :client_id \gset
SELECT a FROM versions WHERE table_id = :id AND version = :next;
ROLLBACK;
BEGIN UPDATE;
SELECT version FROM versions WHERE table_id = :id ORDER BY version DESC LIMIT 1 \gset head_
\set next :head_version + 1
INSERT INTO versions (table_id, digest, new) VALUES (:id, :digest, '0') ON CONFLICT DO NOTHING;
UPDATE transactions SET state = 1, entries = COALESCE(NULL, entries) WHERE id = :txn;
COMMIT;
\set next :next + 1
`, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("script (-want +got):\n%s", diff)
	}
	if n := statementCount(logged); n != 8 {
		t.Errorf("%d statements, want 8", n)
	}
	if _, err := scriptOf([]string{"SELECT 1 WHERE $1 IS NULL"}); err == nil {
		t.Error("a parameter without a column was given a value")
	}
}
