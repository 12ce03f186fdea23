//go:build unix

// Package pgtest starts throw-away PostgreSQL clusters for tests, from the binaries that the system's packages install: as a user
// that is not root, on loopback, on a free port. It fails the test, and says what to install, where there are none.
//
// What does not live here: the tests, and anything that a server needs.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// oldest is the first version of PostgreSQL that is supported.
const oldest = 15

// superuser is the role that owns everything in the cluster. Nobody else can reach it, so that it has no password.
const superuser = "lancerest"

// Options says how a cluster runs.
type Options struct {
	// Durable makes it flush to the disk, for measurements and for tests that crash it.
	Durable bool
	// Settings are further parameters of the server.
	Settings map[string]string
}

// Cluster is a running cluster. Its methods are safe for concurrent use.
type Cluster struct {
	dir     string
	bin     string
	port    int
	owner   *syscall.Credential // nil where this process may run the server itself
	options Options
	exited  chan error
	process *os.Process
}

// Start starts a cluster that is stopped and removed when t ends, and dies with this process. It ends t if it cannot.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	c, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("stop PostgreSQL: %v", err)
		}
	})
	return c
}

// Open is Start for what is no test: whoever calls it calls Close.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	c := &Cluster{bin: bin, options: o}
	// Not a test's own directory: its parent is closed to the server's user.
	if c.dir, err = os.MkdirTemp("", "lancerest-pg-"); err != nil {
		return nil, err
	}
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) open(ctx context.Context) error {
	if err := c.disown(); err != nil {
		return err
	}
	if err := c.initialize(); err != nil {
		return fmt.Errorf("make a PostgreSQL cluster: %w", err)
	}
	if err := c.serve(ctx); err != nil {
		log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
		return fmt.Errorf("start PostgreSQL: %w\n%s", err, log)
	}
	return nil
}

// Close stops the server and removes everything.
func (c *Cluster) Close() error { return errors.Join(c.stop(), os.RemoveAll(c.dir)) }

// binaries returns the folder of the newest installed server that is supported.
func binaries() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well formed
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	newest, best := "", 0
	for _, path := range found {
		if v := versionOf(path); v > best {
			newest, best = filepath.Dir(path), v
		}
	}
	if best < oldest {
		return "", fmt.Errorf("these tests need the server of PostgreSQL %d or newer (found: %q): install it, on Debian and Ubuntu with: apt-get install postgresql", oldest, found)
	}
	return newest, nil
}

// versionOf returns the major version of an initdb, 0 if it does not say.
func versionOf(initdb string) int {
	out, err := exec.Command(initdb, "--version").Output()
	if err != nil {
		return 0
	}
	for word := range strings.FieldsSeq(string(out)) {
		major, _, _ := strings.Cut(word, ".")
		if n, err := strconv.Atoi(major); err == nil {
			return n
		}
	}
	return 0
}

// disown gives the folder to the user who is to run the server, which refuses to run as root.
func (c *Cluster) disown() error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return fmt.Errorf("there is no user postgres or nobody to run PostgreSQL, which does not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	c.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return os.Chown(c.dir, int(uid), int(gid))
}

