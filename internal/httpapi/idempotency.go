package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/auth"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// A request to change something may carry an Idempotency-Key. Its answer is kept for a day, and the same request with the same
// key is answered so again without being carried out. Where the effect is a change of the catalog's state, the answer is kept in the same
// transaction, so that a crash leaves either both or none. Tags are objects in storage: there, and for failures, the answer is kept
// right after. Failures of the server itself (5xx), 429 and 503 are not kept: trying again is the right thing to do. Keys are never part
// of what is kept: an answer that is repeated is given fresh ones.

// idempotencyHeader carries the key.
const idempotencyHeader = "Idempotency-Key"

// keyMax bounds a key, in bytes.
const keyMax = 255

// keyed is one request with a key.
type keyed struct {
	key         string
	fingerprint lance.Digest
	// resent says that the key is no more than the id of a request that is sent again after some failures, of which conflicts are one: there
	// trying again is right.
	resent bool
}

// keyedRequest returns the key of a request that changes something, nil if it has none. Principals do not share keys.
//
// LanceDB's remote SDK sends no key, but repeats requests after failures and timeouts with the same x-request-id, which is unique otherwise (client
// contract, facts 95 and 96). That id together with the request itself is a key. Streams of rows come under a new id each time, and have none.
func keyedRequest(r *http.Request, q called, principal auth.Principal) (*keyed, error) {
	op, key := q.row.op, r.Header.Get(idempotencyHeader)
	if !mutates(op.Name) || op.Body == api.ArrowBody {
		return nil, nil
	}
	resent := key == "" && q.dialect.cloud
	if resent {
		key = r.Header.Get("x-request-id")
	}
	if key == "" {
		return nil, nil
	}
	if len(key) > keyMax {
		return nil, api.Errorf(api.CodeInvalidInput, "%s has %d bytes: at most %d are allowed", idempotencyHeader, len(key), keyMax)
	}
	hash := sha256.New()
	parts := []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery}
	if q.database != "" {
		parts = append(parts, q.database)
	}
	for _, part := range parts {
		hash.Write([]byte(part))
		hash.Write([]byte{0})
	}
	hash.Write(q.body)
	k := &keyed{key: principal.Name + "\x1f" + key, fingerprint: lance.Digest(hash.Sum(nil)), resent: resent}
	if resent {
		k.key += "\x1f" + hex.EncodeToString(k.fingerprint[:]) // another request with this id is none of ours
	}
	return k, nil
}

// performer is how one request is performed: perform makes the response, encode the status and the body that are kept, and finish the
// answer, to which the row's equip adds what is not kept.
type performer struct {
	row     *row
	perform func(context.Context) (any, error)
	encode  func(any) (int, []byte, error)
	finish  func(context.Context, any) error
}

// performKeyed performs an operation once for its key.
func (h *Handler) performKeyed(ctx context.Context, k *keyed, a *answer, p performer) error {
	unlock, err := h.keys.lock(ctx, k.key)
	if err != nil {
		return err
	}
	defer unlock()
	if done, err := h.repeat(ctx, k, a, p); done || err != nil {
		return err
	}
	response, err := p.perform(catalog.WithKey(ctx, &catalog.Keyed{Key: k.key, Fingerprint: k.fingerprint, Encode: p.encode}))
	if errors.Is(err, catalog.ErrAnswered) {
		done, err := h.repeat(ctx, k, a, p)
		if err == nil && !done {
			err = api.Errorf(api.CodeServiceUnavailable, "another request with the same %s was just carried out; try again", idempotencyHeader)
		}
		return err
	}
	var status int
	var body []byte
	if err == nil {
		status, body, err = p.encode(response)
	}
	if err != nil {
		var shown api.Error
		shown, status, _ = failure(err, a.request)
		if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || k.resent && status == http.StatusConflict {
			return err
		}
		if body, _ = marshal(shown); body == nil {
			return err
		}
	}
	kept := h.opts.Catalog.KeepAnswer(context.WithoutCancel(ctx), store.Answer{Key: k.key, Fingerprint: k.fingerprint, Status: status, Body: string(body)})
	if err != nil && errors.Is(kept, catalog.ErrAnswered) {
		// Another server was asked the same, carried it out, and is why it failed here.
		if done, err := h.repeat(ctx, k, a, p); done || err != nil {
			return err
		}
	}
	if errors.Is(kept, catalog.ErrAnswered) {
		kept = nil // by the transaction of the effect
	}
	if err = errors.Join(err, kept); err != nil {
		return err
	}
	return p.finish(ctx, response)
}

// repeat answers from the record, if there is an answer.
func (h *Handler) repeat(ctx context.Context, k *keyed, a *answer, p performer) (bool, error) {
	was, there, err := h.opts.Catalog.Answer(ctx, k.key)
	if err != nil || !there {
		return false, err
	}
	if was.Fingerprint != k.fingerprint {
		return false, api.Errorf(api.CodeInvalidInput, "this %s was used for another request: each request needs a key of its own, and only the same request may repeat one", idempotencyHeader)
	}
	if p.row.equip == nil || was.Status != p.row.op.Success {
		a.status, a.body = was.Status, []byte(was.Body)
		return true, nil
	}
	response := reflect.New(reflect.TypeOf(p.row.op.Response)).Interface()
	if err := json.Unmarshal([]byte(was.Body), response); err != nil {
		return false, fmt.Errorf("read the answer that was kept: %w", err)
	}
	return true, p.finish(ctx, response)
}

// keyLocks lets one request at a time through for each key.
type keyLocks struct {
	mu   sync.Mutex
	held map[string]*keyLock
}

type keyLock struct {
	turn  chan struct{} // holds a value while a request has the key
	users int
}

// lock waits for the key and returns the function that lets go of it. The error, where ctx ends first, is of code ServiceUnavailable:
// nothing has happened yet.
func (l *keyLocks) lock(ctx context.Context, key string) (func(), error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*keyLock{}
	}
	k := l.held[key]
	if k == nil {
		k = &keyLock{turn: make(chan struct{}, 1)}
		l.held[key] = k
	}
	k.users++
	l.mu.Unlock()
	forget := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(l.held, key)
		}
	}
	select {
	case k.turn <- struct{}{}:
		return func() { <-k.turn; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, api.Errorf(api.CodeServiceUnavailable, "another request with the same %s is being carried out; nothing was done; try again", idempotencyHeader)
	}
}
