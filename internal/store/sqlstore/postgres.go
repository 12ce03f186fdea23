package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore/turns"
)

// PostgresOptions says where a PostgreSQL catalog is and how it is used. Only URL is needed.
type PostgresOptions struct {
	// URL is a connection string as libpq has them, "postgres://user:password@host:port/database" or "host=… dbname=…". Several
	// hosts may be named: the one that takes writes is used. The state lies in the first schema of the search_path.
	URL string
	// MaxConns bounds the connections of this process; 0 means 24.
	MaxConns int
	// Writers is how many Updates run at once, so that Views always find a connection; 0 means two thirds of MaxConns.
	Writers int
	// QueueLength is how many Updates may wait for their turn before further ones get store.ErrUnavailable; 0 means 4096.
	QueueLength int
	// StatementTimeout bounds each statement but COMMIT and migrations on the server, and the wait for a connection or a turn; the wait
	// for an answer is bounded here by that and some seconds more. 0 means 30 s.
	StatementTimeout time.Duration
	// LockTimeout bounds how long a statement waits for another transaction; 0 means 5 s.
	LockTimeout time.Duration
	// Beside opens a catalog for tools: the schema is not migrated, but must be the one that this binary expects.
	Beside bool
	// RunTwice is for tests: each closure of Update runs once, is rolled back and runs again.
	RunTwice bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// OnSlow is told of round trips that took SlowStatement or longer (0 means 1 s), with the context of their View or Update.
	OnSlow        func(ctx context.Context, s SlowStatement)
	SlowStatement time.Duration
}

// SlowStatement is what one slow round trip asked of the database.
type SlowStatement struct {
	SQL   string // several statements, and BEGIN, where they travelled together
	Times int    // how many lists of arguments they ran with
	Took  time.Duration
}

// Postgres is a store.Store in a PostgreSQL database that any number of processes share. None of them keeps anything in memory
// that another one could change.
type Postgres struct {
	options PostgresOptions
	pool    *pgxpool.Pool
	turns   *turns.Turns
	ids     idSource
	closed  atomic.Bool
	close   sync.Once
	// life ends when the store is closed: then nobody waits any longer for the answer to a commit that is in doubt.
	life    context.Context
	endLife context.CancelFunc

	commits, updates, retries atomic.Int64
}

// How transactions begin. A serializable one fails where no order of all of them explains what each saw and wrote, and runs
// again. One that only reads has one snapshot, waits for nobody and never fails for the sake of others.
const (
	beginUpdate = `BEGIN ISOLATION LEVEL SERIALIZABLE`
	beginView   = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
)

const (
	// maxAttempts bounds how often an Update runs that loses against others; with the pauses between them they take some seconds.
	maxAttempts = 40
	// maxLost bounds how often an Update runs whose connection breaks before COMMIT was sent.
	maxLost = 4
	// grace is how much longer than the server an answer is waited for.
	grace = 5 * time.Second
)

// OpenPostgres opens the catalog in the database at o.URL and migrates it as needed. It fails if the database cannot be reached,
// if it may lose what it has acknowledged, and if its schema is newer than this binary knows; the error says what to do.
func OpenPostgres(ctx context.Context, o PostgresOptions) (*Postgres, error) {
	o.setDefaults()
	p, err := newPostgres(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := p.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open catalog in %s: %w", p, err), p.Close())
	}
	return p, nil
}

// newPostgres makes the store with its pool, which connects when it is needed.
func newPostgres(ctx context.Context, o PostgresOptions) (*Postgres, error) {
	config, err := o.poolConfig()
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	p := &Postgres{options: o, pool: pool, turns: turns.New(turns.Options{
		Running: o.Writers, Waiting: o.QueueLength, Patience: o.StatementTimeout, LoserPatience: o.LockTimeout,
	})}
	p.ids.spread = true
	p.life, p.endLife = context.WithCancel(context.Background())
	return p, nil
}

