//go:build unix

package sqlstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
)

// cutter forwards connections to a server and cuts them where it is told.
type cutter struct {
	listener net.Listener
	server   string
	// rule is asked about everything that a client sends.
	rule atomic.Pointer[cut]
	// cuts counts the connections that were cut.
	cuts atomic.Int64
	wg   sync.WaitGroup
}

// cut says where to cut: at what a client sends that contains the word, before it reaches the server or before the answer does.
type cut struct {
	word  string
	after bool
}

func newCutter(t *testing.T, server string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: l, server: server}
	c.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.wg.Go(func() { c.forward(conn) })
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		c.wg.Wait()
	})
	return c
}

func (c *cutter) forward(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		return
	}
	defer server.Close()
	silent := atomic.Bool{}
	var back sync.WaitGroup
	defer back.Wait()
	defer server.Close() // first, so that the other direction ends
	back.Go(func() {
		defer client.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil || silent.Load() {
				return // an answer that comes after the cut shows that the server has done what it was asked for
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		rule := c.rule.Load()
		hit := rule != nil && bytes.Contains(buffer[:n], []byte(rule.word))
		if hit {
			c.cuts.Add(1)
			if !rule.after {
				return
			}
			silent.Store(true)
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
		if hit {
			back.Wait()
			return
		}
	}
}

// through opens a catalog behind a cutter.
func through(t *testing.T, cluster *pgtest.Cluster, c *cutter) *sqlstore.Postgres {
	t.Helper()
	url := strings.Replace(schema(t, cluster, t.Name()), cluster.Addr(), c.listener.Addr().String(), 1)
	return openPostgres(t, sqlstore.PostgresOptions{URL: url})
}

// A connection that breaks before COMMIT has written nothing, so that the Update runs again on another one; where that breaks too, and
// again, the caller is told that nothing was written.
func lostBeforeCommit(t *testing.T, cluster *pgtest.Cluster) {
	c := newCutter(t, cluster.Addr())
	s := through(t, cluster, c)
	runs := 0
	err := s.Update(t.Context(), func(tx store.Tx) error {
		if runs++; runs == 1 {
			c.rule.Store(&cut{word: "late"})
			defer c.rule.Store(nil)
		}
		return errors.Join(tx.InsertMeta("early", "x"), tx.InsertMeta("late", "x"))
	})
	if err != nil || runs < 2 {
		t.Errorf("cut once: got error %v after %d runs, want nil after several", err, runs)
	}
	c.rule.Store(&cut{word: "always"})
	err = s.Update(t.Context(), func(tx store.Tx) error {
		return errors.Join(tx.InsertMeta("first", "x"), tx.InsertMeta("always", "x"))
	})
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) {
		t.Errorf("cut always: got error %v, want ErrUnavailable", err)
	}
	c.rule.Store(nil)
	if !kept(t, s, "late") || kept(t, s, "first") || kept(t, s, "always") {
		t.Error("want the first Update whole and nothing of the second")
	}
}

// A connection that breaks after COMMIT was sent leaves the outcome unknown, whether the database got it or not.
func lostInCommit(t *testing.T, cluster *pgtest.Cluster) {
	c := newCutter(t, cluster.Addr())
	s := through(t, cluster, c)
	for _, after := range []bool{false, true} {
		key := fmt.Sprintf("after=%t", after)
		c.rule.Store(&cut{word: "COMMIT", after: after})
		before := c.cuts.Load()
		if err := put(t.Context(), s, key); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("%s: got error %v, want ErrUnknown", key, err)
		}
		c.rule.Store(nil)
		if cuts := c.cuts.Load() - before; cuts != 1 {
			t.Errorf("%s: %d connections were cut, want 1: an unknown outcome is not tried again", key, cuts)
		}
		if got := kept(t, s, key); got != after {
			t.Errorf("%s: the database has it: %t, want %t", key, got, after)
		}
		err := put(t.Context(), s, key)
		if after && !errors.Is(err, store.ErrExists) || !after && err != nil {
			t.Errorf("%s: the same again: got error %v", key, err)
		}
	}
}

