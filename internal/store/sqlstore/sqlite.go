package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lockfile"
	"github.com/lancerest/lancerest/internal/store"
)

// Options says where a SQLite catalog lies and how it runs. Only Path is needed.
type Options struct {
	// Path is the database's file, made if it is missing, with its directory. Nobody but the owner may read it, for it holds secrets; an older one
	// is made so unless Beside is set. Beside it lie its log ("-wal", "-shm") and the
	// lock ("….lock") that keeps a second server out.
	Path string
	// QueueLength is how many Updates may wait for their turn before further ones get store.ErrUnavailable; 0 means 4096.
	QueueLength int
	// Readers is how many Views run at once, each on its own connection; 0 means 4.
	Readers int
	// Beside opens a catalog that a server may have open at the same time, for tools: the lock is not taken and the schema is not
	// migrated, but must be the one that this binary expects. Transactions of both take turns.
	Beside bool
	// RunTwice is for tests: each closure of Update runs once, is rolled back and runs again, so that one that keeps state
	// outside of itself is found out.
	RunTwice bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	// Only this package's tests set these: unsynced gives up durability, for the hundreds of catalogs that they open; vfs names
	// a file system of the driver's that fails on command.
	unsynced bool
	vfs      string
}

// SQLite is a store.Store in one SQLite file. One goroutine owns the only connection that writes and commits the closures
// that wait in groups, so that they share one flush to the disk; readers have their own connections and never wait for it.
type SQLite struct {
	readers chan *sqliteConn
	total   int // readers, idle or not
	writer  *sqliteWriter
	lock    *os.File
	closed  chan struct{}
	close   sync.Once
	closing error
}

// OpenSQLite opens the catalog at o.Path, making and migrating it as needed, and returns a *SQLite. It fails if another server
// has it open, and if its schema is newer than this binary knows; the error says what to do. The time it takes does not
// depend on what the catalog holds.
func OpenSQLite(ctx context.Context, o Options) (*SQLite, error) {
	if o.QueueLength <= 0 {
		o.QueueLength = 4096
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o750); err != nil {
		return nil, fmt.Errorf("make the catalog's directory: %w", err)
	}
	s := &SQLite{readers: make(chan *sqliteConn, o.Readers), closed: make(chan struct{})}
	if !o.Beside {
		var err error
		if s.lock, err = lockfile.Lock(o.Path + lockEnding); err != nil {
			return nil, fmt.Errorf("lock catalog %s: %w", o.Path, err)
		}
	} else if _, err := os.Stat(o.Path); err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	err := makePrivate(o)
	if err == nil {
		err = s.open(ctx, o)
	}
	if err == nil {
		err = makePrivate(o) // the index of the log is made by the driver, whatever the mode of the catalog
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open catalog %s: %w", o.Path, plainly(o.Path, err)), s.Close())
	}
	return s, nil
}

// lockEnding makes the name of a catalog's lock from the catalog's.
const lockEnding = ".lock"

// InUse reports whether a server has the catalog at path open now.
func InUse(path string) (bool, error) {
	held, err := lockfile.Held(path + lockEnding)
	if err != nil {
		return false, fmt.Errorf("look whether catalog %s is in use: %w", path, err)
	}
	return held, nil
}

// makePrivate makes the catalog's file where it is missing, and takes it and its log from everybody but the owner: it holds the secret by which
// page tokens are known, and what callers of the catalog may not all see. What belongs to somebody else stays as it is.
func makePrivate(o Options) error {
	if o.Beside {
		return nil
	}
	f, err := os.OpenFile(o.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	for _, path := range []string{o.Path, o.Path + "-wal", o.Path + "-shm"} {
		info, err := os.Stat(path)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = os.Chmod(path, info.Mode().Perm()&^0o077)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

func (s *SQLite) open(ctx context.Context, o Options) error {
	conn, err := openSQLiteConn(ctx, o, writerPragmas)
	if err != nil {
		return err
	}
	if o.unsynced {
		if err := conn.db.Exec(`PRAGMA synchronous = OFF`); err != nil {
			return errors.Join(err, conn.close())
		}
	}
	prepare := func() error { return migrate(conn, o.Now) }
	if o.Beside {
		prepare = func() error { return conn.read(ctx, func() error { return checkSchema(conn) }) }
	}
	if err := prepare(); err != nil {
		return errors.Join(err, conn.close())
	}
	s.writer = startSQLiteWriter(conn, o)
	for range o.Readers {
		conn, err := openSQLiteConn(ctx, o, readerPragmas)
		if err != nil {
			return err
		}
		s.readers <- conn
		s.total++
	}
	return nil
}

// View implements store.Store. fn must not call the store itself: with all readers in use it would wait for ever.
func (s *SQLite) View(ctx context.Context, fn func(store.Reader) error) error {
	c, err := s.reader(ctx)
	if err != nil {
		return err
	}
	defer func() { s.readers <- c }()
	return c.view(ctx, fn)
}

// reader takes a reader's connection from the pool.
func (s *SQLite) reader(ctx context.Context) (*sqliteConn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-s.closed:
		return nil, store.ErrClosed
	default:
	}
	select {
	case c := <-s.readers:
		return c, nil
	case <-s.closed:
		return nil, store.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Update implements store.Store. fn runs in the caller's goroutine; should it panic, its changes are rolled back first.
func (s *SQLite) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.writer.update(ctx, fn)
}

// NewID implements store.Store.
func (s *SQLite) NewID() lance.ObjectID { return s.writer.ids.next(s.writer.now()) }

// NewTransactionID implements store.Store.
func (s *SQLite) NewTransactionID() lance.TransactionID {
	return s.writer.ids.transaction(s.writer.now())
}

// Ping implements store.Store. After a write for which the disk was too full it is an error until one succeeds, which it tries.
func (s *SQLite) Ping(ctx context.Context) error {
	if err := s.ping(ctx); err != nil || !s.writer.full.Load() {
		return err
	}
	return s.writer.tryToWrite(ctx)
}

func (s *SQLite) ping(ctx context.Context) error {
	c, err := s.reader(ctx)
	if err != nil {
		return err
	}
	defer func() { s.readers <- c }()
	return c.read(ctx, func() error {
		if err := checkSchema(c); err != nil {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		return nil
	})
}

// Close implements store.Store. Updates that wait in the queue still run.
func (s *SQLite) Close() error {
	s.close.Do(func() {
		close(s.closed)
		for range s.total {
			s.closing = errors.Join(s.closing, (<-s.readers).close())
		}
		if s.writer != nil {
			s.closing = errors.Join(s.closing, s.writer.close())
		}
		if s.lock != nil {
			s.closing = errors.Join(s.closing, s.lock.Close())
		}
	})
	return s.closing
}

// Stats are counts of a store's work since it was opened, for metrics.
type Stats struct {
	// Waiting is how many Updates wait for their turn now.
	Waiting int
	// Groups is how many groups were committed, Updates how many closures ran in them, and LargestGroup the most in one.
	Groups, Updates, LargestGroup int64
	// Retries counts runs of closures that lost against another transaction and ran again.
	Retries int64
	// CheckpointErrors counts attempts to move the log into the database that failed; the log keeps what they left.
	CheckpointErrors int64
}

// Stats returns the counts of now.
func (s *SQLite) Stats() Stats { return s.writer.stats() }
