package catalog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// The state of the model of histories: for each table the marks of its versions in order, as "mark mark …;mark …;…". A commit
// appends to one or more tables at once; a read returns what one table ends in.

// call is what a client asked for: a read of one table, or a commit of versions of some.
type call struct {
	read    int // the table, where there are no versions
	commits []appended
}

type appended struct {
	table, version int
	mark           string
}

// outcome is what it was told.
type outcome struct {
	verdict verdict
	version int // of a read: the latest, 0 for none
	mark    string
}

type verdict int

const (
	done    verdict = iota
	refused         // a conflict: nothing was kept
	unknown         // anything may have happened, or may happen yet
)

// history is the model: a register a chain, and commits that change several at once.
var history = porcupine.NondeterministicModel{
	Init: func() []any { return []any{strings.Repeat(";", historyTables-1)} },
	Step: func(state, input, output any) []any {
		in, out := input.(call), output.(outcome)
		chains := strings.Split(state.(string), ";")
		if len(in.commits) == 0 {
			if out.verdict == unknown || sees(chains[in.read], out) {
				return []any{state}
			}
			return nil
		}
		replay, next := true, true
		for _, a := range in.commits {
			marks := strings.Fields(chains[a.table])
			replay = replay && a.version <= len(marks) && marks[a.version-1] == a.mark
			next = next && a.version == len(marks)+1
			if next {
				chains[a.table] += " " + a.mark
			}
		}
		committed := strings.Join(chains, ";")
		switch {
		case out.verdict == unknown && next:
			return []any{state, committed}
		case out.verdict == done && next:
			return []any{committed}
		case out.verdict == unknown, out.verdict == done && replay, out.verdict == refused && !next && !replay:
			return []any{state}
		}
		return nil
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
}

func sees(chain string, out outcome) bool {
	marks := strings.Fields(chain)
	return out.version == len(marks) && (out.version == 0 || marks[out.version-1] == out.mark)
}

const (
	historyTables  = 3
	historyClients = 6
	historySteps   = 25
)

// recorder runs clients against servers and writes down what they asked and were told.
type recorder struct {
	lake   *lake
	tables []table
	begun  time.Time

	mu         sync.Mutex
	operations []porcupine.Operation
}

// do performs one call and records it. An operation with an unknown outcome may take effect at any time after it began.
func (r *recorder) do(client int, in call, perform func() outcome) outcome {
	at := time.Since(r.begun).Nanoseconds()
	out := perform()
	end := time.Since(r.begun).Nanoseconds()
	if out.verdict == unknown {
		if len(in.commits) == 0 {
			return out
		}
		end = 1 << 62
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, porcupine.Operation{ClientId: client, Input: in, Call: at, Output: out, Return: end})
	return out
}

// judge turns an error into a verdict.
func judge(t *testing.T, err error) verdict {
	if err == nil {
		return done
	}
	switch api.CodeOf(err) {
	case api.CodeConcurrentModification:
		return refused
	case api.CodeInternal, api.CodeServiceUnavailable, api.CodeThrottling:
		return unknown
	}
	t.Errorf("unexpected answer: %v", err)
	return unknown
}

// read asks for the latest version of a table and reads its manifest, as every reader does next: it must be there.
func (r *recorder) read(t *testing.T, client int, s *server, i int) outcome {
	return r.do(client, call{read: i}, func() outcome {
		resp, err := s.DescribeTableVersion(context.Background(), &api.DescribeTableVersionRequest{Target: api.At(r.tables[i].id...)})
		switch {
		case err != nil && api.CodeOf(err) == api.CodeTableVersionNotFound:
			return outcome{}
		case err != nil:
			return outcome{verdict: judge(t, err)}
		}
		data, _, err := r.lake.objects.Get(context.Background(), resp.Version.ManifestPath, 0)
		if err != nil {
			t.Errorf("version %d of table %d was shown and cannot be read: %v", resp.Version.Version, i, err)
		}
		return outcome{version: int(resp.Version.Version), mark: lancetest.Mark(data)}
	})
}

// commit commits the next versions, as far as the client knows, of some tables; now and then it sends the batch twice.
func (r *recorder) commit(t *testing.T, client int, s *server, heads []int, rnd *rand.Rand) {
	var in call
	var versions []staged
	order := rnd.Perm(historyTables)[:1+rnd.IntN(historyTables)]
	for _, i := range order {
		sv := r.stage(t, i, heads[i]+1)
		versions = append(versions, sv)
		in.commits = append(in.commits, appended{table: i, version: heads[i] + 1, mark: sv.Metadata["mark"]})
	}
	for range 1 + rnd.IntN(4)/3 {
		r.do(client, in, func() outcome {
			if len(versions) == 1 && rnd.IntN(2) == 0 {
				_, err := s.create(context.Background(), versions[0])
				return outcome{verdict: judge(t, err)}
			}
			_, err := s.batch(context.Background(), versions...)
			return outcome{verdict: judge(t, err)}
		})
	}
}

func (r *recorder) stage(t *testing.T, i, version int) staged {
	return r.lake.stage(t, r.tables[i], int64(version))
}

// run lets the clients do their steps, and then reads everything once more.
func (r *recorder) run(t *testing.T, servers []*server, seed uint64) {
	var wg sync.WaitGroup
	for client := range historyClients {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(client)))
			heads := make([]int, historyTables)
			for range historySteps {
				s := servers[rnd.IntN(len(servers))]
				if rnd.IntN(2) == 0 {
					r.commit(t, client, s, heads, rnd)
				}
				i := rnd.IntN(historyTables)
				if out := r.read(t, client, s, i); out.verdict == done {
					heads[i] = out.version
				}
			}
		})
	}
	wg.Wait()
	for _, s := range servers {
		s.objects.Heal()
	}
	for i := range r.tables {
		if out := r.read(t, historyClients, servers[0], i); out.verdict != done {
			t.Errorf("table %d cannot be read when everything is over", i)
		}
	}
}

