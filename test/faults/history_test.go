//go:build unix

package faults_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lancerest/lancerest/api"
)

// verdict is what became of a request, as far as its answer says.
type verdict int

const (
	done    verdict = iota
	refused         // a conflict: nothing was kept, and never will be
	nothing         // not taken on: nothing was done
	unknown         // anything may have happened, or may happen yet
	wrong           // an answer that should not be
)

// asked is the input of an operation of a history: a read of a table, or a commit of versions of some.
type asked struct {
	read    int // where there are no versions
	commits []slot
}

// slot is one version of a commit, with the mark of its manifest.
type slot struct {
	table   int
	version int64
	mark    string
}

// history is what clients asked and were told, from a moment on at which nothing was under way.
type history struct {
	tables     []table
	base       []told // what each table ended in at that moment
	operations []porcupine.Operation
	clients    int
}

// add adds what one client asked and was told. What it was not told, or not for sure, is settled by asking again: settle sends a commit until
// a replica says what became of it.
func (h *history) add(t *testing.T, notes []note, settle func(*api.BatchCreateTableVersionsRequest) verdict) (cut bool) {
	t.Helper()
	h.clients++
	for i := 0; i < len(notes); i++ {
		ask := notes[i]
		answer, at := told{Verdict: unknown}, int64(0)
		if i+1 < len(notes) && notes[i+1].Told != nil {
			answer, at = *notes[i+1].Told, notes[i+1].At
			i++
		} else {
			cut = ask.Commit != nil
		}
		switch {
		case ask.Told != nil, answer.Verdict == wrong:
			t.Errorf("an answer that should not be: %+v", answer)
			continue
		case ask.Read != nil && answer.Verdict != done, answer.Verdict == nothing:
			continue
		case answer.Verdict == unknown:
			answer.Verdict, at = settle(ask.Commit), now()
		}
		h.operations = append(h.operations, porcupine.Operation{
			ClientId: h.clients, Input: h.input(ask), Call: ask.At, Output: answer, Return: at,
		})
	}
	return cut
}

func (h *history) input(n note) asked {
	if n.Read != nil {
		return asked{read: *n.Read}
	}
	var in asked
	for _, e := range n.Commit.Entries {
		i := slices.IndexFunc(h.tables, func(tb table) bool { return tb.name == e.ID[0] })
		in.commits = append(in.commits, slot{table: i, version: e.Version, mark: e.Metadata["mark"]})
	}
	return in
}

// model is a register a table, and commits that change several at once. Its state is the marks of the versions since the base, as
// "mark mark …;mark …;…".
func (h *history) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return strings.Repeat(";", len(h.tables)-1) },
		Step: func(state, input, output any) (bool, any) {
			in, out := input.(asked), output.(told)
			chains := strings.Split(state.(string), ";")
			if len(in.commits) == 0 {
				return h.sees(chains[in.read], in.read, out), state
			}
			next := true
			for _, s := range in.commits {
				next = next && s.version == h.base[s.table].Version+int64(len(strings.Fields(chains[s.table])))+1
				chains[s.table] += " " + s.mark
			}
			if out.Verdict == refused {
				return !next, state
			}
			return next, strings.Join(chains, ";")
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
	}
}

// sees reports whether a read of a table can have given what it gave.
func (h *history) sees(chain string, i int, out told) bool {
	marks, base := strings.Fields(chain), h.base[i]
	if out.Version != base.Version+int64(len(marks)) {
		return false
	}
	if len(marks) == 0 {
		return out.Mark == base.Mark
	}
	return out.Mark == marks[len(marks)-1]
}

// judgeMax bounds the search for an order.
const judgeMax = 2 * time.Minute

// check fails the test unless there is an order of all operations that explains every answer (C2, C7, C8, C15).
func (h *history) check(t *testing.T) {
	t.Helper()
	switch porcupine.CheckOperationsTimeout(h.model(), h.operations, judgeMax) {
	case porcupine.Illegal:
		t.Errorf("the history of %d operations is not linearizable:\n%s", len(h.operations), h.describe())
	case porcupine.Unknown:
		t.Errorf("the history of %d operations could not be judged within %s", len(h.operations), judgeMax)
	}
}

func (h *history) describe() string {
	var b strings.Builder
	slices.SortFunc(h.operations, func(x, y porcupine.Operation) int { return int(x.Call - y.Call) })
	for _, op := range h.operations {
		fmt.Fprintf(&b, "client %d, %d to %d: %+v → %+v\n", op.ClientId, op.Call, op.Return, op.Input, op.Output)
	}
	return b.String()
}

// acknowledged counts the commits that were done.
func (h *history) acknowledged() int {
	n := 0
	for _, op := range h.operations {
		if len(op.Input.(asked).commits) > 0 && op.Output.(told).Verdict == done {
			n++
		}
	}
	return n
}

// TestHistoryFinds holds that the search finds what it is for, and nothing where there is nothing.
func TestHistoryFinds(t *testing.T) {
	t.Parallel()
	const a, b = 0, 1
	commit := func(call, back int64, v verdict, slots ...slot) porcupine.Operation {
		return porcupine.Operation{Input: asked{commits: slots}, Call: call, Output: told{Verdict: v}, Return: back}
	}
	read := func(call, back int64, i int, version int64, mark string) porcupine.Operation {
		return porcupine.Operation{Input: asked{read: i}, Call: call, Output: told{Version: version, Mark: mark}, Return: back}
	}
	both := []slot{{a, 8, "x"}, {b, 1, "y"}}
	for name, c := range map[string]struct {
		want       bool
		operations []porcupine.Operation
	}{
		"in order":                   {true, []porcupine.Operation{read(0, 1, a, 7, "base"), commit(2, 3, done, both...), read(4, 5, a, 8, "x"), read(6, 7, b, 1, "y")}},
		"read while it is committed": {true, []porcupine.Operation{commit(0, 9, done, both...), read(1, 2, b, 1, "y"), read(3, 4, a, 8, "x")}},
		"half of a batch":            {false, []porcupine.Operation{commit(0, 9, done, both...), read(1, 2, b, 1, "y"), read(3, 4, a, 7, "base")}},
		"a stale read":               {false, []porcupine.Operation{commit(0, 1, done, both...), read(2, 3, a, 7, "base")}},
		"another's mark":             {false, []porcupine.Operation{commit(0, 1, done, both...), read(2, 3, a, 8, "z")}},
		"lost":                       {false, []porcupine.Operation{commit(0, 1, done, both...), commit(2, 3, done, slot{a, 8, "z"})}},
		"one number for two":         {false, []porcupine.Operation{commit(0, 9, done, slot{a, 8, "x"}), commit(0, 9, done, slot{a, 8, "z"})}},
		"refused rightly":            {true, []porcupine.Operation{commit(0, 9, done, slot{a, 8, "x"}), commit(0, 9, refused, slot{a, 8, "z"})}},
		"refused for nothing":        {false, []porcupine.Operation{commit(0, 1, refused, slot{a, 8, "x"})}},
		"refused and there":          {false, []porcupine.Operation{commit(0, 9, done, slot{a, 8, "x"}), commit(0, 9, refused, slot{a, 8, "z"}), read(0, 9, a, 8, "z")}},
	} {
		h := history{tables: make([]table, 2), base: []told{{Version: 7, Mark: "base"}, {}}, operations: c.operations}
		for i := range h.operations {
			h.operations[i].ClientId = i
		}
		if got := porcupine.CheckOperations(h.model(), h.operations); got != c.want {
			t.Errorf("%s: linearizable: %t, want %t", name, got, c.want)
		}
	}
}
