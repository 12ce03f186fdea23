package model

// work makes the steps of process k on the transaction that it publishes or cleans up after; drivers and helpers do the same (C7).
func (m *machine) work(s *state, k int) {
	switch s.process(k).phase {
	case phasePublish:
		m.publish(s, k)
	case phaseClean:
		m.clean(s, k)
	}
}

// publish puts the entries in any order (C6), then resolves; a foreign object or a lost staging leads to the abort (C10).
func (m *machine) publish(s *state, k int) {
	p := s.process(k)
	entries := m.sc.entries[p.works]
	ready, doomed := true, false
	for e, at := range entries {
		switch p.entry[e] {
		case done:
		case foreign, lost:
			ready, doomed = false, true
		default:
			ready = false
			m.publishEntry(s, k, e, at)
		}
	}
	if ready {
		m.resolve(s, k)
	}
	if doomed {
		m.abort(s, k)
	}
}

// publishEntry makes the next step of one entry. A put that meets an object and the look at that object are one step: a failed
// put changes nothing, so the order of the two cannot matter.
func (m *machine) publishEntry(s *state, k, e int, at slot) {
	p := s.process(k)
	object, c := s.objects[at], m.sc.content(p.works)
	n := *s
	next := &n.process(k).entry[e]
	switch {
	case p.entry[e] == todo && object == contentNone:
		m.fetch(s, k, e, at)
	case p.entry[e] == gone:
		*next = lost
		if object != contentNone {
			*next = todo
		}
		m.emit(n, m.mine(s, k, actLookAgain, at))
	case p.entry[e] > zombie:
		// Between the look that met it and this delete anything may have happened.
		met := content(p.entry[e] - zombie)
		*next = todo
		if k < maxDrivers && p.works == m.sc.drivers[k] {
			*next = bytes
		}
		m.remove(&n, at, met)
		m.emit(n, m.mine(s, k, actRemove, at))
	case p.entry[e] == bytes && (object == contentNone || !m.rules.has(CreateOnly)):
		*next, n.objects[at] = done, c
		m.emit(n, m.mine(s, k, actPut, at))
	default:
		*next = m.classify(s, object, c)
		m.emit(n, m.mine(s, k, actMeet, at))
	}
}

// fetch reads the staged manifest of an entry whose final name is free.
func (m *machine) fetch(s *state, k, e int, at slot) {
	n := *s
	p := n.process(k)
	switch {
	case s.txns[p.works].staged&(1<<e) != 0:
		p.entry[e] = bytes
	case !m.rules.has(AbortWhenStagingGone):
		return
	case m.rules.has(LookAgainBeforeAbort):
		p.entry[e] = gone
	default:
		p.entry[e] = lost
	}
	m.emit(n, m.mine(s, k, actFetch, at))
}

// classify says what an object in the slot means to the writer of content c.
func (m *machine) classify(s *state, object, c content) progress {
	switch {
	case object == c && m.rules.has(EqualBytesDone):
		return done
	case object != c && s.recorded(object) && m.rules.has(RemoveZombie):
		return zombie + progress(object)
	default:
		return foreign
	}
}

// remove deletes the object in the slot; conditionally, only if it still is the one that was met (C10).
func (m *machine) remove(n *state, at slot, met content) {
	if !m.rules.has(ConditionalDelete) || n.objects[at] == met {
		n.objects[at] = contentNone
	}
}

// resolve marks the transaction committed in one database transaction (C6).
func (m *machine) resolve(s *state, k int) {
	n := *s
	y := s.process(k).works
	t := &n.txns[y]
	st := m.mine(s, k, actResolve, 0)
	switch {
	case t.status == statusPending || t.status != statusCommitted && !m.rules.has(ResolveOnlyPending):
		t.status = statusCommitted
		m.commitRows(&n, y)
		m.finish(&n, k, true)
	case t.status == statusCommitted:
		m.finish(&n, k, true)
	case t.status == statusNone && m.insertRows(&n, y, statusCommitted):
		t.status = statusCommitted
		m.finish(&n, k, true)
	default:
		m.toClean(&n, k)
	}
	m.emit(n, st)
}

// commitRows makes the transaction's pending rows visible.
func (m *machine) commitRows(n *state, y txnID) {
	for _, at := range m.sc.entries[y] {
		if r := &n.rows[at]; r.by == y && r.status == statusPending {
			r.status = statusCommitted
		}
	}
}