// TestHistoriesAreLinearizable records concurrent commits and reads through three servers, without faults and with storage that fails
// and loses answers, and searches an order in which a single register a chain would have answered the same (C2, C5, C7, C8, C15).
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	for name, chaos := range map[string]objtest.Chaos{
		"all well": {}, "faults": {Before: 0.03, After: 0.03},
	} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s %d", name, seed), func(t *testing.T) {
				t.Parallel()
				l := newLake(t)
				servers := []*server{l.server(t), l.server(t), l.server(t)}
				r := &recorder{lake: l, begun: time.Now()}
				for i := range historyTables {
					r.tables = append(r.tables, servers[0].declare(t, fmt.Sprint("t", i)))
				}
				for i, s := range servers {
					c := chaos
					c.Seed = seed<<8 | uint64(i)
					s.objects.Randomly(c)
				}
				r.run(t, servers, seed)
				if ids := l.pending(t); len(ids) > 0 && chaos.Before == 0 {
					t.Errorf("pending transactions %v", ids)
				}
				switch porcupine.CheckOperationsTimeout(history.ToModel(), r.operations, time.Minute) {
				case porcupine.Illegal:
					t.Errorf("the history of %d operations is not linearizable:\n%s", len(r.operations), r.describe())
				case porcupine.Unknown:
					t.Logf("the history of %d operations could not be judged within a minute", len(r.operations))
				}
			})
		}
	}
}

