package sqlstore

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
)

const (
	// idEpoch is where the clock of ids begins, in milliseconds since 1970: 2025-01-01. 41 bits reach to the year 2094.
	idEpoch = 1_735_689_600_000
	// idRandomBits is the lower part of an id. It keeps replicas that share no memory apart within one millisecond.
	idRandomBits = 22
)

// idSource draws ids that grow with time, so that inserts append to the index, and that never repeat within a process. Ids of
// two processes differ by chance only: the primary key decides, and who loses runs again.
type idSource struct {
	mu   sync.Mutex
	last int64
}

// next returns an id greater than every one before it.
func (s *idSource) next(now time.Time) lance.ObjectID {
	ms := max(now.UnixMilli()-idEpoch, 0)
	id := ms<<idRandomBits | rand.Int64N(1<<idRandomBits)
	s.mu.Lock()
	defer s.mu.Unlock()
	// A clock that stands still or goes backward must not give an id twice.
	if id <= s.last {
		id = s.last + 1 + rand.Int64N(64)
	}
	s.last = id
	return lance.ObjectID(id)
}
