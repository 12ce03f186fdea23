package storetest

import (
	"testing"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

func (s suite) answers(t *testing.T) {
	begin := time.UnixMilli(1_750_000_000_000).UTC()
	answer := func(key string, age time.Duration) store.Answer {
		return store.Answer{Key: key, Fingerprint: lance.Digest{1, 2}, Status: 409, Body: `{"code":14}`, CreatedAt: begin.Add(-age)}
	}
	s.run(t, "InsertAnswer/gives back what was kept", func(h *harness) {
		h.update(func(tx store.Tx) error { return tx.InsertAnswer(answer("a\x1fé", 0)) })
		got := read(h, func(r store.Reader) (store.Answer, error) { return r.Answer("a\x1fé") })
		h.equal("answer", got, answer("a\x1fé", 0))
	})
	s.run(t, "InsertAnswer/ErrExists", func(h *harness) {
		h.update(func(tx store.Tx) error { return tx.InsertAnswer(answer("a", 0)) })
		other := answer("a", 0)
		other.Status = 200
		h.refuse(store.ErrExists, func(tx store.Tx) error { return tx.InsertAnswer(other) })
		h.equal("answer", read(h, func(r store.Reader) (store.Answer, error) { return r.Answer("a") }), answer("a", 0))
	})
	s.run(t, "Answer/ErrNotFound", func(h *harness) {
		h.refuse(store.ErrNotFound, func(tx store.Tx) error {
			_, err := tx.Answer("A")
			return err
		})
	})
	s.run(t, "DeleteAnswers/the oldest before a time, up to a limit", func(h *harness) {
		for key, age := range map[string]time.Duration{"new": 0, "old": time.Hour, "older": 2 * time.Hour, "oldest": 3 * time.Hour} {
			h.update(func(tx store.Tx) error { return tx.InsertAnswer(answer(key, age)) })
		}
		remove := func(limit int) int {
			return wrote(h, func(tx store.Tx) (int, error) { return tx.DeleteAnswers(begin, limit) })
		}
		h.equal("first", remove(2), 2)
		h.equal("old stays", read(h, func(r store.Reader) (store.Answer, error) { return r.Answer("old") }).Status, 409)
		h.equal("second", remove(2), 1)
		h.equal("third", remove(2), 0)
		h.equal("new stays", read(h, func(r store.Reader) (store.Answer, error) { return r.Answer("new") }).Status, 409)
	})
}
