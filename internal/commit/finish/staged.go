package finish

import (
	"context"
	"sync"
	"time"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
)

// stagedCleaner removes staged manifests some time after their bytes were published. It is only tidiness: what a crash leaves
// behind is found by `lancerest check`, and clients ignore such names.
type stagedCleaner struct {
	keep time.Duration

	mu      sync.Mutex
	queue   []stagedObject
	running bool
	stop    chan struct{}
	idle    chan struct{} // closed when the running drain has ended
}

// LateMax is for how long after an abort a request that was given up may still take effect where the storage judges too little, and
// lateKeep how long staged manifests are kept there for it (C10).
const (
	LateMax  = 15 * time.Minute
	lateKeep = LateMax + 5*time.Minute
)

type stagedObject struct {
	objects objstore.Store
	key     string
	due     time.Time
}

func newStagedCleaner(keep time.Duration) *stagedCleaner {
	return &stagedCleaner{keep: keep, stop: make(chan struct{})}
}

// later removes an object once it has been kept for long enough.
func (s *stagedCleaner) later(objects objstore.Store, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, stagedObject{objects: objects, key: key, due: time.Now().Add(s.keep)})
	if !s.running {
		s.running, s.idle = true, make(chan struct{})
		go s.drain()
	}
}

// stagedAtOnce is how many staged manifests are removed at a time: a distant storage takes its time for each, and commits do not wait.
const stagedAtOnce = 16

// drain removes what is due until nothing is left or the cleaner is closed.
func (s *stagedCleaner) drain() {
	defer close(s.idle)
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.queue, s.running = nil, false
			s.mu.Unlock()
			return
		}
		due := s.queue[0].due
		s.mu.Unlock()
		timer := time.NewTimer(time.Until(due))
		select {
		case <-timer.C:
		case <-s.stop:
			timer.Stop()
			return
		}
		s.removeDue()
	}
}

// removeDue removes the first ones that are due, together, and takes them off the queue.
func (s *stagedCleaner) removeDue() {
	s.mu.Lock()
	now, n := time.Now(), 0
	for n < len(s.queue) && n < stagedAtOnce && !s.queue[n].due.After(now) {
		n++
	}
	due := s.queue[:n]
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, o := range due {
		wg.Go(func() { s.remove(context.Background(), o) })
	}
	wg.Wait()
	s.mu.Lock()
	s.queue = s.queue[n:]
	s.mu.Unlock()
}

// remove lets a failure go: the object is garbage that a later look finds again.
func (s *stagedCleaner) remove(ctx context.Context, o stagedObject) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_ = o.objects.Delete(ctx, o.key)
}

// RemoveLater removes a staged manifest, the object of a key, some time after its bytes were published. It does not wait; a failure leaves
// the object behind.
func (c *Completer) RemoveLater(p place.Place, key string) {
	cleaner := c.staged
	if p.Root.Unjudged != "" {
		cleaner = c.stagedLong
	}
	cleaner.later(p.Objects, key)
}

// abandon stops waiting and leaves what is queued where it is.
func (s *stagedCleaner) abandon() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.close(ctx)
}

// close stops waiting and removes everything that is queued, as far as ctx allows.
func (s *stagedCleaner) close(ctx context.Context) {
	s.mu.Lock()
	select {
	case <-s.stop:
		s.mu.Unlock()
		return
	default:
	}
	close(s.stop)
	idle, running := s.idle, s.running
	s.mu.Unlock()
	if running {
		<-idle
	}
	for _, o := range s.queue {
		if ctx.Err() != nil {
			return
		}
		s.remove(ctx, o)
	}
	s.queue = nil
}
