package model

// machine makes the successors of a state: what each process and the world around may do next.
type machine struct {
	sc    *Scenario
	rules ruleSet
	out   []successor
}

type successor struct {
	state state
	step  step
}

// step says who did what; it is text only when a trace is printed.
type step struct {
	who  who
	txn  txnID
	act  act
	at   slot
	mine bool // the system's own step, as against the world's (crashes, clients, bypassing writers)
}

// initial is the state in which only the clients' staged manifests exist. Chain A and B have heads at N-1, which nothing ever
// touches, or A is a branch without versions.
func (m *machine) initial() state {
	var s state
	for x := range numTxns {
		if x != txnE && len(m.sc.entries[x]) > 0 {
			s.txns[x].staged = 1<<len(m.sc.entries[x]) - 1
		}
	}
	return s
}

// successors returns every state that one step leads to. The slice is reused by the next call.
func (m *machine) successors(s *state) []successor {
	m.out = m.out[:0]
	for k := range m.sc.drivers {
		m.drive(s, k)
	}
	for j := range m.sc.helpers {
		m.help(s, maxDrivers+j)
	}
	m.fail(s)
	m.land(s)
	m.adoptInBackground(s)
	m.tidy(s)
	m.bypass(s)
	m.clients(s)
	return m.out
}

// emit adds a successor. Helpers are alike, so they stand in a fixed order.
func (m *machine) emit(n state, st step) {
	if m.sc.helpers == 2 && n.helpers[0].less(n.helpers[1]) {
		n.helpers[0], n.helpers[1] = n.helpers[1], n.helpers[0]
	}
	m.out = append(m.out, successor{n, st})
}

// less orders processes in any fixed way, so that states that differ only in which helper is which are one.
func (p process) less(q process) bool {
	if p.phase != q.phase {
		return p.phase < q.phase
	}
	if p.works != q.works {
		return p.works < q.works
	}
	if p.entry[0] != q.entry[0] {
		return p.entry[0] < q.entry[0]
	}
	return p.entry[1] < q.entry[1]
}

// process returns process k: the drivers come first, then the helpers.
func (s *state) process(k int) *process {
	if k < maxDrivers {
		return &s.drivers[k]
	}
	return &s.helpers[k-maxDrivers]
}

// mine makes the step of process k.
func (m *machine) mine(s *state, k int, a act, at slot) step {
	st := step{who: whoHelper, txn: s.process(k).works, act: a, at: at, mine: true}
	if k < maxDrivers {
		st.who = whoDriver + who(k)
	}
	return st
}

// start sets process k to publish transaction y; the driver has the bytes of its own.
func (m *machine) start(n *state, k int, y txnID) {
	p := n.process(k)
	p.phase, p.works, p.entry = phasePublish, y, [2]progress{}
	if k < maxDrivers && (y == txnE || y == m.sc.drivers[k] && p.holds) {
		for e := range m.sc.entries[y] {
			p.entry[e] = bytes
		}
	}
}

// finish ends process k's work on its transaction: a driver whose own transaction committed answers, every other driver looks
// at the rows again, a helper is free.
func (m *machine) finish(n *state, k int, committed bool) {
	p := n.process(k)
	if k >= maxDrivers {
		*p = process{}
		return
	}
	own := m.sc.drivers[k]
	switch {
	case committed && p.works == own:
		m.answer(n, k, answeredOK)
		return
	case p.works == own && n.txns[own].status == statusAborted && !m.rules.has(JudgeAfterAbort):
		// It takes its first entry for the one that lost.
		if at := m.sc.entries[own][0]; m.adoptable(n, at, n.objects[at]) {
			n.adopt(at, n.objects[at])
		}
		m.refuse(n, k, conflict)
		return
	}
	p.phase, p.works, p.entry = phaseReserve, own, [2]progress{}
}

// answer records what the client of request k is told. Whether it arrives makes no difference to what must hold.
func (m *machine) answer(n *state, k int, answer uint8) {
	n.txns[m.sc.drivers[k]].answers |= answer
	n.drivers[k] = process{phase: phaseDone}
}

// adoptable reports whether an adoption of content c into the slot would take effect: no row is there, it is above the head,
// and the content is not on record as aborted (C9).
func (m *machine) adoptable(s *state, at slot, c content) bool {
	if c == contentNone || s.rows[at].status != statusNone {
		return false
	}
	if s.recorded(c) && m.rules.has(NeverAdoptAborted) {
		return false
	}
	switch at {
	case slotA0: // only above the head
		return s.rows[slotA1].status == statusNone
	case slotA1:
		return s.rows[slotA0].status != statusPending || !m.rules.has(HelpPendingHead)
	default:
		return true
	}
}

// adopt inserts a committed row for an object that no transaction brought (C9).
func (s *state) adopt(at slot, c content) {
	s.rows[at] = row{status: statusCommitted, by: adopted, holds: c}
}
