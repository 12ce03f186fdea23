package engine

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/lancerest/lancerest/api"
)

// Commits knows what the operations that workers perform have committed. A worker commits by a request to the catalog, which says for what
// operation; so that whoever loses a worker can tell whether its operation was done, and can be sure that it is not done later. It is kept in
// memory: the operations end with the server. Create it with NewCommits; all methods are safe for concurrent use.
type Commits struct {
	prefix string
	now    func() time.Time

	mu    sync.Mutex
	made  int
	free  []string // ids of operations that are over, which are given to others: workers keep a connection for each
	under map[string]*underway
	lost  map[string]time.Time
}

// underway is an operation that a worker performs.
type underway struct {
	committing int
	version    int64         // of the last commit, 0 for none
	unknown    bool          // what became of a commit cannot be told
	quiet      chan struct{} // closed once the operation is lost and commits nothing any more
}

// lostKeep is how long a worker that was given up may still try to commit. None lives as long.
const lostKeep = 24 * time.Hour

// NewCommits returns an empty record. prefix begins all ids: what no other server uses.
func NewCommits(prefix string) *Commits {
	return &Commits{prefix: prefix, now: time.Now, under: map[string]*underway{}, lost: map[string]time.Time{}}
}

// Begin returns the id by which an operation's commits are known, until Finish or Lose.
func (c *Commits) Begin() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var id string
	if n := len(c.free); n > 0 {
		id, c.free = c.free[n-1], c.free[:n-1]
	} else {
		c.made++
		id = c.prefix + "-" + strconv.Itoa(c.made)
	}
	c.under[id] = &underway{quiet: make(chan struct{})}
	return id
}

// Finish ends an operation whose worker has answered.
func (c *Commits) Finish(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.under[id]; ok {
		delete(c.under, id)
		c.free = append(c.free, id)
	}
}

// Enter is called before a commit for an operation is performed, and leave with what became of it. The error is of code InvalidTableState: the
// operation was given up, and nothing may be committed for it. An id of another server's is nobody's here and is let through.
func (c *Commits) Enter(id string) (leave func(version int64, err error), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.lost[id]; ok {
		return nil, api.Errorf(api.CodeInvalidTableState, "the operation that this commit belongs to was given up: nothing was committed")
	}
	u, ok := c.under[id]
	if !ok {
		return func(int64, error) {}, nil
	}
	u.committing++
	return func(version int64, err error) { c.leave(id, u, version, err) }, nil
}

func (c *Commits) leave(id string, u *underway, version int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u.committing--
	switch {
	case err == nil:
		u.version = version
	case !refused(err):
		u.unknown = true
	}
	if _, lost := c.lost[id]; lost && u.committing == 0 {
		close(u.quiet)
	}
}

// refused reports whether an error of a commit says that there was none.
func refused(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code != api.CodeInternal
}

// Lose ends an operation whose worker gives no answer any more. It waits for the commit that is under way, and returns the version that the
// operation has committed, 0 if it has committed nothing; neither is true of it where known is false, or where ctx ends before.
func (c *Commits) Lose(ctx context.Context, id string) (version int64, known bool) {
	c.mu.Lock()
	u, ok := c.under[id]
	if !ok {
		c.mu.Unlock()
		return 0, false
	}
	delete(c.under, id)
	for old, at := range c.lost {
		if c.now().Sub(at) > lostKeep {
			delete(c.lost, old)
		}
	}
	c.lost[id] = c.now()
	if u.committing == 0 {
		close(u.quiet)
	}
	c.mu.Unlock()
	select {
	case <-u.quiet:
	case <-ctx.Done():
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return u.version, !u.unknown
}

// DoneError is the error of an operation that was done, although its worker was lost before it could say with what result.
type DoneError struct {
	Shown *api.Error // what callers are told
}

// Error implements error.
func (e *DoneError) Error() string { return e.Shown.Error() }

// Unwrap returns what callers are told.
func (e *DoneError) Unwrap() error { return e.Shown }