func (r *recorder) describe() string {
	slices.SortFunc(r.operations, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for _, o := range r.operations {
		fmt.Fprintf(&b, "%d [%d, %d] %+v → %+v\n", o.ClientId, o.Call, o.Return, o.Input, o.Output)
	}
	return b.String()
}

// TestReadersNeverSeeHalfABatch lets writers commit to two tables only together, through servers one of which dies again and again,
// while readers compare the two: whoever reads one table and then the other never finds the second behind the first (C7).
func TestReadersNeverSeeHalfABatch(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s := l.server(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for _, pair := range [][2]table{{a, b}, {b, a}} {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				first, second := l.latest(t, s, pair[0]), l.latest(t, s, pair[1])
				if second < first {
					t.Errorf("version %d of %v was seen, and then version %d of %v", first, pair[0].id, second, pair[1].id)
					return
				}
			}
		})
	}
	const rounds = 40
	for v := int64(1); v <= rounds; v++ {
		va, vb := l.stage(t, a, v), l.stage(t, b, v)
		dying := l.server(t)
		stage := []objtest.Stage{objtest.Before, objtest.After}[v%2]
		gate := dying.objects.Hold(objtest.Match{Op: objtest.OpPutIfAbsent, Nth: 1 + int(v/2%2), Key: func(k string) bool {
			return k == a.final(v) || k == b.final(v)
		}}, stage)
		answer := async(func() error { _, err := dying.batch(context.Background(), va, vb); return err })
		within(t, "put", gate.Reached())
		if v%3 != 0 {
			dying.kill()
			gate.Drop()
		}
		gate.Release()
		within(t, "batch", answer)
		// A rival on the other server, which helps whatever is pending.
		if _, err := s.batch(context.Background(), l.stage(t, b, v), l.stage(t, a, v)); err != nil && api.CodeOf(err) != api.CodeConcurrentModification {
			t.Errorf("the rival: %v", err)
		}
	}
	close(stop)
	readers.Wait()
	if x, y := l.latest(t, s, a), l.latest(t, s, b); x != rounds || y != rounds {
		t.Errorf("the tables end at %d and %d, want %d", x, y, rounds)
	}
}

// latest returns the latest version of a table, 0 for none.
func (l *lake) latest(t tester, s *server, tb table) int64 {
	resp, err := s.DescribeTableVersion(context.Background(), &api.DescribeTableVersionRequest{Target: api.At(tb.id...)})
	if err != nil {
		if api.CodeOf(err) != api.CodeTableVersionNotFound {
			t.Errorf("latest version of %v: %v", tb.id, err)
		}
		return 0
	}
	if want := tb.finalOn(lance.Main, resp.Version.Version); resp.Version.ManifestPath != want {
		t.Errorf("version %d of %v stands at %s", resp.Version.Version, tb.id, resp.Version.ManifestPath)
	}
	return resp.Version.Version
}

// TestHistoryModelRejects holds the model itself: histories that break a promise are not taken for good ones.
func TestHistoryModelRejects(t *testing.T) {
	t.Parallel()
	both := call{commits: []appended{{table: 0, version: 1, mark: "x"}, {table: 1, version: 1, mark: "x"}}}
	rival := call{commits: []appended{{table: 0, version: 1, mark: "y"}}}
	op := func(at int64, in call, out outcome) porcupine.Operation {
		return porcupine.Operation{Input: in, Output: out, Call: at, Return: at + 5}
	}
	for name, bad := range map[string][]porcupine.Operation{
		"half of a batch": {
			op(0, both, outcome{}), op(10, call{read: 0}, outcome{version: 1, mark: "x"}), op(20, call{read: 1}, outcome{}),
		},
		"half of a batch of unknown outcome": {
			{Input: both, Output: outcome{verdict: unknown}, Return: 1 << 62},
			op(10, call{read: 0}, outcome{version: 1, mark: "x"}), op(20, call{read: 1}, outcome{}),
		},
		"one number for two": {op(0, both, outcome{}), op(10, rival, outcome{})},
		"a lost version":     {op(0, rival, outcome{}), op(10, call{read: 0}, outcome{})},
		"a stale read": {
			op(0, both, outcome{}), op(10, call{commits: []appended{{table: 0, version: 2, mark: "z"}}}, outcome{}),
			op(20, call{read: 0}, outcome{version: 1, mark: "x"}),
		},
		"a refusal without a winner": {op(0, rival, outcome{verdict: refused})},
		"another's content":          {op(0, both, outcome{}), op(10, call{read: 0}, outcome{version: 1, mark: "y"})},
	} {
		if porcupine.CheckOperations(history.ToModel(), bad) {
			t.Errorf("%s is taken for a good history", name)
		}
	}
	good := []porcupine.Operation{op(0, both, outcome{}), op(3, rival, outcome{verdict: refused}), op(10, both, outcome{}), op(20, call{read: 1}, outcome{version: 1, mark: "x"})}
	if !porcupine.CheckOperations(history.ToModel(), good) {
		t.Error("a good history is rejected")
	}
}
