package catalog

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
)

// idSource draws the ids of tables that are planned before the transaction that makes them: they sort by time, so that inserts go to the
// end of an index, and none is drawn twice by one process. That no other process drew the same is seen to when reserving.
type idSource struct {
	mu   sync.Mutex
	last lance.ObjectID
}

// idRandomBits are the low bits of an id, below its time in milliseconds.
const idRandomBits = 22

func (s *idSource) next() lance.ObjectID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last+1, lance.ObjectID(time.Now().UnixMilli()<<idRandomBits|rand.Int64N(1<<idRandomBits)))
	return s.last
}
