package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// commitWarning is where a connection keeps a warning that casts doubt on a commit.
const commitWarning = "lancerest.commit_warning"

// poolConfig turns the options into the driver's. It returns an error that says what is wrong with the URL, without its password.
func (o *PostgresOptions) poolConfig() (*pgxpool.Config, error) {
	if ambiguous(o.URL) {
		return nil, errors.New("state: it must be postgres://USER:PASSWORD@HOST:PORT/DATABASE with one @ and no / before it: inside of a name or a password write %40 and %2F")
	}
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("state: it must be postgres://USER:PASSWORD@HOST:PORT/DATABASE: %w", withoutURL(err))
	}
	c := config.ConnConfig
	if c.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement && c.DefaultQueryExecMode != pgx.QueryExecModeCacheDescribe {
		return nil, fmt.Errorf("state: default_query_exec_mode %q is not supported: leave it out", c.DefaultQueryExecMode)
	}
	config.MaxConns = int32(o.MaxConns)
	config.MaxConnLifetimeJitter = 5 * time.Minute
	config.PingTimeout = grace
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = grace
	}
	if c.ValidateConnect == nil {
		// A standby's reads are stale, and it takes no writes.
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	c.OnNotice = keepCommitWarning
	config.BeforeConnect = dialCarefully
	for name, value := range map[string]string{
		"application_name":                    "lancerest",
		"statement_timeout":                   milliseconds(o.StatementTimeout),
		"lock_timeout":                        milliseconds(o.LockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(o.StatementTimeout + grace), // of a process that stands still
		// Every statement has its index. A scan of a small table would be cheaper, but a serializable transaction that scans a
		// table conflicts with all that write to it.
		"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off",
		"jit": "off",
	} {
		if _, given := c.RuntimeParams[name]; !given {
			c.RuntimeParams[name] = value
		}
	}
	return config, nil
}

// ambiguous reports whether it is a matter of taste where the password of a URL ends: the driver would take the rest of one that holds an @ for
// a host, and name it.
func ambiguous(url string) bool {
	_, rest, _ := strings.Cut(url, "://")
	rest, _, _ = strings.Cut(rest, "?")
	i := strings.LastIndexByte(rest, '@')
	return i >= 0 && strings.ContainsAny(rest[:i], "@/")
}

// withoutURL is the driver's error without the URL, of which it hides only what it recognises as a password.
func withoutURL(err error) error {
	var parse *pgconn.ParseConfigError
	if !errors.As(err, &parse) {
		return err
	}
	shown := *parse
	shown.ConnString = "…"
	return &shown
}

// How soon a connection to a machine that is gone breaks, which says nothing as one does that waits for a standby.
const (
	keepAliveIdle     = 10 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveCount    = 4
)

// dialCarefully lets connections break soon whose other end is gone. And it keeps the driver from asking the server to cancel what a
// connection that it gives up was doing: a commit that waits for its standby would stop waiting and be seen; everything else ends by
// itself, for every statement is short.
func dialCarefully(_ context.Context, c *pgx.ConnConfig) error {
	dial, connected := c.DialFunc, &atomic.Bool{}
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if connected.Load() {
			return nil, errors.New("cancel requests are not sent")
		}
		conn, err := dial(ctx, network, addr)
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			return conn, err
		}
		err = errors.Join(
			tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount}),
			boundUnacknowledged(tcp, keepAliveIdle+keepAliveCount*keepAliveInterval))
		if err != nil {
			return nil, errors.Join(err, tcp.Close())
		}
		return tcp, nil
	}
	c.AfterConnect = func(context.Context, *pgconn.PgConn) error {
		connected.Store(true)
		return nil
	}
	return nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// keepCommitWarning keeps the warning of a commit that was told to wait no longer for its standby: it is visible, and answered like
// any other, but would be lost with the primary.
func keepCommitWarning(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.Code == queryCanceled || n.Code == adminShutdown {
		c.CustomData()[commitWarning] = (*pgconn.PgError)(n)
	}
}

// prepare migrates the schema, or checks it, and refuses a database that acknowledges commits before they are durable.
func (p *Postgres) prepare(ctx context.Context) error {
	s, err := p.begin(ctx, beginUpdate)
	if err != nil {
		return err
	}
	defer s.end()
	c := &pgSchemaConn{s}
	var synchronous string
	if err := s.conn.QueryRow(ctx, `SHOW synchronous_commit`).Scan(&synchronous); err != nil {
		return fmt.Errorf("look up synchronous_commit: %w", err)
	}
	if synchronous == "off" {
		return errors.New("the database has synchronous_commit = off, so that a crash loses commits that were acknowledged: set it to on")
	}
	if p.options.Beside {
		return checkSchema(s)
	}
	// A migration may take long, and its locks wait for what runs.
	if _, err := s.conn.Exec(ctx, `SET statement_timeout = 0; SET lock_timeout = 0`); err != nil {
		return err
	}
	defer func() {
		if s.conn != nil {
			_ = s.conn.Conn().Close(ctx) // its timeouts are not those of the others
		}
	}()
	return migrate(c, p.options.Now)
}

// pgSchemaConn is the connection that migrates. No lock keeps other replicas out: the number of a step is inserted before the
// step is made, and its primary key lets one of them through, while the others wait for it and look again.
type pgSchemaConn struct{ *pgSession }

// script implements schemaConn.
func (c *pgSchemaConn) script(sql string) error {
	ctx := c.ctx
	if !c.begun {
		sql = c.begin + ";" + sql
		c.begun = true
	}
	if _, err := c.conn.Conn().PgConn().Exec(ctx, postgresWords(sql)).ReadAll(); err != nil {
		c.fail("script", err)
	}
	return c.failed
}

// atomically implements schemaConn. fn may run several times.
func (c *pgSchemaConn) atomically(fn func() error) error {
	for run := 1; ; run++ {
		if err := c.renew(); err != nil {
			return err
		}
		err := fn()
		if err = errOr(c.failed, err); err == nil {
			err = c.pgSession.commit()
		} else {
			c.rollback()
		}
		if err == nil || !c.again(err, run) && !createdMeanwhile(err, run) {
			return err
		}
		time.Sleep(pause(run))
	}
}

// createdMeanwhile reports whether another replica has just created what this one was about to create, "IF NOT EXISTS" or not.
func createdMeanwhile(err error, run int) bool {
	var answer *pgconn.PgError
	return run < maxAttempts && errors.As(err, &answer) && (answer.Code == duplicateTable || answer.Code == duplicateObject)
}

var (
	sqlComment = regexp.MustCompile(`(?m)--.*$`)
	sqliteEnd  = regexp.MustCompile(`\) STRICT(, WITHOUT ROWID)?;`)
	sqlType    = regexp.MustCompile(`\b(INTEGER|BLOB|TEXT)\b`)
)

// postgresWords puts a text of the schema, which is SQLite's, into PostgreSQL's words. Texts sort bytewise in both.
func postgresWords(sql string) string {
	sql = sqlComment.ReplaceAllString(sql, "")
	sql = sqliteEnd.ReplaceAllString(sql, ");")
	return sqlType.ReplaceAllStringFunc(sql, func(name string) string {
		switch strings.ToUpper(name) {
		case "INTEGER":
			return "BIGINT"
		case "BLOB":
			return "BYTEA"
		}
		return `TEXT COLLATE "C"`
	})
}
