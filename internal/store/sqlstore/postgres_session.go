package sqlstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore/turns"
)

// maxPipelined bounds how many runs of a statement are sent at once.
const maxPipelined = 1000

// pgSession is one transaction after the other on one connection of the pool, used by one goroutine at a time. A transaction
// begins with its first statement, in the same round trip.
type pgSession struct {
	p     *Postgres
	ctx   context.Context
	begin string
	conn  *pgxpool.Conn
	begun bool
	// failed is the first error of the driver since the transaction began. A closure that hides it does not commit.
	failed error
	// lost counts the connections that broke.
	lost int
	// turn is what an Update holds, nil for a View.
	turn *turns.Turn
}

// begin takes a connection. It returns ctx's error, store.ErrClosed or store.ErrUnavailable.
func (p *Postgres) begin(ctx context.Context, begin string) (*pgSession, error) {
	s := &pgSession{p: p, ctx: ctx, begin: begin}
	return s, s.connect()
}

// connect takes a connection from the pool, which makes sure that it works if it has rested.
func (s *pgSession) connect() error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if s.p.closed.Load() {
		return store.ErrClosed
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.p.options.StatementTimeout)
	defer cancel()
	conn, err := s.p.pool.Acquire(ctx)
	switch {
	case err == nil:
		s.conn = conn
		return nil
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case s.p.closed.Load():
		return store.ErrClosed
	}
	return fmt.Errorf("connect: %w: %w", store.ErrUnavailable, err)
}

// outlive makes what follows independent of the caller's context: a transaction that runs is not stopped half-way.
func (s *pgSession) outlive() { s.ctx = context.WithoutCancel(s.ctx) }

// renew makes the session ready for the next transaction, on another connection if the last one broke.
func (s *pgSession) renew() error {
	s.begun, s.failed = false, nil
	if s.conn != nil && !s.conn.Conn().IsClosed() {
		return nil
	}
	s.release()
	return s.connect()
}

func (s *pgSession) release() {
	if s.conn != nil {
		s.conn.Release() // the pool forgets a connection that is broken or in a transaction
		s.conn = nil
	}
}

// end gives the connection and the turn back. A transaction that was not committed is rolled back.
func (s *pgSession) end() {
	s.rollback()
	s.release()
	if s.turn != nil {
		s.turn.Leave()
		s.turn = nil
	}
}

func (s *pgSession) rollback() {
	if s.conn == nil || s.conn.Conn().IsClosed() || s.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := s.bounded(context.WithoutCancel(s.ctx))
	defer cancel()
	_ = s.conn.Conn().PgConn().Exec(ctx, `ROLLBACK`).Close() // where this fails the connection is lost, and with it the transaction
}

// bounded limits how long an answer is waited for, also where the network says nothing at all.
func (s *pgSession) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.p.options.StatementTimeout+grace)
}

// commit ends the transaction and returns nil once it is durable. Otherwise nothing was written where it returns an error that again
// knows, store.ErrUnavailable or a mistake of this package's; store.ErrUnknown says that nobody can tell.
//
// The server must not give up on a commit that waits for its standby: it would become visible, and be lost with the primary.
func (s *pgSession) commit() error {
	if !s.begun {
		return nil // the closure asked for nothing
	}
	began := time.Now()
	answer := make(chan error, 1)
	conn := s.conn.Conn().PgConn()
	go func() { answer <- s.sendCommit(conn) }()
	late := time.NewTimer(s.p.options.StatementTimeout + grace)
	defer late.Stop()
	defer func() {
		if took := time.Since(began); took >= s.p.options.SlowStatement {
			s.tell([]string{"COMMIT"}, 1, took)
		}
	}()
	select {
	case err := <-answer:
		if errors.Is(err, errLost) {
			s.lost++
		}
		return err
	case <-late.C:
		s.leaveInDoubt(answer)
		return fmt.Errorf("commit: no answer within %s: %w", s.p.options.StatementTimeout+grace, store.ErrUnknown)
	}
}

// sendCommit is commit however long it takes.
func (s *pgSession) sendCommit(conn *pgconn.PgConn) error {
	delete(conn.CustomData(), commitWarning)
	results, err := conn.Exec(context.WithoutCancel(s.ctx), `SET LOCAL statement_timeout = 0; COMMIT`).ReadAll()
	switch {
	case err != nil:
		return s.commitError(err)
	case results[len(results)-1].CommandTag.String() != "COMMIT":
		return fmt.Errorf("commit: the database rolled back: %w", store.ErrUnavailable)
	case conn.CustomData()[commitWarning] != nil:
		return fmt.Errorf("commit: %w: %v", store.ErrUnknown, conn.CustomData()[commitWarning])
	}
	s.p.commits.Add(1)
	return nil
}

// leaveInDoubt leaves a commit that is not answered to itself. Closing its connection would not end it in the database, whose process
// waits for the standby all the same: so the connection and the turn stay taken until the answer comes, or the connection breaks, and
// this process never has more of the database's connections than it may.
func (s *pgSession) leaveInDoubt(answer <-chan error) {
	conn, turn := s.conn, s.turn
	s.conn, s.turn = nil, nil
	if turn != nil { // a migration has none
		turn.Doubt()
	}
	stop := context.AfterFunc(s.p.life, func() { _ = conn.Conn().PgConn().Conn().Close() })
	go func() {
		<-answer
		stop()
		conn.Release()
		if turn != nil {
			turn.Leave()
		}
	}()
}

