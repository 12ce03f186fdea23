package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
)

// Mode is what the clients of a root are given.
type Mode string

// The modes.
const (
	None   Mode = "none"   // nothing: clients know where storage is and have keys of their own
	Client Mode = "client" // where storage is and how it is spoken to, without keys
	Static Mode = "static" // besides, the operator's own keys, which reach whatever the operator reaches
	Vend   Mode = "vend"   // besides, temporary keys that reach the table's directory and nothing else
)

// ParseMode reads a mode as people write it.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case None, Client, Static, Vend:
		return m, nil
	}
	return "", fmt.Errorf("credentials %q: there are none, static, vend and client", text)
}

// The names under which Lance's clients look for when to come again. Values are strings of milliseconds.
const (
	expiresKey = "expires_at_millis"     // since 1970
	offsetKey  = "refresh_offset_millis" // before the expiry
)

// Options say what the clients of one root are given. The zero value is mode None.
type Options struct {
	Mode Mode
	// Settings say where storage is and how it is spoken to, under Lance's names; no keys.
	Settings map[string]string
	// Own returns the operator's own keys (mode Static).
	Own func(context.Context) (Keys, error)
	// Vendor makes temporary keys (mode Vend).
	Vendor Vendor
	// Grant is what vended keys allow (default ReadWrite).
	Grant Grant
	// MinLife is how long keys must live at least when they are handed out (default 5 minutes).
	MinLife time.Duration
	// RefreshOffset is how long before their end clients come for new keys (default half of MinLife). It must be below MinLife: a
	// client that is given keys with less to live asks again for every request that it makes.
	RefreshOffset time.Duration
	// Timeout bounds the making of keys (default 30 s), and Parallel how many are made at a time (default 32).
	Timeout  time.Duration
	Parallel int64
	// MaxKept bounds how many directories' keys are kept (default 10,000).
	MaxKept int
}

// DefaultMinLife is the least life of keys that are handed out, where nothing else is said.
const DefaultMinLife = 5 * time.Minute

// Access gives the clients of one root what they need. It is safe for concurrent use; nil is mode None.
type Access struct {
	opts Options
	kept *keeper
}

// New checks options and returns what acts on them.
func New(opts Options) (*Access, error) {
	setDefault(&opts.Mode, None)
	setDefault(&opts.Grant, ReadWrite)
	setDefault(&opts.MinLife, DefaultMinLife)
	setDefault(&opts.RefreshOffset, opts.MinLife/2)
	setDefault(&opts.Timeout, 30*time.Second)
	setDefault(&opts.Parallel, 32)
	setDefault(&opts.MaxKept, 10_000)
	switch {
	case opts.MinLife < 0 || opts.RefreshOffset < 0 || opts.Timeout < 0 || opts.Parallel < 0 || opts.MaxKept < 0:
		return nil, errors.New("times and bounds of credentials must be above 0")
	case opts.RefreshOffset >= opts.MinLife:
		return nil, fmt.Errorf("clients are to come for new keys %s before their end, and may be given keys that live only %s: the first must be the shorter", opts.RefreshOffset, opts.MinLife)
	case opts.Mode == Static && opts.Own == nil:
		return nil, errors.New("credentials static: there are no keys to give")
	case opts.Mode == Vend && opts.Vendor == nil:
		return nil, errors.New("credentials vend: nobody makes keys for this storage")
	}
	return &Access{opts: opts, kept: newKeeper(opts)}, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Mode is what clients are given.
func (a *Access) Mode() Mode {
	if a == nil {
		return None
	}
	return a.opts.Mode
}

// Given are storage options for one client. Printing them does not show them.
type Given struct {
	// Values are nil where clients are to be given none.
	Values map[string]string
	// Secret reports whether there are keys among them.
	Secret bool
}

// hidden is what a reader of a log sees of options.
func (g Given) hidden() string { return fmt.Sprintf("%d storage options (not shown)", len(g.Values)) }

// Format prints how many options there are, and not the options, for every verb.
func (g Given) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, g.hidden()) }

// MarshalText does the same for encoders.
func (g Given) MarshalText() ([]byte, error) { return []byte(g.hidden()), nil }

// WithoutKeys returns the options of a client that is to have no keys.
func (a *Access) WithoutKeys() Given {
	if a.Mode() == None {
		return Given{}
	}
	return Given{Values: maps.Clone(a.opts.Settings)}
}

// WithKeys returns the options of a client that may have what keys the mode gives. Keys of mode Vend are kept and handed out again as
// long as they live for MinLife; any number of callers that want keys for one directory wait for one request to the provider. The
// errors are those of Vendor; a context that ends gives its own, and the others still get their keys.
func (a *Access) WithKeys(ctx context.Context, dir lance.Location) (Given, error) {
	given := a.WithoutKeys()
	var keys Keys
	var err error
	switch a.Mode() {
	case Static:
		keys, err = a.opts.Own(ctx)
		// Whoever has them renews them in its own time. A client that is told to come again at once would do so for every request.
		if left := time.Until(keys.Expires); err == nil && !keys.Expires.IsZero() && left <= a.opts.RefreshOffset {
			err = fmt.Errorf("%w: the operator's own keys end in %s, and new ones are not there yet", ErrUnavailable, left.Round(time.Second))
		}
	case Vend:
		keys, err = a.kept.keys(ctx, dir)
	default:
		return given, nil
	}
	if err != nil {
		return Given{}, err
	}
	if given.Values == nil {
		given.Values = map[string]string{}
	}
	maps.Copy(given.Values, keys.Values)
	if !keys.Expires.IsZero() {
		given.Values[expiresKey] = strconv.FormatInt(keys.Expires.UnixMilli(), 10)
		given.Values[offsetKey] = strconv.FormatInt(a.opts.RefreshOffset.Milliseconds(), 10)
	}
	given.Secret = true
	return given, nil
}
