package objtest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/lancerest/lancerest/internal/objstore"
)

// ErrInjected is the error of calls that Faulty fails without being told with which error. It is none of the contract's, so it
// means that the outcome is unknown.
var ErrInjected = errors.New("injected fault")

// Stage is a moment of a call.
type Stage int

// The stages. A call that fails Before its effect changed nothing; one that fails After it did all it was asked and lost its
// answer. The caller cannot tell the two apart.
const (
	Before Stage = iota + 1
	After
)

// Forever in Match.Times means every call from the Nth on.
const Forever = -1

// Match selects calls. The zero Match is the next call of any kind.
type Match struct {
	Op    Op                    // "" = any
	Key   func(key string) bool // of the key or prefix; nil = any
	Nth   int                   // the first call meant, counting those that match from when the fault was set; 0 = 1
	Times int                   // how many calls in a row; 0 = 1
}

// Chaos is a mode in which any call may fail. What happens to the nth call of an operation on a key depends on Seed alone, not
// on the order in which goroutines arrive.
type Chaos struct {
	Seed          uint64
	Before, After float64 // probabilities that a call fails before, or after, its effect
	Ops           []Op    // which operations may fail; nil = all
}

// Call is one call that Faulty saw.
type Call struct {
	Op     Op
	Key    string
	Effect bool  // the call reached the inner store
	Done   bool  // the caller was answered
	Err    error // what the caller was told
}

// Faulty is a store that does what its inner store does, except for what it is told to fail or to hold. A crash test makes one
// for each server it plays over one shared store: Fail(Match{Times: Forever}, Before, nil) is that server's death.
type Faulty struct {
	intercepted

	mu     sync.Mutex
	faults []*fault
	chaos  Chaos
	seen   map[seenKey]int // calls under chaos
	calls  []Call
}

type seenKey struct {
	op  Op
	key string
}

// fault is one line of the plan.
type fault struct {
	match Match
	stage Stage
	err   error
	gate  *Gate
	seen  int // calls that matched
}

// NewFaulty returns a store that passes everything on to inner.
func NewFaulty(inner objstore.Store) *Faulty {
	f := &Faulty{seen: map[seenKey]int{}}
	f.intercepted = intercepted{inner: inner, around: f.intercept}
	return f
}

// Fail makes the calls that m selects fail at a stage with err; nil means ErrInjected. Where several faults select one call at
// one stage, the one that was set first counts.
func (f *Faulty) Fail(m Match, at Stage, err error) {
	if err == nil {
		err = ErrInjected
	}
	f.add(&fault{match: m, stage: at, err: err})
}

// Hold stops the calls that m selects at a stage until the gate is released or dropped.
func (f *Faulty) Hold(m Match, at Stage) *Gate {
	g := newGate()
	f.add(&fault{match: m, stage: at, gate: g})
	return g
}

func (f *Faulty) add(line *fault) {
	line.match.Nth = max(line.match.Nth, 1)
	if line.match.Times == 0 {
		line.match.Times = 1
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, line)
}

// Randomly turns chaos on; the zero Chaos turns it off. Planned faults come first.
func (f *Faulty) Randomly(c Chaos) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chaos = c
	clear(f.seen)
}

// Heal forgets all faults and turns chaos off. Calls that a gate holds stay held.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults, f.chaos = nil, Chaos{}
}

// Calls returns the calls so far, in the order in which they arrived.
func (f *Faulty) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// plan is what happens to one call: at each stage nothing, an error or a gate.
type plan struct{ before, after *fault }

func (p plan) holds() bool {
	return p.before != nil && p.before.gate != nil || p.after != nil && p.after.gate != nil
}

// intercept runs one call by its plan.
func (f *Faulty) intercept(ctx context.Context, op Op, key string, effect func(context.Context) error) error {
	number, p := f.arrive(op, key)
	body := func(ctx context.Context) error {
		return p.before.pass(func() error {
			f.note(number, func(c *Call) { c.Effect = true })
			err := effect(ctx)
			// A lost answer hides also a refusal.
			return p.after.pass(func() error { return err })
		})
	}
	var err error
	if p.holds() {
		err = detached(ctx, body)
	} else {
		err = body(ctx)
	}
	f.note(number, func(c *Call) { c.Done, c.Err = true, err })
	return err
}

// pass goes on with next unless the fault says otherwise; a nil fault says nothing.
func (f *fault) pass(next func() error) error {
	switch {
	case f == nil:
		return next()
	case f.gate != nil:
		return f.gate.pass(next)
	default:
		return f.err
	}
}

// arrive records a call and makes its plan.
func (f *Faulty) arrive(op Op, key string) (number int, p plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, Call{Op: op, Key: key})
	for _, line := range f.faults {
		if !line.applies(op, key) {
			continue
		}
		switch {
		case line.stage == Before && p.before == nil:
			p.before = line
		case line.stage == After && p.after == nil:
			p.after = line
		}
	}
	if p == (plan{}) {
		p = f.roll(op, key)
	}
	return len(f.calls) - 1, p
}

// applies counts a call and reports whether it is meant.
func (f *fault) applies(op Op, key string) bool {
	if f.match.Op != "" && f.match.Op != op || f.match.Key != nil && !f.match.Key(key) {
		return false
	}
	f.seen++
	return f.seen >= f.match.Nth && (f.match.Times == Forever || f.seen < f.match.Nth+f.match.Times)
}

// roll draws a call's fate under chaos.
func (f *Faulty) roll(op Op, key string) plan {
	if f.chaos.Before+f.chaos.After == 0 || f.chaos.Ops != nil && !slices.Contains(f.chaos.Ops, op) {
		return plan{}
	}
	nth := f.seen[seenKey{op, key}]
	f.seen[seenKey{op, key}]++
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s %d %s", op, nth, key)
	drawn := rand.New(rand.NewPCG(f.chaos.Seed, hash.Sum64())).Float64()
	err := fmt.Errorf("%w: %s %q, call %d under seed %d", ErrInjected, op, key, nth+1, f.chaos.Seed)
	switch {
	case drawn < f.chaos.Before:
		return plan{before: &fault{err: err}}
	case drawn < f.chaos.Before+f.chaos.After:
		return plan{after: &fault{err: err}}
	}
	return plan{}
}

// note changes the record of a call.
func (f *Faulty) note(number int, change func(*Call)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.calls[number])
}
