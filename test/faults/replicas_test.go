//go:build unix

package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
)

// patience is how long a client goes on with one request, over all that happens to servers and databases.
const patience = time.Minute

// replicas is some servers on one state, as a load balancer sees them.
type replicas struct {
	data, state string

	mu  sync.Mutex
	all []*process
}

func startReplicas(t *testing.T, data, state string, n int) *replicas {
	t.Helper()
	r := &replicas{data: data, state: state, all: make([]*process, n)}
	var wg sync.WaitGroup // a migration is made once, however many start together
	for i := range r.all {
		wg.Go(func() { r.all[i] = start(t, data, "--state", state) })
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return r
}

// restart starts all replicas anew, which have been stopped, on another state.
func (r *replicas) restart(t *testing.T, state string) {
	t.Helper()
	anew := startReplicas(t, r.data, state, len(r.all))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.all = state, anew.all
}

// any returns one of the replicas, which may have died.
func (r *replicas) any() *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[rand.IntN(len(r.all))]
}

// killAny kills a replica and starts another one in its place.
func (r *replicas) killAny(t *testing.T) {
	t.Helper()
	n := rand.IntN(len(r.all))
	r.all[n].kill(t)
	p := start(t, r.data, "--state", r.state)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[n] = p
}

func (r *replicas) stop(t *testing.T) {
	t.Helper()
	for _, p := range r.all {
		p.stop(t)
	}
}

// answers are what clients were told of their batches.
type answers struct {
	mu      sync.Mutex
	done    []string // transactions
	refused []*api.BatchCreateTableVersionsRequest
}

// insist commits the next version again and again, over whichever replica, and sends each batch until it has an answer.
func (x *pair) insist(t *testing.T, r *replicas, told *answers, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		head, _, err := latest(r.any(), x.tables[0])
		if err != nil {
			time.Sleep(10 * time.Millisecond) // nobody is there to answer
			continue
		}
		req, err := commitOf(head+1, x.tables[:]...)
		if err != nil {
			t.Error(err)
			return
		}
		transaction, err := untilAnswered(r, req)
		switch {
		case err == nil:
			x.acknowledged(t, req)
			told.mu.Lock()
			told.done = append(told.done, transaction)
			told.mu.Unlock()
		case api.CodeOf(err) == api.CodeConcurrentModification:
			told.mu.Lock()
			told.refused = append(told.refused, req)
			told.mu.Unlock()
		default:
			t.Errorf("version %d of %s: %v", head+1, x.tables[0].name, err)
			return
		}
	}
}