// A backend that is terminated while it commits says so; nobody can tell from that what became of the commit.
func killedInCommit(t *testing.T, cluster *pgtest.Cluster) {
	s := openPostgres(t, sqlstore.PostgresOptions{URL: schema(t, cluster, t.Name())})
	name := schemaName(t.Name())
	cluster.Exec(t, fmt.Sprintf(`
CREATE FUNCTION %[1]q.die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER die AFTER INSERT ON %[1]q.meta DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.key = 'fatal') EXECUTE FUNCTION %[1]q.die()`, name))
	if err := put(t.Context(), s, "fatal"); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("got error %v, want ErrUnknown", err)
	}
	if kept(t, s, "fatal") {
		t.Error("the commit took effect, which was cut off before it")
	}
	if err := put(t.Context(), s, "after"); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// TestPostgresRestart kills the database under load: what was acknowledged is there afterwards, and the same store goes on.
func TestPostgresRestart(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{Durable: true})
	s := openPostgres(t, sqlstore.PostgresOptions{URL: cluster.URL()})
	acknowledged := make([][]string, 4)
	started := make(chan struct{}, len(acknowledged))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range acknowledged {
		wg.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("%d-%d", w, i)
				err := put(t.Context(), s, key)
				switch {
				case err == nil:
					acknowledged[w] = append(acknowledged[w], key)
				case !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown):
					t.Errorf("got error %v, want ErrUnavailable or ErrUnknown", err)
				}
				if i == 10 {
					started <- struct{}{}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range acknowledged {
		<-started
	}
	cluster.Kill(t)
	if err := s.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Ping without a database: got error %v, want ErrUnavailable", err)
	}
	cluster.Restart(t)
	close(stop)
	wg.Wait()
	if err := put(t.Context(), s, "after"); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	for _, keys := range acknowledged {
		for _, key := range keys {
			if !kept(t, s, key) {
				t.Errorf("%s was acknowledged and is gone", key)
			}
		}
	}
}

// TestPostgresWaitsForItsStandby holds that a commit which no standby confirms is neither acknowledged nor seen, for it would be lost with
// the primary; that such commits take no more of the database's connections than the server may have, and leave some to readers; and that
// all goes on once there is a standby again.
func TestPostgresWaitsForItsStandby(t *testing.T) {
	t.Parallel()
	const writers, connections = 2, 4
	cluster := pgtest.Start(t, pgtest.Options{})
	o := sqlstore.PostgresOptions{URL: cluster.URL(), StatementTimeout: 200 * time.Millisecond, MaxConns: connections, Writers: writers}
	s, other := openPostgres(t, o), openPostgres(t, o)
	cluster.Exec(t, `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`)
	cluster.Exec(t, `SELECT pg_reload_conf()`)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			if err := put(t.Context(), s, fmt.Sprint("k", i)); !errors.Is(err, store.ErrUnknown) {
				t.Errorf("got error %v, want ErrUnknown", err)
			}
		})
	}
	wg.Go(func() {
		if err := put(t.Context(), other, "other"); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("the other server: got error %v, want ErrUnknown", err)
		}
	})
	wg.Wait()
	for range 10 {
		if err := put(t.Context(), s, "late"); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) {
			t.Fatalf("with every turn in doubt: got error %v, want ErrUnavailable", err)
		}
	}
	for i := range writers {
		if kept(t, s, fmt.Sprint("k", i)) {
			t.Error("a commit is seen that no standby has")
		}
	}
	if n := cluster.Count(t, `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lancerest'`); n > 2*connections {
		t.Errorf("two servers have %d connections, want at most %d", n, 2*connections)
	}
	if err := other.Close(); err != nil { // which must not wait for a standby
		t.Errorf("Close: %v", err)
	}
	cluster.Exec(t, `ALTER SYSTEM RESET synchronous_standby_names`)
	cluster.Exec(t, `SELECT pg_reload_conf()`)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		err := put(t.Context(), s, "late")
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrUnavailable) || time.Now().After(deadline) {
			t.Fatalf("with a standby again: %v", err)
		}
	}
	for _, key := range []string{"k0", "k1", "other", "late"} {
		if !kept(t, s, key) {
			t.Errorf("%s is gone, which was written and confirmed late", key)
		}
	}
}
