//go:build unix

package pgtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// Pgbench runs a script of pgbench's for 5 seconds with that many clients, prepared statements and transactions that run again where they lose
// against others, and returns how many a second succeeded.
func (c *Cluster) Pgbench(t testing.TB, clients int, script string) float64 {
	t.Helper()
	path := filepath.Join(c.dir, "script.sql")
	if err := os.WriteFile(path, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	n := strconv.Itoa(clients)
	out, err := c.command("pgbench", "-n", "-M", "prepared", "-T", "5", "-c", n, "-j", "2", "--max-tries", "1000", "-f", path, c.URL()).CombinedOutput()
	if err != nil {
		t.Fatalf("pgbench: %v\n%s", err, out)
	}
	found := regexp.MustCompile(`tps = ([0-9.]+)`).FindSubmatch(out)
	if found == nil {
		t.Fatalf("pgbench did not say how fast it was:\n%s", out)
	}
	rate, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return rate
}
