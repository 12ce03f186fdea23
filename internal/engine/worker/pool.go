package worker

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// member is one worker that can be asked.
type member struct {
	client   *http.Client
	base     string // what stands before an operation's name in the URL
	secret   string
	running  atomic.Int64  // requests at work in it
	idle     chan struct{} // gets a value whenever a request ends
	retiring atomic.Bool
	missed   atomic.Int64 // when it last accepted no connection, in nanoseconds since 1970
}

// avoidTime is how long a worker that accepted no connection is asked only where no other one is there.
const avoidTime = 5 * time.Second

// avoided reports whether a worker accepted no connection just now.
func (m *member) avoided() bool { return time.Since(time.Unix(0, m.missed.Load())) < avoidTime }

// connectTime bounds how long a worker may take to accept a connection.
const connectTime = 10 * time.Second

// newMember returns the worker that listens on an address of a network, as package net has them.
func newMember(network, address, secret string) *member {
	dialer := &net.Dialer{Timeout: connectTime}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &watchedConn{Conn: c, closed: make(chan struct{})}, nil
		},
		MaxIdleConnsPerHost: 64,
		DisableCompression:  true,
		WriteBufferSize:     32 << 10, // rows come in larger pieces, which go past it
		ReadBufferSize:      256 << 10,
	}
	return &member{client: &http.Client{Transport: transport}, base: "http://worker/", secret: secret, idle: make(chan struct{}, 1)}
}

// newRemote returns a worker that somebody else runs.
func newRemote(address, secret string) *member {
	if path, unix := strings.CutPrefix(address, "unix:"); unix {
		return newMember("unix", path, secret)
	}
	return newMember("tcp", address, secret)
}

// leave ends a request.
func (m *member) leave() {
	m.running.Add(-1)
	select {
	case m.idle <- struct{}{}:
	default:
	}
}

// close ends the connections that rest.
func (m *member) close() { m.client.CloseIdleConnections() }

// pool is the workers that can be asked.
type pool struct {
	mu      sync.Mutex
	members []*member
	refusal error         // what requests are told at once while there is no member, nil where they wait for one
	changed chan struct{} // closed when a member is added, and when the refusal changes
}

func newPool() *pool { return &pool{changed: make(chan struct{})} }

func (p *pool) add(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members, p.refusal = append(p.members, m), nil
	p.tell()
}

// refuse has requests refused while there is no member, nil that they wait.
func (p *pool) refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusal = err
	p.tell()
}

// tell wakes whoever waits. The caller holds the lock.
func (p *pool) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// refused returns what requests are told at once, nil where there is a member or they wait for one.
func (p *pool) refused() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.members) > 0 {
		return nil
	}
	return p.refusal
}

func (p *pool) remove(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.members {
		if other == m {
			p.members = append(p.members[:i], p.members[i+1:]...)
			return
		}
	}
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		m.close()
	}
	p.members = nil
}

// pick returns the worker with the fewest requests, of those that are not avoided if there are any, entering one more, and waits for one where there is none. The error is errNoWorker
// where ctx ends or the time is over before, or what requests are told instead of waiting.
func (p *pool) pick(ctx context.Context, patience time.Duration) (*member, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		m, changed := p.least()
		if m != nil {
			return m, nil
		}
		if err := p.refused(); err != nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil, errNoWorker
		case <-ctx.Done():
			return nil, errNoWorker
		}
	}
}

// before reports whether a request is better given to m than to another one.
func (m *member) before(other *member) bool {
	if m.avoided() != other.avoided() {
		return other.avoided()
	}
	return m.running.Load() < other.running.Load()
}

func (p *pool) least() (*member, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *member
	for _, m := range p.members {
		if !m.retiring.Load() && (best == nil || m.before(best)) {
			best = m
		}
	}
	if best != nil {
		best.running.Add(1)
	}
	return best, p.changed
}
