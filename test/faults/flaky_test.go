//go:build unix

package faults_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/lancerest/lancerest/internal/objstore/s3/s3test"
)

// TestKillOnFlakyStorage is TestKillUnderLoad before a storage that throttles, fails, and loses requests and answers, and where what a dead
// server had sent takes effect after the next one has begun.
func TestKillOnFlakyStorage(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed of the faults: %d", seed)
	f := &flaky{rnd: rand.New(rand.NewPCG(seed, 1)), done: map[string]int{}}
	front := onS3(t).Front(t)
	front.Always(f.step)
	killUnderLoad(t, onBucket(t, front.URL), func() {})
	t.Logf("what became of requests: %v", f.done)
	for _, fate := range []string{"passed", "throttled", "failed", "lost", "answer lost", "late"} {
		if f.done[fate] == 0 {
			t.Errorf("no request was %s: the test shows nothing of that", fate)
		}
	}
}

// flaky decides by chance what becomes of each request.
type flaky struct {
	mu   sync.Mutex
	rnd  *rand.Rand
	done map[string]int
}

func (f *flaky) step(w http.ResponseWriter, r *http.Request, inner http.Handler) {
	fate, next := f.fate()
	f.mu.Lock()
	f.done[fate]++
	f.mu.Unlock()
	next(w, r, inner)
}

func (f *flaky) fate() (string, s3test.Step) {
	f.mu.Lock()
	drawn, delay := f.rnd.Float64(), time.Duration(f.rnd.IntN(1000))*time.Millisecond
	f.mu.Unlock()
	switch {
	case drawn < 0.03:
		return "throttled", s3test.Says(503, "SlowDown")
	case drawn < 0.06:
		return "failed", s3test.Says(500, "InternalError")
	case drawn < 0.09:
		return "lost", s3test.Loses
	case drawn < 0.12:
		return "answer lost", s3test.LosesAnswer
	case drawn < 0.15:
		return "late", s3test.Late(delay)
	}
	return "passed", s3test.Pass
}