// untilAnswered sends a batch until a replica says what became of it, and returns its transaction.
func untilAnswered(r *replicas, req *api.BatchCreateTableVersionsRequest) (string, error) {
	for began := time.Now(); ; {
		resp, err := r.any().BatchCreateTableVersions(context.Background(), req)
		switch {
		case err == nil && resp.TransactionID == nil:
			return "", errors.New("answered as done without a transaction")
		case err == nil:
			return *resp.TransactionID, nil
		}
		var answer *api.Error
		if errors.As(err, &answer) && !unsettled(answer.Code) {
			return "", err
		}
		if time.Since(began) > patience {
			return "", fmt.Errorf("not answered within %s: %w", patience, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// unsettled reports whether a code says that the request may be sent again as it is.
func unsettled(c api.Code) bool {
	return c == api.CodeServiceUnavailable || c == api.CodeInternal || c == api.CodeThrottling
}

// watch reads one table on one replica and then the other on another: the second is never behind the first, and none goes back.
func (x *pair) watch(t *testing.T, r *replicas, first int, stop <-chan struct{}) {
	var newest int64
	for {
		select {
		case <-stop:
			return
		default:
		}
		for k := range x.tables {
			tb := x.tables[(first+k)%2]
			v, _, err := latest(r.any(), tb)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				t.Error(err)
			case err == nil && v < newest:
				t.Errorf("%s was seen at %d after %d was seen of the pair", tb.name, v, newest)
			case err == nil:
				newest = v
			}
		}
	}
}

// count is how many versions were acknowledged.
func (x *pair) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.answered)
}

// insistAll runs writers and watchers on all pairs for as long as do takes.
func insistAll(t *testing.T, r *replicas, all []*pair, do func()) {
	t.Helper()
	stop := make(chan struct{})
	var told answers
	var wg sync.WaitGroup
	for _, x := range all {
		for range writers {
			wg.Go(func() { x.insist(t, r, &told, stop) })
		}
		wg.Go(func() { x.watch(t, r, int(x.seed%2), stop) })
	}
	func() {
		defer wg.Wait()
		defer close(stop)
		do()
	}()
	for _, x := range all {
		for _, p := range r.all {
			x.settle(t, p)
		}
	}
	told.hold(t, r, all)
}

// hold compares what clients were told with what is there. That a version is there does not say enough: a version whose transaction was lost is
// found in storage and taken in again, by itself.
func (a *answers) hold(t *testing.T, r *replicas, all []*pair) {
	t.Helper()
	for _, id := range a.done {
		resp, err := r.any().DescribeTransaction(context.Background(), &api.DescribeTransactionRequest{Target: api.At(id)})
		if err != nil || resp.Status != api.TransactionSucceeded {
			t.Errorf("transaction %s was acknowledged and is %+v, %v", id, resp, err)
		}
	}
	published := map[string]bool{}
	for _, x := range all {
		for _, tb := range x.tables {
			for v := int64(1); tb.mark(v) != ""; v++ {
				published[tb.mark(v)] = true
			}
		}
	}
	for _, req := range a.refused {
		for i, mark := range marks(req) {
			if published[mark] {
				t.Errorf("version %d of %s was refused and is there", req.Entries[i].Version, req.Entries[i].ID)
			}
		}
	}
}

// advance waits until every pair has some more acknowledged versions.
func advance(t *testing.T, all []*pair, by int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for _, x := range all {
		for want := x.count() + by; x.count() < want; time.Sleep(5 * time.Millisecond) {
			if t.Failed() {
				t.FailNow()
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s has not got %d more versions within %s", x.tables[0].name, by, patience)
			}
		}
	}
}

// nothingPending fails the test if any transaction is left half-way.
func nothingPending(t *testing.T, state string) {
	t.Helper()
	s, err := sqlstore.OpenPostgres(t.Context(), sqlstore.PostgresOptions{URL: state, Beside: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	err = s.View(t.Context(), func(r store.Reader) error {
		pending, err := r.PendingTransactions(time.Now().Add(time.Hour), 10)
		if len(pending) > 0 {
			t.Errorf("transactions are pending: %v", pending)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestReplicas kills replicas, their clients and the database under them, leaves half-done work to them, and has them meet.
func TestReplicas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, cluster *pgtest.Cluster){
		"one name":                                  oneName,
		"opposite orders":                           oppositeOrders,
		"a replica dies at every step":              replicaDies,
		"replicas and clients are killed at random": killedAtRandom,
		"failover under load":                       failover,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, pgtest.Start(t, pgtest.Options{}))
		})
	}
}

// oneName has 100 clients declare one name at once over three replicas: one of them is told that it did, all others that it is there.
func oneName(t *testing.T, cluster *pgtest.Cluster) {
	url := cluster.Schema(t, "lancerest")
	data := newFolder(t).data
	r := startReplicas(t, data, url, 3)
	errs := make([]error, 100)
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			<-begin
			_, errs[i] = r.all[i%3].DeclareTable(context.Background(), &api.DeclareTableRequest{Target: api.At("t")})
		})
	}
	close(begin)
	wg.Wait()
	counts := map[api.Code]int{}
	for i, err := range errs {
		if err == nil {
			counts[-1]++
			continue
		}
		if counts[api.CodeOf(err)]++; api.CodeOf(err) != api.CodeTableAlreadyExists {
			t.Errorf("declaration %d: %v", i, err)
		}
	}
	if diff := cmp.Diff(map[api.Code]int{-1: 1, api.CodeTableAlreadyExists: 99}, counts); diff != "" {
		t.Errorf("answers by code, -1 for success (-want +got):\n%s", diff)
	}
	if n := cluster.Count(t, `SELECT count(*) FROM lancerest.objects WHERE kind = 2`); n != 1 {
		t.Errorf("there are %d rows of tables, want 1", n)
	}
	r.stop(t)
	clean(t, data, "--state", url)
}

