package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lancerest/lancerest/api"
)

// Limits bound what requests may use. Zero values mean the defaults.
type Limits struct {
	Body        int64         // bytes of a JSON body, before and after decompression (default 32 MiB)
	Bodies      int64         // bytes of all JSON bodies that are held at a time (default 512 MiB)
	BodyTime    time.Duration // for a JSON body to arrive (default 1 minute)
	ReadTime    time.Duration // for an operation that changes nothing (default 1 minute)
	WriteTime   time.Duration // for one that does, up to the point from which it cannot be undone (default 2 minutes; C11)
	Concurrent  int           // operations at a time (default 512)
	QueueLength int           // operations that wait for their turn before others are refused with 503 (default 4,096)
	QueueTime   time.Duration // for one to wait before it is refused with 503 (default 30 s)
}

// DefaultLimits returns the limits of a handler that is given none.
func DefaultLimits() Limits {
	return Limits{Body: 32 << 20, Bodies: 512 << 20, QueueTime: 30 * time.Second, BodyTime: time.Minute, ReadTime: time.Minute, WriteTime: 2 * time.Minute, Concurrent: 512, QueueLength: 4096}
}

func (l *Limits) setDefaults() {
	d := DefaultLimits()
	l.Body = cmp.Or(l.Body, d.Body)
	l.Bodies = cmp.Or(l.Bodies, d.Bodies)
	l.QueueTime = cmp.Or(l.QueueTime, d.QueueTime)
	l.BodyTime = cmp.Or(l.BodyTime, d.BodyTime)
	l.ReadTime = cmp.Or(l.ReadTime, d.ReadTime)
	l.WriteTime = cmp.Or(l.WriteTime, d.WriteTime)
	l.Concurrent = cmp.Or(l.Concurrent, d.Concurrent)
	l.QueueLength = cmp.Or(l.QueueLength, d.QueueLength)
}

// check refuses limits under which nothing could be served.
func (l Limits) check() error {
	for name, value := range map[string]int64{
		"body": l.Body, "bodies": l.Bodies, "queue time": int64(l.QueueTime), "body time": int64(l.BodyTime), "read time": int64(l.ReadTime), "write time": int64(l.WriteTime),
		"concurrent": int64(l.Concurrent), "queue length": int64(l.QueueLength),
	} {
		if value < 0 {
			return fmt.Errorf("limit %s is negative: leave it out for the default, or give a larger one", name)
		}
	}
	if l.Body > bodyMost {
		return fmt.Errorf("limit body of %d bytes: a body is held in memory, so it may be at most %d", l.Body, int64(bodyMost))
	}
	return nil
}

// bodyMost is the largest limit of a body that makes sense.
const bodyMost = 4 << 30

// begin starts the clock of an operation. Streams of rows may take as long as they keep coming, in either direction.
func (l Limits) begin(r *http.Request, op api.Operation) (context.Context, context.CancelFunc) {
	if op.Body == api.ArrowBody {
		return r.Context(), func() {}
	}
	limit := l.ReadTime
	if mutates(op.Name) {
		limit = l.WriteTime
	}
	if op.Returns == api.ReturnsArrow {
		return withPatience(r.Context(), limit)
	}
	return context.WithTimeout(r.Context(), limit)
}

// boundBody bounds the time in which a body must arrive, until the returned function is called: later the connection is only watched
// for the client's hanging up, which must not look like a late body.
func (l Limits) boundBody(w http.ResponseWriter, r *http.Request) func() {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(l.BodyTime)) != nil {
		return func() {} // no connection, as in a test without a network
	}
	return func() { _ = control.SetReadDeadline(time.Time{}) }
}

// leaveBody is called before an error is written, which may come before the request's body has: a server reads what is left of it first,
// so that clients which send before they read see the answer, and must not wait for ever for what does not come. A body that was late once
// is not waited for again. The deadline ends with the request.
func (l Limits) leaveBody(w http.ResponseWriter, r *http.Request, status int) {
	l.boundBody(w, r)
	if status == http.StatusRequestTimeout {
		w.Header().Set("Connection", "close")
	}
}

// drainMax is how much of an Arrow stream that nobody wants is read before the answer: clients that send first and read later
// would otherwise see a broken connection instead of it.
const drainMax = 64 << 20

// drain reads what is left of a stream that nobody wants, for as long as a JSON body may take.
func (l Limits) drain(w http.ResponseWriter, r *http.Request) {
	done := l.boundBody(w, r)
	defer done()
	_, _ = io.CopyN(io.Discard, r.Body, drainMax)
}

// bodyBytes bounds the memory that bodies take while many are held at a time.
type bodyBytes struct {
	held atomic.Int64
	most int64
}

func (b *bodyBytes) free(n int) { b.held.Add(-int64(n)) }

// countedReader counts the bytes of a body as they come; too many of all bodies together are the error of code ServiceUnavailable.
type countedReader struct {
	io.Reader
	bodies *bodyBytes
}

// Read implements io.Reader.
func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.bodies.held.Add(int64(n)) > c.bodies.most && n > 0 {
		return n, api.Errorf(api.CodeServiceUnavailable, "the bodies of other requests take all the memory there is for them; nothing was done; try again")
	}
	return n, err
}

// mutates reports whether an operation changes anything.
func mutates(operation string) bool {
	switch operation {
	case "ListNamespaces", "DescribeNamespace", "NamespaceExists", "ListTables", "ListAllTables", "DescribeTable", "TableExists", "GetTableStats",
		"ListTableVersions", "DescribeTableVersion", "QueryTable", "CountTableRows", "ExplainTableQueryPlan", "AnalyzeTableQueryPlan",
		"ListTableIndices", "DescribeTableIndexStats", "ListTableTags", "GetTableTagVersion", "ListTableBranches", "DescribeTransaction",
		"DescribeJob", "ListJobs", "DescribeMaterializedView", "ListMaterializedViews":
		return false
	}
	return true
}

// places are the operations that may run at a time, and those that may wait.
type places struct {
	free    chan struct{}
	waiting atomic.Int64
	queue   int64
	patient time.Duration
}

func newPlaces(l Limits) *places {
	return &places{free: make(chan struct{}, l.Concurrent), queue: int64(l.QueueLength), patient: l.QueueTime}
}

// running and queued count them for the metrics.
func (p *places) running() float64 { return float64(len(p.free)) }
func (p *places) queued() float64  { return float64(p.waiting.Load()) }

// take waits for a place and returns the function that gives it back. Where too many wait already, or the caller gives up, the error
// is of code ServiceUnavailable: nothing has happened yet.
func (p *places) take(ctx context.Context) (func(), error) {
	leave := func() { <-p.free }
	select {
	case p.free <- struct{}{}:
		return leave, nil
	default:
	}
	defer p.waiting.Add(-1)
	if p.waiting.Add(1) > p.queue {
		return nil, api.Errorf(api.CodeServiceUnavailable, "too many requests are waiting; nothing was done; try again")
	}
	timer := time.NewTimer(p.patient)
	defer timer.Stop()
	select {
	case p.free <- struct{}{}:
		return leave, nil
	case <-timer.C:
		return nil, api.Errorf(api.CodeServiceUnavailable, "the request waited %s for its turn in vain; nothing was done; try again", p.patient)
	case <-ctx.Done():
		return nil, api.Errorf(api.CodeServiceUnavailable, "the request was given up while it waited for its turn; nothing was done")
	}
}
