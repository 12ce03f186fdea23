package model

// help lets a free helper (a reader that meets a pending row, or the background job) take up what is left, or goes on with it.
func (m *machine) help(s *state, k int) {
	if s.process(k).phase != phaseIdle {
		m.work(s, k)
		return
	}
	if !m.rules.has(BackgroundHelp) || k > maxDrivers && s.process(k-1).phase == phaseIdle {
		return
	}
	for y := range numTxns {
		n := *s
		switch {
		case s.txns[y].status == statusPending:
			m.start(&n, k, y)
		case s.txns[y].status == statusAborted && m.rules.has(RemoveOnAbort) && m.hasZombie(s, y):
			n.process(k).works = y
			m.toClean(&n, k)
		default:
			continue
		}
		m.emit(n, m.mine(&n, k, actHelp, 0))
	}
}

// hasZombie reports whether a slot of an aborted transaction holds its content with no row that says so.
func (m *machine) hasZombie(s *state, y txnID) bool {
	c := m.sc.content(y)
	for _, at := range m.sc.entries[y] {
		if s.objects[at] == c && (s.rows[at].status == statusNone || s.rows[at].holds != c) {
			return true
		}
	}
	return false
}

// fail crashes a process, with or without an operation of its left in flight, or lets it give up waiting for one and go on.
func (m *machine) fail(s *state) {
	for k := range maxDrivers + maxHelpers {
		p := s.process(k)
		if p.phase != phasePublish && p.phase != phaseClean && p.phase != phaseReserveRest {
			continue
		}
		if s.crashes < m.sc.crashes {
			n := *s
			m.crash(&n, k)
			m.emit(n, m.worlds(s, k, actCrash, 0))
		}
		for e, at := range m.sc.entries[p.works] {
			if f, ok := m.outstanding(s, k, e, at); ok {
				m.failInFlight(s, k, f)
			}
		}
	}
}

// worlds makes a step that happens to process k.
func (m *machine) worlds(s *state, k int, a act, at slot) step {
	st := m.mine(s, k, a, at)
	st.mine = false
	return st
}

// crash ends a process: a request is gone for good, a helper is replaced by the next.
func (m *machine) crash(n *state, k int) {
	n.crashes++
	if k >= maxDrivers {
		*n.process(k) = process{}
		return
	}
	*n.process(k) = process{phase: phaseDead}
}

// outstanding returns the storage operation that process k would do next for an entry.
func (m *machine) outstanding(s *state, k, e int, at slot) (flight, bool) {
	p := s.process(k)
	c := m.sc.content(p.works)
	switch {
	case p.phase == phasePublish && p.entry[e] == bytes:
		return flight{flightPut, at, c}, true
	case p.phase == phasePublish && p.entry[e] > zombie:
		return flight{flightDelete, at, content(p.entry[e] - zombie)}, true
	case p.phase == phaseClean && int(p.entry[0]) == e && (s.objects[at] == c || p.entry[1] != todo):
		return flight{flightDelete, at, c}, true
	default:
		return flight{}, false
	}
}

// failInFlight leaves the operation in flight and crashes the process, or has it try again as if it had not been sent.
func (m *machine) failInFlight(s *state, k int, f flight) {
	n := *s
	if !n.fly(f, m.sc.flights) {
		return
	}
	put := actCrashPut
	if f.op == flightDelete {
		put = actCrashDelete
	}
	if s.crashes < m.sc.crashes {
		left := n
		m.crash(&left, k)
		m.emit(left, m.worlds(s, k, put, f.at))
	}
	if s.timeouts < m.sc.timeouts {
		n.timeouts++
		m.emit(n, m.worlds(s, k, put+1, f.at))
	}
}

// land lets an operation in flight take effect.
func (m *machine) land(s *state) {
	for i, f := range s.flights {
		if f.op == flightNone {
			continue
		}
		n := *s
		n.flights[i] = flight{}
		n.sortFlights()
		st := step{who: whoStorage, act: actLatePut, at: f.at}
		switch {
		case f.op == flightDelete:
			st.act = actLateDelete
			m.remove(&n, f.at, f.content)
		case s.objects[f.at] == contentNone || !m.rules.has(CreateOnly):
			n.objects[f.at] = f.content
		}
		m.emit(n, st)
	}
}

// adoptInBackground looks at an object as if its view of the rows were old, makes it durable and adopts it in later steps.
func (m *machine) adoptInBackground(s *state) {
	if !m.sc.adopter {
		return
	}
	st := step{who: whoAdopter, act: actMeet} // the look is the world's step: nobody has to take it
	if c := s.adopter.content; c != contentNone && !s.adopter.put {
		n := *s
		n.adopter.put = true
		if at := s.adopter.at; s.objects[at] == contentNone {
			n.objects[at] = c
		}
		st.at, st.act, st.mine = s.adopter.at, actPutAgain, true
		m.emit(n, st)
		return
	}
	if c := s.adopter.content; c != contentNone {
		n := *s
		n.adopter = adopter{}
		st.at, st.act, st.mine = s.adopter.at, actAdoptAt, true
		if m.adoptable(s, st.at, c) || !m.rules.has(AdoptCheckInTx) && s.rows[st.at].status == statusNone {
			n.adopt(st.at, c)
		}
		m.emit(n, st)
		return
	}
	for at, c := range s.objects {
		if c == contentNone || s.rows[at].resolved() || s.recorded(c) && m.rules.has(NeverAdoptAborted) {
			continue
		}
		n := *s
		n.adopter = adopter{at: slot(at), content: c}
		st.at = slot(at)
		m.emit(n, st)
	}
}