// oppositeOrders has clients commit to the same ten tables over two replicas, half of them from the first to the last, half from the last to the
// first: in the database they wait for each other, and all that clients are told of it is who was first.
func oppositeOrders(t *testing.T, cluster *pgtest.Cluster) {
	const tables, clients, rounds = 10, 6, 15
	url := cluster.Schema(t, "lancerest")
	data := newFolder(t).data
	r := startReplicas(t, data, url, 2)
	var up []table
	for i := range tables {
		up = append(up, declare(t, r.all[0], fmt.Sprintf("o%d", i)))
	}
	down := slices.Clone(up)
	slices.Reverse(down)
	var done atomic.Int64
	var wg sync.WaitGroup
	for i := range clients {
		p, order := r.all[i%2], [][]table{up, down}[i/2%2]
		wg.Go(func() {
			for range rounds {
				head, _, err := latest(p, up[0])
				if err != nil {
					t.Error(err)
					return
				}
				req, err := commitOf(head+1, order...)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = p.BatchCreateTableVersions(context.Background(), req)
				switch api.CodeOf(err) {
				case api.CodeConcurrentModification, api.CodeThrottling:
				default:
					if err != nil {
						t.Errorf("client %d, version %d: %v", i, head+1, err)
						return
					}
					done.Add(1)
				}
			}
		})
	}
	wg.Wait()
	for _, tb := range up {
		if n := consecutive(t, r.all[1], tb); n != done.Load() || n < rounds {
			t.Errorf("%s has %d versions, want the %d that were acknowledged, at least %d", tb.name, n, done.Load(), rounds)
		}
	}
	r.stop(t)
	clean(t, data, "--state", url)
}

// replicaDies leaves behind what the death of a replica at every step of a batch leaves. Other replicas, which ran all the time, show each batch
// as a whole or not at all, at their first reading, and can go on.
func replicaDies(t *testing.T, cluster *pgtest.Cluster) {
	url := cluster.Schema(t, "lancerest")
	s := newFolder(t)
	r := startReplicas(t, s.data, url, 2)
	state, err := sqlstore.OpenPostgres(t.Context(), sqlstore.PostgresOptions{URL: url, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = state.Close() })
	s.state = state
	for n, at := range moments(s.calls(t)) {
		v := s.die(t, n, at)
		v.check(t, r.all[n%2])
		v.check(t, r.all[(n+1)%2])
		v.goOn(t, r.all[n%2])
		v.check(t, r.all[(n+1)%2])
	}
	nothingPending(t, url)
	r.stop(t)
	clean(t, s.data, "--state", url)
}

// failover crashes the primary under load, promotes its synchronous standby and goes on, with a new standby, for as long as soak says. The
// replicas know both addresses; some are killed meanwhile. pylance writers take part in the load.
func failover(t *testing.T, primary *pgtest.Cluster) {
	const schema = "lancerest"
	primary.Schema(t, schema)
	standby := primary.Standby(t)
	r := startReplicas(t, newFolder(t).data, pgtest.SchemaOnAny(schema, primary, standby), 3)
	all := newPairs(t, r.all[0])
	python := newPython(t, balance(t, r).url())
	_, until := soak(t)
	for round := 0; ; round++ {
		python.write(t, pythonProcesses)
		insistAll(t, r, all, func() {
			advance(t, all, 5)
			python.advance(t, 2)
			r.killAny(t)
			advance(t, all, 5)
			primary.Crash(t)
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // a moment by chance without a database
			standby.Promote(t)
			advance(t, all, 5)
			python.advance(t, 2)
			r.killAny(t)
			advance(t, all, 5)
		})
		appended := python.check(t)
		nothingPending(t, r.state)
		r.stop(t)
		clean(t, r.data, "--state", r.state)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
		t.Logf("round %d: %d, %d and %d versions acknowledged, and %d pylance transactions",
			round, all[0].count(), all[1].count(), all[2].count(), appended)
		if !time.Now().Before(until) {
			return
		}
		primary, standby = standby, standby.Standby(t)
		r.restart(t, pgtest.SchemaOnAny(schema, primary, standby))
	}
}
