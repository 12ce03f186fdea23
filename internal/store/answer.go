package store

import (
	"time"

	"github.com/lancerest/lancerest/internal/lance"
)

// Answer is what a request that carried an Idempotency-Key was answered, so that the same request can be answered so again.
type Answer struct {
	Key string // the caller and its key
	// Fingerprint is of the request: another one with the same key is a mistake.
	Fingerprint lance.Digest
	Status      int
	Body        string
	CreatedAt   time.Time
}

// AnswerReader looks at answers.
type AnswerReader interface {
	// Answer returns the answer that was kept under a key. ErrNotFound if there is none.
	Answer(key string) (Answer, error)
}

// AnswerWriter changes answers.
type AnswerWriter interface {
	// InsertAnswer keeps an answer. ErrExists if its key has one.
	InsertAnswer(a Answer) error
	// DeleteAnswers removes up to limit answers that were kept before the given time, and returns how many it removed.
	DeleteAnswers(before time.Time, limit int) (int, error)
}
