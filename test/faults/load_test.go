//go:build unix

package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
)

// pair is two tables that are only ever committed to together, so that they always end in the same version.
type pair struct {
	tables [2]table

	mu       sync.Mutex
	answered map[int64][]string                     // the marks of every version that was acknowledged
	open     []*api.BatchCreateTableVersionsRequest // requests that were not answered
	seed     uint64
}

const (
	pairs   = 3
	writers = 2 // on each pair
)

func (x *pair) acknowledged(t *testing.T, req *api.BatchCreateTableVersionsRequest) {
	x.mu.Lock()
	defer x.mu.Unlock()
	v := req.Entries[0].Version
	if before, twice := x.answered[v]; twice && before[0] != marks(req)[0] {
		t.Errorf("version %d of %s was given to two writers", v, x.tables[0].name)
	}
	x.answered[v] = marks(req)
}

// write commits the next version again and again until the server is gone. What is not answered is kept for later.
func (x *pair) write(t *testing.T, p *process, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		head, _, err := latest(p, x.tables[0])
		if err != nil {
			return
		}
		req, err := commitOf(head+1, x.tables[:]...)
		if err != nil {
			t.Error(err)
			return
		}
		_, err = p.BatchCreateTableVersions(context.Background(), req)
		switch {
		case err == nil:
			x.acknowledged(t, req)
		case api.CodeOf(err) == api.CodeConcurrentModification:
		default:
			x.mu.Lock()
			x.open = append(x.open, req)
			x.mu.Unlock()
			return
		}
	}
}

// compare reads one table and then the other until the server is gone: the second is never behind the first.
func (x *pair) compare(t *testing.T, p *process, first int, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		a, _, err := latest(p, x.tables[first])
		if err != nil {
			return
		}
		b, _, err := latest(p, x.tables[1-first])
		if err != nil {
			return
		}
		if b < a {
			t.Errorf("half of a batch was seen: %s at %d and then %s at %d", x.tables[first].name, a, x.tables[1-first].name, b)
			return
		}
	}
}

// settle sends what was not answered once more to the next server, and compares the pair with what was acknowledged.
func (x *pair) settle(t *testing.T, p *process) {
	t.Helper()
	for _, req := range x.open {
		_, err := p.BatchCreateTableVersions(context.Background(), req)
		switch {
		case err == nil:
			x.acknowledged(t, req)
		case api.CodeOf(err) != api.CodeConcurrentModification:
			t.Errorf("a batch that was not answered, sent again: %v", err)
		}
	}
	x.open = nil
	n := consecutive(t, p, x.tables[0])
	if other := consecutive(t, p, x.tables[1]); other != n {
		t.Errorf("%s ends at %d and %s at %d", x.tables[0].name, n, x.tables[1].name, other)
	}
	for v, want := range x.answered {
		for i, tb := range x.tables {
			if got := tb.mark(v); got != want[i] || v > n {
				t.Errorf("version %d of %s was acknowledged with mark %s; %d versions are there, and it has mark %q", v, tb.name, want[i], n, got)
			}
		}
	}
}

// load runs writers and readers on all pairs against a server until end returns, and for as long after it as answers come.
func load(t *testing.T, p *process, all []*pair, end func()) {
	t.Helper()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, x := range all {
		for range writers {
			wg.Go(func() { x.write(t, p, stop) })
		}
		wg.Go(func() { x.compare(t, p, int(x.seed%2), stop) })
	}
	end()
	close(stop)
	wg.Wait()
}

func newPairs(t *testing.T, p *process) []*pair {
	t.Helper()
	all := make([]*pair, pairs)
	for i := range all {
		all[i] = &pair{answered: map[int64][]string{}, seed: uint64(i)}
		for k := range all[i].tables {
			all[i].tables[k] = declare(t, p, fmt.Sprintf("p%d_%d", i, k))
		}
	}
	return all
}

// soak is how long to go on killing: a few rounds, or the duration in LANCEREST_SOAK (such as "2h").
func soak(t *testing.T) (rounds int, until time.Time) {
	t.Helper()
	text := os.Getenv("LANCEREST_SOAK")
	if text == "" {
		return 6, time.Time{}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("LANCEREST_SOAK: %v", err)
	}
	return 0, time.Now().Add(d)
}

// TestKillUnderLoad kills the server at random moments under load, again and again on the same data.
func TestKillUnderLoad(t *testing.T) {
	t.Parallel()
	eachState(t, func(t *testing.T, where place) { killUnderLoad(t, where, func() {}) })
}

// killUnderLoad kills servers, and each time lets something happen to what is left before the next one starts.
func killUnderLoad(t *testing.T, where place, then func()) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	p := start(t, where.data, where.flags()...)
	all := newPairs(t, p)
	rounds, until := soak(t)
	n := 0
	for ; n < rounds || time.Now().Before(until); n++ {
		load(t, p, all, func() {
			time.Sleep(time.Duration(20+rnd.IntN(300)) * time.Millisecond) // a moment by chance, whatever is under way
			p.kill(t)
		})
		then()
		p = start(t, where.data, where.flags()...)
		for _, x := range all {
			x.settle(t, p)
		}
		if t.Failed() {
			t.Fatalf("in round %d", n)
		}
	}
	p.stop(t)
	clean(t, where.data, where.flags()...)
	total := 0
	for _, x := range all {
		total += len(x.answered)
	}
	if total == 0 {
		t.Error("nothing was acknowledged in any round: the test shows nothing")
	}
	t.Logf("the server was killed %d times, %d batches were acknowledged", n, total)
}

// TestStopUnderLoad asks the server to stop under load: every request that it took is answered with its true outcome, and nothing is
// left for the next start.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	eachState(t, func(t *testing.T, where place) {
		p := start(t, where.data, where.flags()...)
		all := newPairs(t, p)
		load(t, p, all, func() {
			time.Sleep(150 * time.Millisecond) // load, for a while
			p.stop(t)
		})
		clean(t, where.data, where.flags()...)
		p = start(t, where.data, where.flags()...)
		for _, x := range all {
			x.settle(t, p)
		}
		p.stop(t)
	})
}
