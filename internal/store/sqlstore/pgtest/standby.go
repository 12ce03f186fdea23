//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby starts a standby of the cluster, for which every commit waits from then on. It is stopped and removed when t ends.
func (c *Cluster) Standby(t testing.TB) *Cluster {
	t.Helper()
	s := &Cluster{bin: c.bin, options: c.options}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stop the standby: %v", err)
		}
	})
	if err := s.follow(t.Context(), c); err != nil {
		t.Fatalf("start a standby: %v", err)
	}
	return s
}

// follow copies a primary, serves the copy and makes the primary wait for it.
func (c *Cluster) follow(ctx context.Context, primary *Cluster) error {
	var err error
	if c.dir, err = os.MkdirTemp("", "lancerest-pg-"); err != nil {
		return err
	}
	if err := c.disown(); err != nil {
		return err
	}
	out, err := c.command("pg_basebackup", "-d", primary.URL(), "-D", c.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync").CombinedOutput()
	if err != nil {
		return fmt.Errorf("pg_basebackup: %w\n%s", err, out)
	}
	if err := c.serve(ctx); err != nil {
		return err
	}
	for _, sql := range []string{`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`} {
		if err := execute(ctx, primary.URL(), sql); err != nil {
			return err
		}
	}
	return primary.awaitSynchronous(ctx)
}

// awaitSynchronous returns once commits wait for a standby.
func (c *Cluster) awaitSynchronous(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.URL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for {
		var found bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')`).Scan(&found)
		if err != nil || found {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Crash ends all processes of the server with SIGKILL, as if its machine were gone. It is not started again.
func (c *Cluster) Crash(t testing.TB) {
	t.Helper()
	// Stopped first, so that it starts no process that is not killed.
	err := c.process.Signal(syscall.SIGSTOP)
	pids := children(c.process.Pid)
	err = errors.Join(err, c.process.Kill())
	for _, pid := range pids {
		if e := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(e, syscall.ESRCH) {
			err = errors.Join(err, e)
		}
	}
	<-c.exited
	c.process = nil
	if err != nil {
		t.Fatalf("crash PostgreSQL: %v", err)
	}
}

// Promote makes a primary of a standby.
func (c *Cluster) Promote(t testing.TB) {
	t.Helper()
	if out, err := c.command("pg_ctl", "promote", "-D", c.data(), "-w").CombinedOutput(); err != nil {
		t.Fatalf("promote the standby: %v\n%s", err, out)
	}
}

// SchemaOnAny is the address of a schema, which must exist, on whichever of some clusters takes writes.
func SchemaOnAny(name string, clusters ...*Cluster) string {
	addrs := make([]string, len(clusters))
	for i, c := range clusters {
		addrs[i] = c.Addr()
	}
	return "postgres://" + superuser + "@" + strings.Join(addrs, ",") + "/postgres?" + url.Values{"search_path": {name}}.Encode()
}
