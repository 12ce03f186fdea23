package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/lancerest/lancerest/internal/store"
)

const (
	// A group commits once it holds groupSize closures or groupTime has gone by, so that none waits long for the others.
	groupSize = 128
	groupTime = 5 * time.Millisecond

	// maxRuns bounds how often a closure that drew a taken id runs.
	maxRuns = 5

	// The log is moved into the database once it has checkpointPages pages (16 MB): seldom enough to be cheap, often enough
	// that the log wraps and stays small. If readers kept it from wrapping until it has restartPages, the writer waits for them.
	checkpointPages = 4000
	restartPages    = 16000
	restartWait     = 50 * time.Millisecond
	busyWait        = 5 * time.Second // as in writerPragmas
)

// sqliteWriter owns the connection that writes. Callers queue; the writer gives each its turn inside a group's transaction, in
// a savepoint of its own, commits once for all of the group and only then answers any of them: those too whose closure returned an
// error, because it may rest on rows of the group that were not yet durable.
//
// Closures run in their callers' goroutines while the writer waits, so that a panic unwinds the caller and not the writer.
type sqliteWriter struct {
	conn  *sqliteConn
	path  string // of the catalog
	ids   idSource
	now   func() time.Time
	twice bool

	mu     sync.RWMutex // held for reading while a request is put in the queue
	queue  chan *request
	closed bool
	done   chan struct{}

	walPages                         int // the log's length as of the last commit
	restartAt                        int
	groups, updates, largest, errors atomic.Int64
	full                             atomic.Bool // for the last group that wrote anything the disk was
}

// request is one call of Update.
type request struct {
	ctx context.Context
	// turn gives the caller the transaction to run its closure in, perhaps several times. It has no buffer: only a caller
	// that still waits takes it.
	turn chan *tx
	// ran tells the writer how the run ended: with the closure's error or with errNobodyWaits.
	ran chan error
	// answer is what Update returns.
	answer chan error
	// started is set by the writer once the caller has had a turn.
	started bool
}

// errNobodyWaits is the outcome of a closure whose caller gave up before its turn or was unwound by a panic.
var errNobodyWaits = errors.New("nobody waits for the answer")

func startSQLiteWriter(conn *sqliteConn, o Options) *sqliteWriter {
	w := &sqliteWriter{
		conn:  conn,
		path:  o.Path,
		now:   o.Now,
		twice: o.RunTwice,
		queue: make(chan *request, o.QueueLength),
		done:  make(chan struct{}),

		restartAt: restartPages,
	}
	conn.db.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		w.walPages = pages
		return nil
	})
	go w.serve()
	return w
}

// update is SQLite.Update.
func (w *sqliteWriter) update(ctx context.Context, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	req := &request{ctx: ctx, turn: make(chan *tx), ran: make(chan error, 1), answer: make(chan error, 1)}
	if err := w.enqueue(req); err != nil {
		return err
	}
	waiting := ctx.Done()
	for {
		select {
		case t := <-req.turn:
			waiting = nil // from here on the outcome is the transaction's
			req.run(t, fn)
		case err := <-req.answer:
			return err
		case <-waiting:
			return ctx.Err()
		}
	}
}

// offer gives the caller its turn and returns how the closure ended. The writer calls it.
func (r *request) offer(t *tx) error {
	givenUp := r.ctx.Done()
	if r.started {
		givenUp = nil // the caller stays until it has its answer
	}
	select {
	case r.turn <- t:
		r.started = true
		return <-r.ran
	case <-givenUp:
		return errNobodyWaits
	}
}

// run runs the closure and reports to the writer however it ends. The caller calls it.
func (r *request) run(t *tx, fn func(store.Tx) error) {
	err := errNobodyWaits // unless fn returns
	defer func() { r.ran <- err }()
	err = fn(t)
}

func (w *sqliteWriter) enqueue(req *request) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return store.ErrClosed
	}
	select {
	case w.queue <- req:
		return nil
	default:
		return fmt.Errorf("%d transactions wait already: %w", cap(w.queue), store.ErrUnavailable)
	}
}

// close lets what is queued run, then releases the connection.
func (w *sqliteWriter) close() error {
	w.mu.Lock()
	w.closed = true
	close(w.queue)
	w.mu.Unlock()
	<-w.done
	return w.conn.close()
}

func (w *sqliteWriter) stats() Stats {
	return Stats{
		Waiting:          len(w.queue),
		Groups:           w.groups.Load(),
		Updates:          w.updates.Load(),
		LargestGroup:     w.largest.Load(),
		CheckpointErrors: w.errors.Load(),
	}
}

// serve is the writer's goroutine.
func (w *sqliteWriter) serve() {
	defer close(w.done)
	for first := range w.queue {
		g := group{w: w}
		g.fill(first)
		err := g.commit()
		w.noteRoom(err)
		g.answer(err)
		w.checkpoint()
	}
}

// noteRoom notes whether the disk has room, as a group's commit shows. One that wrote nothing shows nothing.
func (w *sqliteWriter) noteRoom(err error) {
	if diskFull(w.path, err) {
		w.full.Store(true)
	} else if err == nil && w.walPages > 0 {
		w.full.Store(false)
	}
}

