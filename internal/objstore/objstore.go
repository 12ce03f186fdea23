package objstore

import (
	"context"
	"errors"
	"iter"
	"time"
)

// The errors of the contract. Methods wrap them; test with errors.Is. Any other error means that the outcome is unknown:
// a storage outage is never reported as ErrNotFound.
var (
	// ErrNotFound: absence was proven.
	ErrNotFound = errors.New("object not found")
	// ErrExists: the name is taken; the object there was not touched.
	ErrExists = errors.New("object exists")
	// ErrChanged: the object is not the one that the condition names (or is gone); nothing was removed.
	ErrChanged = errors.New("object changed")
	// ErrDenied: the store refused the caller.
	ErrDenied = errors.New("access denied")
	// ErrTooLarge: the object is larger than the caller's limit.
	ErrTooLarge = errors.New("object too large")
	// ErrInvalidKey: the key is not of the contract's form.
	ErrInvalidKey = errors.New("invalid key")
	// ErrUnsupported: the store does not know the condition that was asked of it; nothing was done.
	ErrUnsupported = errors.New("not supported by the store")
)

// Info describes an object. Get, Head, List and the puts describe one object alike.
type Info struct {
	Key      string
	Size     int64     // bytes
	ETag     string    // quotes included, as the store's own clients see it; objects of one key with different bytes never share it
	Modified time.Time // zero from a put where the store's answer does not tell it
}

// Store is one storage. All methods are safe for concurrent use. Bytes given to a put are not kept. A context that has ended when
// a method is called stops it before any effect, with the context's error.
type Store interface {
	// Get returns an object whole, in bytes of the caller's own. ErrNotFound; ErrTooLarge where it has more than limit bytes
	// (limit > 0).
	Get(ctx context.Context, key string, limit int64) ([]byte, Info, error)
	// Head describes an object. ErrNotFound.
	Head(ctx context.Context, key string) (Info, error)
	// PutIfAbsent makes data readable under key, whole or not at all, and durable before it returns. ErrExists if the name is
	// taken, whatever it holds: nothing is ever overwritten. Of any number of parallel calls for one key exactly one succeeds. An
	// object is durable also when ErrExists is answered because of it, so that a helper may go on (C6). After any other error the
	// object may be there or not, whole in either case.
	PutIfAbsent(ctx context.Context, key string, data []byte) (Info, error)
	// PutIf replaces the object only if it still is the one with the given ETag, whole or not at all, durably, and in one step as
	// seen by every other caller. ErrChanged otherwise. It serves tags, never manifests.
	PutIf(ctx context.Context, key, etag string, data []byte) (Info, error)
	// DeleteIf removes the object only if it still is the one with the given ETag, durably, and in one step as seen by every other
	// caller of DeleteIf and PutIfAbsent. ErrChanged otherwise.
	DeleteIf(ctx context.Context, key, etag string) error
	// Delete removes an object; one that is absent is no error. It is for names that only their owner writes (staged
	// manifests) and for purges.
	Delete(ctx context.Context, key string) error
	// List yields the objects whose keys begin with prefix (a directory, ending in "/"), at any depth, in bytewise order of
	// their keys, after the given key ("" = from the start). A prefix with no objects yields nothing. An error is the last that
	// is yielded. Objects that come or go meanwhile may be in it or not.
	List(ctx context.Context, prefix, after string) iter.Seq2[Info, error]
	// DeleteTree removes everything under prefix (ending in "/"), a bounded number of objects at a time, until nothing is
	// left or ctx ends. It returns how many objects it removed, also with an error. Called again it goes on where it stopped.
	DeleteTree(ctx context.Context, prefix string) (int, error)
}

// Lazy is a Store that can put an object much faster than it can make it durable. What its caller needs durable meanwhile the caller
// keeps elsewhere, until Sync returns.
type Lazy interface {
	Store
	// PutSoon is PutIfAbsent without its promise of durability: until a later Sync has returned, a power failure may take the object
	// away, or leave something empty or cut short under its name. The death of this process may not. ErrExists says nothing about
	// the durability of what is there, but Sync covers that too. errors.ErrUnsupported: Sync cannot cover this key; nothing was done.
	PutSoon(ctx context.Context, key string, data []byte) (Info, error)
	// Sync makes every object durable for which a PutSoon of this Store returned, nil or ErrExists, before Sync was called. After an
	// error any of them may be lost, and a later Sync would not notice: put them with Restore.
	Sync(ctx context.Context) error
	// Restore puts data under key in place of whatever is there, whole or not at all, durably. It is for objects that were damaged.
	Restore(ctx context.Context, key string, data []byte) (Info, error)
}

// Linked is a Store in which one object can have several keys, as files have through symbolic links.
type Linked interface {
	Store
	// Real returns the key under which what a key names really lies, with every link on its way followed. What is not there yet is left as
	// it stands in the key.
	Real(ctx context.Context, key string) (string, error)
}