// String names the database for a person, with all hosts that it may be on and without its password.
func (p *Postgres) String() string {
	c := p.pool.Config().ConnConfig
	hosts := []string{fmt.Sprintf("%s:%d", c.Host, c.Port)}
	for _, f := range c.Fallbacks { // one for each host and way to encrypt
		if host := fmt.Sprintf("%s:%d", f.Host, f.Port); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return fmt.Sprintf("database %q at %s", c.Database, strings.Join(hosts, ", "))
}

func (o *PostgresOptions) setDefaults() {
	o.MaxConns = defaultTo(o.MaxConns, 24)
	o.Writers = defaultTo(o.Writers, max(1, o.MaxConns*2/3))
	o.QueueLength = defaultTo(o.QueueLength, 4096)
	o.StatementTimeout = defaultTo(o.StatementTimeout, 30*time.Second)
	o.LockTimeout = defaultTo(o.LockTimeout, 5*time.Second)
	o.SlowStatement = defaultTo(o.SlowStatement, time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OnSlow == nil {
		o.OnSlow = func(context.Context, SlowStatement) {}
	}
}

// defaultTo returns n if it is positive, otherwise the default.
func defaultTo[T int | time.Duration](n, byDefault T) T {
	if n > 0 {
		return n
	}
	return byDefault
}

// View implements store.Store. fn must not call the store itself: with all connections in use it would wait for ever.
func (p *Postgres) View(ctx context.Context, fn func(store.Reader) error) error {
	s, err := p.begin(ctx, beginView)
	if err != nil {
		return err
	}
	r := &reader{s}
	defer func() {
		r.statements = ended{}
		go s.end() // nothing depends on how a transaction ends that only read
	}()
	if err := fn(r); err != nil {
		return err
	}
	return s.failed
}

// Update implements store.Store. fn runs in the caller's goroutine; should it panic, its changes are rolled back first.
func (p *Postgres) Update(ctx context.Context, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.closed.Load() {
		return store.ErrClosed
	}
	turn, err := p.turns.Enter(ctx)
	if err != nil {
		return err
	}
	s, err := p.begin(ctx, beginUpdate)
	if err != nil {
		turn.Leave()
		return err
	}
	s.turn = turn
	defer s.end()
	s.outlive()
	if p.options.RunTwice {
		if err := p.attempt(s, fn, rehearse); err != nil {
			return err
		}
	}
	for run := 1; ; run++ {
		err := p.attempt(s, fn, commit)
		if err == nil || !s.again(err, run) {
			return finally(err, run)
		}
		p.retries.Add(1)
		time.Sleep(pause(run))
		turn.GiveWay(run)
	}
}

// finally is what the caller is told of the last attempt's error.
func finally(err error, runs int) error {
	if errors.Is(err, errRunAgain) || errors.Is(err, errSerialization) {
		return fmt.Errorf("ran %d times: %w: %w", runs, store.ErrContention, err)
	}
	return err
}

// pause is how long to wait before the attempt after the given one: not at first, then by chance, so that replicas that met several times do
// not meet again.
func pause(run int) time.Duration {
	if run < 4 {
		return 0
	}
	return rand.N(time.Millisecond << min(run, 8))
}

// ending says what becomes of an attempt that succeeded.
type ending int

const (
	commit   ending = iota
	rehearse        // its changes are rolled back, whatever it returned
)

// attempt runs fn in one transaction. What it returns is fn's error, or one of the contract, or errors that again knows.
func (p *Postgres) attempt(s *pgSession, fn func(store.Tx) error, e ending) error {
	if err := s.renew(); err != nil {
		return err
	}
	t := &tx{reader: reader{s}, now: p.options.Now().UTC().Truncate(time.Millisecond), ids: &p.ids}
	done := false
	defer func() {
		t.statements = ended{}
		if !done {
			s.rollback()
		}
	}()
	err := fn(t)
	switch {
	case s.failed != nil:
		err = s.failed
	case t.again:
		err = errRunAgain
	}
	if e == rehearse {
		return nil
	}
	if err != nil {
		return err
	}
	done = true
	p.updates.Add(1)
	return s.commit()
}

// NewID implements store.Store.
func (p *Postgres) NewID() lance.ObjectID { return p.ids.next(p.options.Now()) }

// NewTransactionID implements store.Store.
func (p *Postgres) NewTransactionID() lance.TransactionID { return p.ids.transaction(p.options.Now()) }

// Ping implements store.Store.
func (p *Postgres) Ping(ctx context.Context) error {
	s, err := p.begin(ctx, beginView)
	if err != nil {
		return err
	}
	defer s.end()
	if err := checkSchema(s); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return nil
}

// Close implements store.Store. Updates that wait for their turn get store.ErrClosed.
func (p *Postgres) Close() error {
	p.closed.Store(true)
	p.close.Do(func() {
		p.endLife()
		p.pool.Close()
	})
	return nil
}

// Stats returns the counts of now. A group is one commit here, because the database itself flushes many at once.
func (p *Postgres) Stats() Stats {
	return Stats{
		Waiting: p.turns.Waiting(),
		Groups:  p.commits.Load(),
		Updates: p.updates.Load(),
		Retries: p.retries.Load(),
	}
}
