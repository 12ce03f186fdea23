package sqlstore

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lancerest/lancerest/internal/lance"
)

const (
	// idEpoch is where the clock of ids begins, in milliseconds since 1970: 2025-01-01. 41 bits reach to the year 2094.
	idEpoch    = 1_735_689_600_000
	idTimeBits = 41
	// idChanceBits are drawn by chance. They keep replicas that share no memory apart within one millisecond.
	idChanceBits = 22
	// idSpreadBits of them stand before the time in a source that spreads. Tables that are made together and written to together should hardly
	// ever be neighbours, for each keeps its place.
	idSpreadBits = 16
	// transactionSpreadBits are fewer: each transaction is written to once, and their index grows for ever.
	transactionSpreadBits = 10
)

// idSource draws ids that never repeat within a process. Those of two processes differ by chance only: the primary key decides, and who loses
// runs again.
//
// Ids grow with time, so that inserts append to the index, as is best for one writer. Where many transactions write at once to a database that
// finds conflicts by pages of an index, they would all meet at its end: there the ids are spread over many places, at each of which they grow.
type idSource struct {
	spread bool
	mu     sync.Mutex
	last   map[int64]int64 // by place
}

// next returns an id that it has not returned before.
func (s *idSource) next(now time.Time) lance.ObjectID {
	ms := max(now.UnixMilli()-idEpoch, 0) & (1<<idTimeBits - 1)
	place, chance := int64(0), idChanceBits
	if s.spread {
		place, chance = rand.Int64N(1<<idSpreadBits), idChanceBits-idSpreadBits
	}
	id := place<<(idTimeBits+chance) | ms<<chance | rand.Int64N(1<<chance)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[int64]int64{}
	}
	// A clock that stands still or goes backward must not give an id twice.
	if last := s.last[place]; id <= last {
		id = last + 1 + rand.Int64N(4)
	}
	s.last[place] = id
	return lance.ObjectID(id)
}

// transaction returns a new id of a transaction: a UUID that grows with time (version 7), or one of our own form (version 8) that begins
// with the bits that spread.
func (s *idSource) transaction(now time.Time) lance.TransactionID {
	if !s.spread {
		return lance.TransactionID(uuid.Must(uuid.NewV7()).String())
	}
	id := uuid.New()
	const timeBits = 48 - transactionSpreadBits // enough for eight years; then the order begins anew
	head := binary.BigEndian.Uint64(id[:])
	head = head>>(64-transactionSpreadBits)<<(64-transactionSpreadBits) | uint64(now.UnixMilli())&(1<<timeBits-1)<<16 | head&0xffff
	binary.BigEndian.PutUint64(id[:], head)
	id[6] = id[6]&0x0f | 0x80
	return lance.TransactionID(id.String())
}