// commitError classifies what came instead of the answer to COMMIT.
func (s *pgSession) commitError(err error) error {
	var answer *pgconn.PgError
	switch {
	case pgconn.SafeToRetry(err): // nothing was sent
		return fmt.Errorf("commit: %w: %w: %w", store.ErrUnavailable, errLost, err)
	case errors.As(err, &answer) && answer.SeverityUnlocalized == "ERROR" && answer.Code != statementCompletionUnknown:
		return fmt.Errorf("commit: %w", postgresError(err))
	}
	return fmt.Errorf("commit: %w: %w", store.ErrUnknown, err)
}

// query implements statements.
func (s *pgSession) query(sql string, args [][]any, scan func(i int, r row) error) error {
	return s.together(&statement{sql: sql, args: args, scan: scan})
}

// exec implements statements.
func (s *pgSession) exec(sql string, args [][]any) ([]int64, error) {
	own := statement{sql: sql, args: args}
	err := s.together(&own)
	return own.changed, err
}

// together implements statements: all runs travel in one round trip, or in as few as there must be.
func (s *pgSession) together(list ...*statement) error {
	var own error // of a scan
	var runs []run
	for _, st := range list {
		if st.scan == nil {
			st.changed = make([]int64, len(st.args))
		}
		for i := range st.args {
			runs = append(runs, run{statement: st, index: i, own: &own})
		}
	}
	for part := range slices.Chunk(runs, maxPipelined) {
		if s.failed != nil || own != nil {
			break
		}
		if err := s.pipeline(part); err != nil {
			s.fail(part[0].sql, err)
		}
	}
	return errOr(s.failed, own)
}

// run is a statement with one of its lists of arguments.
type run struct {
	*statement
	index int
	own   *error // the first error of a scan, after which no other is called
}

// receive takes what the database answered.
func (r run) receive(results pgx.BatchResults) error {
	if r.scan == nil {
		tag, err := results.Exec()
		r.changed[r.index] = tag.RowsAffected()
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for *r.own == nil && rows.Next() {
		*r.own = r.scan(r.index, pgRow(rows.RawValues()))
	}
	rows.Close()
	return rows.Err()
}

// pipeline sends one round trip. The first of a transaction is sent again where the connection turns out to be broken: whoever
// restarts the database leaves many such connections behind.
func (s *pgSession) pipeline(runs []run) error {
	for {
		var texts []string
		if !s.begun {
			texts = append(texts, s.begin)
		}
		began := time.Now()
		err := s.once(runs)
		if took := time.Since(began); took >= s.p.options.SlowStatement {
			s.tell(append(texts, textsOf(runs)...), len(runs), took)
		}
		if err == nil || s.begun || !s.conn.Conn().IsClosed() || s.ctx.Err() != nil || s.lost >= maxLost {
			return err
		}
		s.lost++
		s.release()
		if err := s.connect(); err != nil {
			return err
		}
	}
}

// textsOf returns the statements of some runs.
func textsOf(runs []run) []string {
	var texts []string
	for i, r := range runs {
		if i == 0 || r.index == 0 {
			texts = append(texts, r.sql)
		}
	}
	return texts
}

// tell reports a round trip that was slow.
func (s *pgSession) tell(texts []string, times int, took time.Duration) {
	s.p.options.OnSlow(s.ctx, SlowStatement{SQL: strings.Join(texts, "; "), Times: times, Took: took})
}

func (s *pgSession) once(runs []run) error {
	ctx, cancel := s.bounded(s.ctx)
	defer cancel()
	batch := &pgx.Batch{}
	if !s.begun {
		batch.Queue(s.begin)
	}
	for _, r := range runs {
		batch.Queue(r.sql, r.args[r.index]...)
	}
	results := s.conn.SendBatch(ctx, batch)
	err := s.receive(results, runs)
	return errOr(err, results.Close())
}

func (s *pgSession) receive(results pgx.BatchResults, runs []run) error {
	if !s.begun {
		if _, err := results.Exec(); err != nil {
			return err
		}
		s.begun = true
	}
	for _, r := range runs {
		if err := r.receive(results); err != nil {
			return err
		}
	}
	return nil
}

// fail turns an error of the driver into one of the contract and keeps the first of a transaction.
func (s *pgSession) fail(sql string, err error) {
	switch {
	case s.ctx.Err() != nil:
		err = s.ctx.Err()
	case s.conn == nil: // connect has said why
	case errors.Is(err, context.DeadlineExceeded): // what has not answered in all that time is not asked again
		err = fmt.Errorf("no answer: %w: %w", store.ErrUnavailable, err)
	case s.conn.Conn().IsClosed():
		s.lost++
		err = fmt.Errorf("%w: %w: %w", store.ErrUnavailable, errLost, err)
	default:
		err = postgresError(err)
	}
	s.failed = fmt.Errorf("run %q: %w", sql, err)
}

// again reports whether an Update runs again after its attempt of that number ended with err. Then nothing was written.
func (s *pgSession) again(err error, run int) bool {
	switch {
	case errors.Is(err, errLost):
		return s.lost < maxLost
	case errors.Is(err, errSerialization):
		return run < maxAttempts
	case errors.Is(err, errRunAgain):
		return run < maxRuns
	}
	return false
}

// pgRow is the columns of one row as the database sent them, in its binary formats.
type pgRow [][]byte

func (r pgRow) Int(column int) int64 {
	if len(r[column]) != 8 {
		return 0 // NULL: every number of the schema is a BIGINT
	}
	return int64(binary.BigEndian.Uint64(r[column]))
}

func (r pgRow) Text(column int) string  { return string(r[column]) }
func (r pgRow) Bytes(column int) []byte { return r[column] }