func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner}
	return cmd
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) initialize() error {
	args := []string{"-D", c.data(), "-A", "trust", "-U", superuser, "--no-locale", "-E", "UTF8"}
	if !c.options.Durable {
		args = append(args, "--no-sync")
	}
	if out, err := c.command("initdb", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// settings are the server's parameters. A serializable transaction that touches many rows keeps fine locks only where there is room.
func (c *Cluster) settings() map[string]string {
	s := map[string]string{
		"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "300", "shared_buffers": "128MB",
		"max_pred_locks_per_transaction": "256", "max_wal_size": "1GB", "log_min_messages": "fatal",
	}
	if !c.options.Durable {
		s["fsync"], s["full_page_writes"], s["autovacuum"] = "off", "off", "off"
	}
	for name, value := range c.options.Settings {
		s[name] = value
	}
	return s
}

// serve starts the server and waits until it takes connections. Another process may take the port first: then another one is tried.
func (c *Cluster) serve(ctx context.Context) error {
	var err error
	for range 5 {
		if c.port, err = freePort(); err != nil {
			return err
		}
		if err = c.launch(ctx); err == nil {
			return nil
		}
	}
	return err
}

func (c *Cluster) launch(ctx context.Context) error {
	args := []string{"-D", c.data(), "-p", strconv.Itoa(c.port)}
	for name, value := range c.settings() {
		args = append(args, "-c", name+"="+value)
	}
	log, err := os.Create(filepath.Join(c.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := c.command("postgres", args...)
	cmd.Stdout, cmd.Stderr = log, log
	c.exited = make(chan error, 1)
	if c.process, err = startBound(cmd, c.exited); err != nil {
		return err
	}
	for {
		conn, err := pgx.Connect(ctx, c.URL())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case exit := <-c.exited:
			c.process = nil
			return fmt.Errorf("the server ended: %w: %w", exit, err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// stop ends the server at once.
func (c *Cluster) stop() error {
	if c.process == nil {
		return nil
	}
	// "Immediate": nothing is kept, so nothing has to be written.
	if err := c.process.Signal(syscall.SIGQUIT); err != nil {
		return err
	}
	<-c.exited // it reports how it was ended
	c.process = nil
	return nil
}

// Kill ends the server as the machine's loss of power would, without a word to anybody. Restart brings it back.
func (c *Cluster) Kill(t testing.TB) {
	t.Helper()
	if err := c.stop(); err != nil {
		t.Fatalf("kill PostgreSQL: %v", err)
	}
}

// Restart starts the server again on its port, after Kill.
func (c *Cluster) Restart(t testing.TB) {
	t.Helper()
	if err := c.launch(t.Context()); err != nil {
		t.Fatalf("restart PostgreSQL: %v", err)
	}
}

// Programs is the folder of the database's own programs, such as psql and pgbench.
func (c *Cluster) Programs() string { return c.bin }

// Addr is where the server listens.
func (c *Cluster) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)) }

// URL is the address of the cluster's first database.
func (c *Cluster) URL() string { return c.at("postgres") }

func (c *Cluster) at(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Host: c.Addr(), Path: database}
	return u.String()
}

// Schema returns the address of a schema of that name, made if it is missing: as good as a database of its own for a catalog, and made in
// a tenth of the time.
func (c *Cluster) Schema(t testing.TB, name string) string {
	t.Helper()
	address, err := SchemaAt(t.Context(), c.URL(), name)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// SchemaAt is Schema in the database at a URL, which another process started.
func SchemaAt(ctx context.Context, database, name string) (string, error) {
	u, err := url.Parse(database)
	if err != nil {
		return "", err
	}
	if err := execute(ctx, database, `CREATE SCHEMA IF NOT EXISTS `+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", err
	}
	u.RawQuery = url.Values{"search_path": {name}}.Encode()
	return u.String(), nil
}

// Database returns the address of an empty database, made under a name of its own.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("d%d", time.Now().UnixNano())
	c.Exec(t, `CREATE DATABASE `+name)
	return c.at(name)
}

// Exec runs statements as the superuser.
func (c *Cluster) Exec(t testing.TB, sql string) {
	t.Helper()
	// Not t.Context: a test may clean up with it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	if err := execute(ctx, c.URL(), sql); err != nil {
		t.Fatal(err)
	}
}

// Count runs a query for one number as the superuser.
func (c *Cluster) Count(t testing.TB, sql string) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL())
	if err != nil {
		t.Fatalf("connect to PostgreSQL: %v", err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var n int
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatalf("run %q: %v", sql, err)
	}
	return n
}

func execute(ctx context.Context, database, sql string) error {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		return fmt.Errorf("run %q: %w", sql, err)
	}
	return nil
}
