package model

import "slices"

// Result is what an exploration found.
type Result struct {
	Scenario *Scenario
	States   int
	Broken   Promise  // Kept where every promise holds in every reachable state
	Stuck    bool     // Broken is Resolves because the last state of Trace never comes to an end
	Trace    []string // the shortest way to the first broken state
}

// graph is the explored part of the state space. States stand in the order in which the search met them.
type graph struct {
	states []state
	parent []int32
	how    []step
	from   []int32 // the system's own edges: from[i] leads to to[i]
	to     []int32
}

// Explore visits every state of the scenario, breadth first, with the given rules taken out, and stops at the first state that
// breaks a promise.
func Explore(sc *Scenario, without ...Rule) Result {
	m := &machine{sc: sc, rules: allRules}
	for _, r := range without {
		m.rules = m.rules.without(r)
	}
	g := &graph{}
	at, broken := g.search(m)
	res := Result{Scenario: sc, States: len(g.states), Broken: broken}
	if broken == Kept {
		if at = g.stuck(m); at < 0 {
			return res
		}
		res.Broken, res.Stuck = Resolves, true
	}
	res.Trace = g.trace(sc, at)
	return res
}

// search fills the graph and returns the first state that breaks a promise, and which.
func (g *graph) search(m *machine) (int32, Promise) {
	seen := map[state]int32{}
	meet := func(s state, parent int32, how step) (int32, bool) {
		if i, ok := seen[s]; ok {
			return i, false
		}
		i := int32(len(g.states))
		seen[s] = i
		g.states = append(g.states, s)
		g.parent = append(g.parent, parent)
		g.how = append(g.how, how)
		return i, true
	}
	meet(m.initial(), -1, step{})
	for i := int32(0); int(i) < len(g.states); i++ {
		s := g.states[i]
		for _, next := range m.successors(&s) {
			j, fresh := meet(next.state, i, next.step)
			if fresh {
				if p := m.check(&next.state); p != Kept {
					return j, p
				}
			}
			if next.step.mine {
				g.from, g.to = append(g.from, i), append(g.to, j)
			}
		}
	}
	return -1, Kept
}

// stuck returns the first state from which the system's own steps never lead to a settled one, or -1.
func (g *graph) stuck(m *machine) int32 {
	first := make([]int32, len(g.states)+1) // edges by target: back[first[t]:first[t+1]] lead to t
	for _, t := range g.to {
		first[t+1]++
	}
	for i := range g.states {
		first[i+1] += first[i]
	}
	back, fill := make([]int32, len(g.to)), slices.Clone(first)
	for i, t := range g.to {
		back[fill[t]] = g.from[i]
		fill[t]++
	}
	good := make([]bool, len(g.states))
	var queue []int32
	for i := range g.states {
		if m.settled(&g.states[i]) {
			good[i] = true
			queue = append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		t := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, f := range back[first[t]:first[t+1]] {
			if !good[f] {
				good[f] = true
				queue = append(queue, f)
			}
		}
	}
	return int32(slices.Index(good, false))
}

// trace walks from a state back to the first one.
func (g *graph) trace(sc *Scenario, at int32) []string {
	var lines []string
	for ; g.parent[at] >= 0; at = g.parent[at] {
		lines = append(lines, g.how[at].text(sc))
	}
	slices.Reverse(lines)
	return lines
}
