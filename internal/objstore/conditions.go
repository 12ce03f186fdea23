package objstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
)

// Conditions are those that a server judges in one step with the effect, as the contract wants it.
type Conditions struct {
	Absent  bool // of PutIfAbsent
	Replace bool // of PutIf
	Delete  bool // of DeleteIf
}

// All reports whether every condition is judged.
func (c Conditions) All() bool { return c == Conditions{Absent: true, Replace: true, Delete: true} }

// Missing names the conditions that are not judged, in words.
func (c Conditions) Missing() string {
	var missing []string
	for _, one := range []struct {
		judged bool
		what   string
	}{{c.Absent, "putting an object only where there is none"}, {c.Replace, "replacing an object only if it is the one that was read"}, {c.Delete, "removing an object only if it is the one that was read"}} {
		if !one.judged {
			missing = append(missing, one.what)
		}
	}
	return strings.Join(missing, ", and ")
}

// Plain is implemented by stores whose servers may not judge conditions.
type Plain interface {
	Store
	// Put makes data readable under key, whole or not at all, and durable before it returns, whatever was there.
	Put(ctx context.Context, key string, data []byte) (Info, error)
}

// Try finds out which conditions a server judges, on objects of its own right below prefix (ending in "/"), which it removes. Servers exist
// that answer 200 and overwrite, or remove. The error is that of the store where it cannot be told.
func Try(ctx context.Context, s Store, prefix string) (Conditions, error) {
	var c Conditions
	var err error
	for range trials {
		t := trial{store: s, key: prefix + ".lancerest-trial-" + rand.Text()}
		c, err = t.run(ctx)
		// Also what a server left behind that ignores conditions.
		if removed := s.Delete(context.WithoutCancel(ctx), t.key); err == nil {
			err = removed
		}
		if !errors.Is(err, ErrExists) && !errors.Is(err, ErrChanged) {
			break
		}
	}
	if err != nil {
		return Conditions{}, fmt.Errorf("try which conditions the storage judges: %w", err)
	}
	return c, nil
}

// trials is how often it is tried: a request that was lost and takes effect late can make one come out otherwise than it should.
const trials = 3

// trial is one run of Try.
type trial struct {
	store Store
	key   string
}

func (t trial) run(ctx context.Context) (Conditions, error) {
	var c Conditions
	// An ETag of the object that was there before: one made up might be refused without asking the server.
	stale, err := t.create(ctx, "zeroth")
	if err == nil {
		err = t.store.Delete(ctx, t.key)
	}
	if err != nil {
		return c, err
	}
	first, err := t.create(ctx, "first")
	if err != nil {
		return c, err
	}
	if c.Absent, err = refuses(ErrExists, func() error { _, err := t.store.PutIfAbsent(ctx, t.key, []byte("second")); return err }); err != nil {
		return c, err
	}
	if c.Replace, err = refuses(ErrChanged, func() error { _, err := t.store.PutIf(ctx, t.key, stale.ETag, []byte("third")); return err }); err != nil {
		return c, err
	}
	if c.Delete, err = refuses(ErrChanged, func() error { return t.store.DeleteIf(ctx, t.key, stale.ETag) }); err != nil {
		return c, err
	}
	return c, t.confirm(ctx, &c, first)
}

// create puts the object where there is none.
func (t trial) create(ctx context.Context, data string) (Info, error) {
	info, err := t.store.PutIfAbsent(ctx, t.key, []byte(data))
	if plain, ok := t.store.(Plain); ok && errors.Is(err, ErrUnsupported) {
		info, err = plain.Put(ctx, t.key, []byte(data))
	}
	return info, err
}

// refuses reports whether a call whose condition does not hold is answered so.
func refuses(want error, call func() error) (bool, error) {
	err := call()
	switch {
	case errors.Is(err, want):
		return true, nil
	case err == nil, errors.Is(err, ErrUnsupported):
		return false, nil
	}
	return false, err
}

// confirm sees that what was refused had no effect, and that a condition that holds is no obstacle.
func (t trial) confirm(ctx context.Context, c *Conditions, first Info) error {
	data, now, err := t.store.Get(ctx, t.key, 100)
	switch {
	case errors.Is(err, ErrNotFound):
		c.Delete = false
		return nil
	case err != nil:
		return err
	case string(data) == "second":
		c.Absent = false
	case string(data) == "third":
		c.Replace = false
	case now.ETag != first.ETag:
		return fmt.Errorf("an object put with ETag %s is read with %s", first.ETag, now.ETag)
	}
	if c.Replace {
		if now, err = t.store.PutIf(ctx, t.key, now.ETag, []byte("fourth")); err != nil {
			return err
		}
	}
	if !c.Delete {
		return nil
	}
	err = t.store.DeleteIf(ctx, t.key, now.ETag)
	if errors.Is(err, ErrChanged) {
		// It may have been removed by a request whose answer was lost.
		if _, headErr := t.store.Head(ctx, t.key); errors.Is(headErr, ErrNotFound) {
			return nil
		}
	}
	return err
}