// tryToWrite writes something and takes it back in the same transaction: SQLite does not write what changes nothing, but does write that.
func (w *sqliteWriter) tryToWrite(ctx context.Context) error {
	return w.update(ctx, func(t store.Tx) error {
		c := t.(*tx)
		if _, err := c.exec(`INSERT INTO schema_migrations (number, applied_at) VALUES ($1, 0)`, [][]any{{int64(0)}}); err != nil {
			return err
		}
		_, err := c.exec(`DELETE FROM schema_migrations WHERE number = $1`, [][]any{{int64(0)}})
		return err
	})
}

// checkpoint moves the log into the database if it has grown enough. Nobody's answer waits for it.
func (w *sqliteWriter) checkpoint() {
	switch {
	case w.walPages >= w.restartAt:
		if err := w.restartLog(); err != nil {
			w.errors.Add(1)
			w.restartAt = w.walPages + restartPages // a reader that stays must not cost every group a wait
		} else {
			w.restartAt = restartPages
		}
	case w.walPages >= checkpointPages:
		// Readers that are at work may keep part of the log from being moved; a later call moves it.
		if _, _, err := w.conn.db.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE); err != nil {
			w.errors.Add(1)
		}
	}
	w.walPages = 0 // the next commit says how long the log is
}

// restartLog moves the whole log and waits for the readers that use it, so that the next commit begins it anew.
func (w *sqliteWriter) restartLog() error {
	db := w.conn.db
	if err := db.BusyTimeout(restartWait); err != nil {
		return err
	}
	_, _, err := db.WALCheckpoint("main", sqlite3.CHECKPOINT_RESTART)
	return errors.Join(err, db.BusyTimeout(busyWait))
}

// group is the closures that one transaction of the database commits.
type group struct {
	w        *sqliteWriter
	requests []*request
	errs     []error // of the closures, nil where it is to be committed
	lost     error   // the whole transaction is gone; nothing was written
}

// fill begins the transaction and runs first and whatever else is queued until the group is full.
func (g *group) fill(first *request) {
	c := g.w.conn
	c.failed = nil
	if err := c.run(`BEGIN IMMEDIATE`); err != nil {
		g.lost = fmt.Errorf("begin transaction: %w", err)
		g.add(first, nil)
		return
	}
	began := time.Now()
	for req := first; ; {
		g.run(req)
		if g.lost != nil || len(g.requests) >= groupSize || time.Since(began) >= groupTime {
			return
		}
		var ok bool
		select {
		case req, ok = <-g.w.queue:
		default:
		}
		if !ok {
			return
		}
	}
}

func (g *group) add(req *request, err error) {
	g.requests = append(g.requests, req)
	g.errs = append(g.errs, err)
}

// run gives a request its turn, again where its run does not count.
func (g *group) run(req *request) {
	for runs := 1; ; runs++ {
		err := g.once(req, runs)
		switch {
		case g.lost != nil:
			g.add(req, nil)
			return
		case errors.Is(err, errNobodyWaits):
			return
		case !errors.Is(err, errRunAgain):
			g.add(req, err)
			return
		case runs >= maxRuns:
			g.add(req, fmt.Errorf("ran %d times: %w: %w", runs, store.ErrContention, err))
			return
		}
	}
}

// once runs a request's closure in a savepoint and keeps what it wrote where it returns nil.
func (g *group) once(req *request, number int) error {
	c := g.w.conn
	c.failed = nil
	if g.lost = c.run(`SAVEPOINT closure`); g.lost != nil {
		return nil
	}
	t := &tx{reader: reader{c}, now: g.w.now().UTC().Truncate(time.Millisecond), ids: &g.w.ids}
	err := req.offer(t)
	t.statements = ended{}
	switch {
	case c.db.GetAutocommit():
		g.lost = fmt.Errorf("the database rolled back: %w", errors.Join(c.failed, err))
		return nil
	case errors.Is(err, errNobodyWaits):
	case t.again:
		err = errRunAgain
	case err == nil:
		err = c.failed
	}
	if g.w.twice && number == 1 && !errors.Is(err, errNobodyWaits) {
		err = errRunAgain
	}
	if err != nil {
		g.lost = c.run(`ROLLBACK TO closure`)
	}
	g.lost = errOr(g.lost, c.run(`RELEASE closure`))
	return err
}

// commit ends the transaction and returns nil once it is durable. Otherwise it returns store.ErrUnavailable where nothing was
// written, store.ErrUnknown where that cannot be told: a log record may have reached the disk although its flush failed.
func (g *group) commit() error {
	c := g.w.conn
	if g.lost != nil {
		return g.rolledBack(g.lost)
	}
	s, err := c.prepare(`COMMIT`)
	if err == nil {
		err = s.Exec()
	}
	if err == nil {
		g.w.groups.Add(1)
		g.w.updates.Add(int64(len(g.requests)))
		g.w.largest.Store(max(g.w.largest.Load(), int64(len(g.requests))))
		return nil
	}
	var code sqlite3.ErrorCode
	if errors.As(err, &code) && (code == sqlite3.BUSY || code == sqlite3.FULL) {
		return g.rolledBack(err)
	}
	return errors.Join(fmt.Errorf("commit: %w: %w", store.ErrUnknown, plainly(g.w.path, err)), c.rollback())
}

// rolledBack makes sure that nothing of the group stays.
func (g *group) rolledBack(cause error) error {
	return errors.Join(fmt.Errorf("%w: %w", store.ErrUnavailable, plainly(g.w.path, cause)), g.w.conn.rollback())
}

// answer gives every caller its closure's error, or the group's in place of any.
func (g *group) answer(err error) {
	for i, req := range g.requests {
		req.answer <- errOr(err, g.errs[i])
	}
}
