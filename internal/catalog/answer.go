package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// AnswersKept is how long answers to requests with an Idempotency-Key are kept.
const AnswersKept = 24 * time.Hour

// ErrAnswered says that another request with the same Idempotency-Key was carried out meanwhile; nothing was done, and its answer is
// on record.
var ErrAnswered = errors.New("answered by another request with the same key")

// Keyed is a request that carries an Idempotency-Key: its answer is kept in the same database transaction as its effect, so
// that neither is ever there without the other.
type Keyed struct {
	// Key names the caller and its key.
	Key string
	// Fingerprint is of the whole request.
	Fingerprint lance.Digest
	// Encode makes the status and the body of a successful answer from the response struct.
	Encode func(response any) (status int, body []byte, err error)
}

type keyedContext struct{}

// WithKey returns a context for a request that carries an Idempotency-Key.
func WithKey(ctx context.Context, k *Keyed) context.Context {
	return context.WithValue(ctx, keyedContext{}, k)
}

// keep writes the response of a keyed request in the transaction of its effect. The error is ErrAnswered where the key has an answer.
func keep(ctx context.Context, tx store.Tx, response any) error {
	k, ok := ctx.Value(keyedContext{}).(*Keyed)
	if !ok {
		return nil
	}
	status, body, err := k.Encode(response)
	if err != nil {
		return err
	}
	err = tx.InsertAnswer(store.Answer{Key: k.Key, Fingerprint: k.Fingerprint, Status: status, Body: string(body), CreatedAt: tx.Now()})
	if errors.Is(err, store.ErrExists) {
		return ErrAnswered
	}
	return err
}

// Answer returns the answer on record for a key, false if there is none. One that ForgetAnswers has not come to yet still counts, however
// old: a key is free again only when its row is gone.
func (c *Catalog) Answer(ctx context.Context, key string) (store.Answer, bool, error) {
	var a store.Answer
	err := c.state.View(ctx, func(r store.Reader) (err error) {
		a, err = r.Answer(key)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return store.Answer{}, false, nil
	}
	return a, err == nil, err
}

// KeepAnswer puts an answer on record that was not kept with an effect: that of a failure, or of an operation whose effect is in
// storage. The error is ErrAnswered where the key has an answer, which stays.
func (c *Catalog) KeepAnswer(ctx context.Context, a store.Answer) error {
	err := c.state.Update(ctx, func(tx store.Tx) error {
		a.CreatedAt = tx.Now()
		return tx.InsertAnswer(a)
	})
	if errors.Is(err, store.ErrExists) {
		return ErrAnswered
	}
	return err
}

// answersChunk is how many old answers one database transaction removes.
const answersChunk = 1000

// ForgetAnswers removes answers that have been kept for long enough.
func (c *Catalog) ForgetAnswers(ctx context.Context) error {
	for {
		var n int
		err := c.state.Store.Update(ctx, func(tx store.Tx) (err error) {
			n, err = tx.DeleteAnswers(tx.Now().Add(-AnswersKept), answersChunk)
			return err
		})
		if err != nil || n < answersChunk {
			return err
		}
	}
}
