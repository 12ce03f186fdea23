package sqlstore

import (
	"fmt"
	"time"

	"github.com/lancerest/lancerest/internal/store"
)

const (
	answerByKey = `SELECT key, fingerprint, status, body, created_at FROM answers WHERE key = $1`

	insertAnswer = `
INSERT INTO answers (key, fingerprint, status, body, created_at)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING`

	deleteAnswers = `
DELETE FROM answers
WHERE key IN (SELECT key FROM answers WHERE created_at < $1 ORDER BY created_at, key LIMIT $2)`
)

// Answer implements store.AnswerReader.
func (s reader) Answer(key string) (store.Answer, error) {
	var a store.Answer
	found, err := one(s, answerByKey, []any{key}, func(r row) error {
		a = store.Answer{Key: r.Text(0), Status: int(r.Int(2)), Body: r.Text(3), CreatedAt: decodeTime(r.Int(4))}
		copy(a.Fingerprint[:], r.Bytes(1))
		return nil
	})
	if err != nil {
		return store.Answer{}, fmt.Errorf("look up an answer: %w", err)
	}
	if !found {
		return store.Answer{}, notFound("answer", key)
	}
	return a, nil
}

// InsertAnswer implements store.AnswerWriter.
func (t *tx) InsertAnswer(a store.Answer) error {
	n, err := change(t, insertAnswer, a.Key, a.Fingerprint[:], int64(a.Status), a.Body, encodeTime(a.CreatedAt))
	if err != nil {
		return fmt.Errorf("insert an answer: %w", err)
	}
	if n == 0 {
		return fmt.Errorf("answer of key %q: %w", a.Key, store.ErrExists)
	}
	return nil
}

// DeleteAnswers implements store.AnswerWriter.
func (t *tx) DeleteAnswers(before time.Time, limit int) (int, error) {
	n, err := change(t, deleteAnswers, encodeTime(before), int64(limit))
	if err != nil {
		return 0, fmt.Errorf("delete old answers: %w", err)
	}
	return int(n), nil
}
