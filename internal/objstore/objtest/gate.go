package objtest

import (
	"context"
	"sync"
)

// Gate holds calls at one stage until a test lets them go. Make one with Faulty.Hold.
//
// A caller whose context ends while its call is held is answered at once, but the call stays in flight, as one does that was sent
// before its sender died: Release still lets its effect happen, Drop does not.
type Gate struct {
	reached chan struct{} // closed when the first call is held
	opened  chan struct{} // closed by Release and Drop
	held    sync.WaitGroup

	mu      sync.Mutex
	any     bool // a call was held
	open    bool
	dropped bool
}

func newGate() *Gate { return &Gate{reached: make(chan struct{}), opened: make(chan struct{})} }

// Reached is closed as soon as a call is held.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Release lets the held calls go on, and those still to come pass, and returns when the effects of the held ones have happened.
// Calling it again, or after Drop, changes nothing.
func (g *Gate) Release() { g.end(false) }

// Drop loses the held calls and those still to come: held before their effect they never have it, held after it their answers
// are lost. Their callers get ErrInjected. Calling it again, or after Release, changes nothing.
func (g *Gate) Drop() { g.end(true) }

func (g *Gate) end(drop bool) {
	g.mu.Lock()
	if !g.open {
		g.open, g.dropped = true, drop
		close(g.opened)
	}
	g.mu.Unlock()
	g.held.Wait()
}

// pass holds the calling goroutine until the gate opens, then runs next unless the call was dropped.
func (g *Gate) pass(next func() error) error {
	if g.enter() {
		defer g.held.Done()
		<-g.opened
	}
	// Written before opened was closed, or seen open by enter.
	if g.dropped {
		return ErrInjected
	}
	return next()
}

// enter reports whether the call is to wait, and counts it if so.
func (g *Gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		return false
	}
	g.held.Add(1)
	if !g.any {
		g.any = true
		close(g.reached)
	}
	return true
}

// detached runs body in a goroutine of its own with a context that does not end, and returns what it returns, or the error of
// ctx if that ends first. If it has ended already, body does not run: the call was never sent.
func detached(ctx context.Context, body func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	answer := make(chan error, 1)
	go func() { answer <- body(context.WithoutCancel(ctx)) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