// tidy deletes staged objects of resolved transactions and marks versions below the head whose object is gone.
func (m *machine) tidy(s *state) {
	for y := range numTxns {
		t := s.txns[y]
		early := t.status == statusPending && !m.rules.has(KeepStagingWhilePending)
		if t.staged == 0 || !early && (t.status != statusCommitted || !m.sc.collects) {
			continue
		}
		n := *s
		n.txns[y].staged = 0
		m.emit(n, step{who: whoCollector, act: actUnstage, txn: y, mine: true})
	}
	if s.rows[slotA0].status == statusCommitted && s.rows[slotA1].resolved() && !m.described(s, slotA0) {
		n := *s
		n.rows[slotA0].status = statusPruned
		m.emit(n, step{who: whoCollector, act: actPrune, at: slotA0, mine: true})
	}
}

// bypass puts a foreign writer's version: create-only, with the number that follows what storage shows.
func (m *machine) bypass(s *state) {
	if s.bypasses >= m.sc.bypasses {
		return
	}
	c := contentR + content(s.bypasses)
	for _, at := range m.sc.bypassAt {
		below := s.rows[slotA0]
		settled := below.status == statusCommitted && s.objects[slotA0] == below.holds
		switch {
		case s.objects[at] != contentNone,
			at == slotA0 && s.objects[slotA1] != contentNone,
			at == slotA1 && s.objects[slotA0] == contentNone,
			at == slotA1 && !settled && !m.sc.onPending:
			continue
		}
		n := *s
		n.objects[at] = c
		n.bypasses++
		n.taken |= 1 << at
		if at == slotA1 {
			n.base[c] = s.objects[slotA0]
		}
		m.emit(n, step{who: whoBypass, act: actTake, at: at})
	}
}

// clients lets late clients stage upon what storage shows, a cleanup delete versions below the head, and clients (fact 54 of the
// client contract) or a janitor remove staging.
func (m *machine) clients(s *state) {
	for _, x := range m.sc.late {
		if c := m.sc.content(x); s.base[c] == contentNone && s.objects[slotA0] != contentNone {
			n := *s
			n.base[c] = s.objects[slotA0]
			m.emit(n, step{who: whoClient, txn: x, act: actStage, at: slotA0})
		}
	}
	below := s.rows[slotA0].resolved() && s.rows[slotA1].status == statusCommitted
	below = below || m.sc.blindCleanup && s.objects[slotA1] != contentNone
	if s.cleanups < m.sc.cleanups && below && s.objects[slotA0] != contentNone {
		n := *s
		n.cleanups++
		n.objects[slotA0] = contentNone
		n.cleaned |= 1 << slotA0
		m.emit(n, step{who: whoCleanup, act: actTakeAway, at: slotA0})
	}
	if t := s.txns[txnT]; m.sc.janitor && t.staged != 0 && !t.excused && t.status != statusAborted {
		n := *s
		n.txns[txnT].staged = 0
		n.txns[txnT].excused = true
		m.emit(n, step{who: whoJanitor, act: actUnstage, txn: txnT})
	}
	if m.sc.clientDeletes {
		m.loseOrRetain(s)
	}
}

// loseOrRetain is the client that got no usable answer: it describes its version and deletes its staging when it is shown a path.
func (m *machine) loseOrRetain(s *state) {
	for k, x := range m.sc.drivers {
		if s.drivers[k].phase == phaseIdle {
			continue
		}
		for e, at := range m.sc.entries[x] {
			if s.txns[x].staged&(1<<e) == 0 || !m.described(s, at) {
				continue
			}
			n := *s
			n.txns[x].staged &^= 1 << e
			m.emit(n, step{who: whoClient, txn: x, act: actDescribe, at: at})
		}
	}
}

// described reports whether describe shows the version: a committed row, and for a version below the head an object that is the
// row's (C9). Without HelpBeforeRead a pending row is shown as well.
func (m *machine) described(s *state, at slot) bool {
	r := s.rows[at]
	if r.status == statusPending {
		return !m.rules.has(HelpBeforeRead)
	}
	if r.status != statusCommitted || at != slotA0 || !s.rows[slotA1].resolved() {
		return r.status == statusCommitted
	}
	o := s.objects[at]
	return o == r.holds || o != contentNone && !m.rules.has(LookComparesContent)
}