// insertRows adds the rows of a transaction, or none of them where a slot is taken.
func (m *machine) insertRows(n *state, y txnID, st status) bool {
	for _, at := range m.sc.entries[y] {
		if n.rows[at].status != statusNone {
			return false
		}
	}
	for _, at := range m.sc.entries[y] {
		n.rows[at] = row{status: st, by: y, holds: m.sc.content(y)}
	}
	return true
}

// abort marks the transaction aborted in one database transaction (C10). A put of another entry may be left in flight.
func (m *machine) abort(s *state, k int) {
	n := *s
	m.abortTx(&n, k)
	m.emit(n, m.mine(s, k, actAbort, 0))
	if s.timeouts >= m.sc.timeouts {
		return
	}
	p := s.process(k)
	for e, at := range m.sc.entries[p.works] {
		left := n
		if p.entry[e] == bytes && left.fly(flight{flightPut, at, m.sc.content(p.works)}, m.sc.flights) {
			left.timeouts++
			m.emit(left, m.mine(s, k, actAbortEarly, at))
		}
	}
}

// abortTx is the database transaction. It needs a cause: a foreign object, or staging that somebody else removed (P7).
func (m *machine) abortTx(n *state, k int) {
	p := *n.process(k)
	t := &n.txns[p.works]
	if t.status == statusCommitted && m.rules.has(AbortOnlyPending) {
		m.finish(n, k, true)
		return
	}
	if t.status == statusPending && !t.excused && !m.hasForeign(n, p.works) {
		n.broken = Resolves
	}
	if t.status != statusAborted || !m.rules.has(AbortOnlyPending) {
		t.status = statusAborted
		m.dropRows(n, p)
	}
	m.toClean(n, k)
}

// dropRows removes the transaction's rows and keeps its contents on record. A slot where the foreign object was met never showed
// the content; any other may have.
func (m *machine) dropRows(n *state, p process) {
	for e, at := range m.sc.entries[p.works] {
		if r := &n.rows[at]; r.status != statusNone && r.by == p.works {
			*r = row{}
		}
		if p.entry[e] != foreign {
			n.burnt |= 1 << at
		}
	}
	if m.rules.has(RecordAborted) {
		n.record |= 1 << m.sc.content(p.works)
	}
}

// hasForeign reports whether some slot of the transaction holds an object that is neither its own nor an aborted one.
func (m *machine) hasForeign(s *state, y txnID) bool {
	for _, at := range m.sc.entries[y] {
		if o := s.objects[at]; o != contentNone && o != m.sc.content(y) && !m.aborted(s, o) {
			return true
		}
	}
	return false
}

// aborted reports whether the content belongs to aborted transactions only.
func (m *machine) aborted(s *state, c content) bool {
	found := false
	for y := range numTxns {
		if m.sc.content(y) != c {
			continue
		}
		switch s.txns[y].status {
		case statusAborted:
			found = true
		case statusPending, statusCommitted:
			return false
		}
	}
	return found
}

// toClean goes on to the removal of what the aborted transaction published.
func (m *machine) toClean(n *state, k int) {
	if !m.rules.has(RemoveOnAbort) {
		m.finish(n, k, false)
		return
	}
	p := n.process(k)
	p.phase, p.entry = phaseClean, [2]progress{}
}

// clean removes the objects that an aborted transaction published, one after the other. entry[0] counts the entries that are
// finished; entry[1] is set between the look and a delete that is not conditional.
func (m *machine) clean(s *state, k int) {
	n := *s
	p := n.process(k)
	entries, c := m.sc.entries[p.works], m.sc.content(p.works)
	at := entries[p.entry[0]]
	object := s.objects[at]
	meets := object == c || object != contentNone && !m.rules.has(RemoveOnlyOwn)
	st := m.mine(s, k, actRemove, at)
	switch {
	case p.entry[1] != todo: // a plain delete: whatever stands there now
		n.objects[at] = contentNone
	case meets && !m.rules.has(ConditionalDelete):
		p.entry[1] = done
		st.act = actMeet
		m.emit(n, st)
		return
	case meets:
		n.objects[at] = contentNone
	default:
		st.act = actPass
	}
	p.entry[0]++
	p.entry[1] = todo
	if int(p.entry[0]) == len(entries) {
		m.finish(&n, k, false)
	}
	m.emit(n, st)
}
