package model

// drive makes the steps of request k: prepare (C4), reserve (C5), then the work that helpers do as well.
func (m *machine) drive(s *state, k int) {
	p := &s.drivers[k]
	switch p.phase {
	case phaseIdle:
		m.prepare(s, k)
	case phaseLook:
		m.look(s, k)
	case phaseAdopt:
		m.adoptStrays(s, k)
	case phaseReserve:
		m.reserve(s, k)
	case phaseReserveRest:
		m.reserveRest(s, k)
	case phasePublish, phaseClean:
		m.work(s, k)
		m.hangUp(s, k)
	}
}

// prepare reads the staged manifests and takes a view of the rows, which may be out of date at every later step.
func (m *machine) prepare(s *state, k int) {
	x := m.sc.drivers[k]
	if !m.staged(s, x) {
		return
	}
	n := *s
	p := &n.drivers[k]
	p.phase, p.works = phaseLook, x
	entries := m.sc.entries[x]
	p.holds = s.txns[x].staged == 1<<len(entries)-1
	for e, at := range entries {
		if s.rows[at].status == statusNone {
			p.entry[e] = unseen
		}
	}
	if !p.holds && !m.rules.has(ReplayBeforeStaging) {
		m.answer(&n, k, answeredNo)
	}
	st := m.mine(&n, k, actPrepare, 0)
	st.txn, st.mine = x, false
	m.emit(n, st)
}

// staged reports whether the client of x has written its manifests: a late one waits until storage shows it a version to build upon.
func (m *machine) staged(s *state, x txnID) bool {
	for _, l := range m.sc.late {
		if l == x {
			return s.base[m.sc.content(x)] != contentNone
		}
	}
	return true
}

// look asks storage for the final names. An object whose row the view lacks is to be adopted first.
func (m *machine) look(s *state, k int) {
	n := *s
	p := &n.drivers[k]
	p.phase = phaseReserve
	for e, at := range m.sc.entries[p.works] {
		o := s.objects[at]
		stranger := p.entry[e] == unseen && o != contentNone && (!s.recorded(o) || !m.rules.has(NeverAdoptAborted))
		p.entry[e] = todo
		if stranger {
			p.phase, p.entry[e] = phaseAdopt, stray
		}
	}
	m.emit(n, m.mine(s, k, actLook, 0))
}

// adoptStrays adopts what look saw (C9). Rows may have come meanwhile, its own among them: without LookAgain it answers a conflict
// from the old view.
func (m *machine) adoptStrays(s *state, k int) {
	n := *s
	p := &n.drivers[k]
	for e, at := range m.sc.entries[p.works] {
		if p.entry[e] == stray && m.adoptable(&n, at, n.objects[at]) {
			n.adopt(at, n.objects[at])
		}
	}
	p.phase, p.entry = phaseReserve, [2]progress{}
	if !m.rules.has(LookAgain) {
		m.refuse(&n, k, conflict)
	}
	m.emit(n, m.mine(s, k, actAdopt, 0))
}

// reserve is the database transaction that judges the request and, where nothing stands against it, inserts its rows.
func (m *machine) reserve(s *state, k int) {
	n := *s
	p := &n.drivers[k]
	x := m.sc.drivers[k]
	v := m.judge(s, k)
	st := m.mine(s, k, actReserve, v.at)
	switch v.kind {
	case helpFirst:
		st.act, st.txn = actHelp, v.txn
		m.start(&n, k, v.txn)
	case replayOK:
		st.act = actAnswerReplay
		m.answer(&n, k, answeredOK)
	case conflict:
		st.act = actConflict
		m.refuse(&n, k, v.kind)
	case refused, refusedWrongly, unstaged:
		st.act = actRefuse
		m.refuse(&n, k, v.kind)
	case adoptFirst:
		st.act = actAdoptAt
		n.adopt(v.at, n.objects[v.at])
	case echoFirst:
		st.act = actEcho
		n.txns[txnE] = txn{status: statusPending, staged: 1}
		n.base[m.sc.content(txnE)] = n.rows[slotA0].holds
		m.insertRows(&n, txnE, statusPending)
		m.start(&n, k, txnE)
	case free:
		m.insert(&n, k, x)
	}
	// Without AllOrNothing the second row is a database transaction of its own.
	if v.kind == free && !m.rules.has(AllOrNothing) && len(m.sc.entries[x]) == 2 {
		n.rows[m.sc.entries[x][1]] = row{}
		p.phase = phaseReserveRest
	}
	m.emit(n, st)
}

// insert reserves the rows and begins to publish. Without ReserveFirst it publishes with no row there.
func (m *machine) insert(n *state, k int, x txnID) {
	if m.rules.has(ReserveFirst) {
		n.txns[x].status = statusPending
		m.insertRows(n, x, statusPending)
	}
	m.start(n, k, x)
}

// reserveRest is the second half of a reservation that is not one database transaction (only without AllOrNothing).
func (m *machine) reserveRest(s *state, k int) {
	n := *s
	x := m.sc.drivers[k]
	second := m.sc.entries[x][1]
	st := m.mine(s, k, actReserve, second)
	if s.rows[second].status == statusNone {
		n.rows[second] = row{status: statusPending, by: x, holds: m.sc.content(x)}
		m.start(&n, k, x)
	} else {
		n.txns[x].status = statusAborted
		m.dropRows(&n, n.drivers[k])
		m.toClean(&n, k)
	}
	m.emit(n, st)
}

// refuse answers that the commit did not happen. As a conflict it must have a winner that the client can read (C8). Where
// somebody else took the staging away, "your staged manifest is missing" says nothing about an earlier request that had read it.
func (m *machine) refuse(n *state, k int, kind verdictKind) {
	if kind == conflict && !m.hasReadableWinner(n, m.sc.drivers[k]) {
		n.broken = ConflictHasWinner
	}
	if kind == refusedWrongly {
		n.broken = Resolves
	}
	if kind == unstaged && n.txns[m.sc.drivers[k]].excused {
		n.drivers[k] = process{phase: phaseDone}
		return
	}
	m.answer(n, k, answeredNo)
}

// hasReadableWinner reports whether a slot of x shows another's version, row and object.
func (m *machine) hasReadableWinner(s *state, x txnID) bool {
	for _, at := range m.sc.entries[x] {
		r := s.rows[at]
		if r.status == statusCommitted && r.by != x && s.objects[at] == r.holds {
			return true
		}
	}
	return false
}

// hangUp is what a server does that lets its client's leaving stop the work, or that answers an unknown outcome as a refusal.
func (m *machine) hangUp(s *state, k int) {
	n := *s
	if !m.rules.has(GoOnAfterHangup) {
		n.drivers[k] = process{phase: phaseDead}
		m.emit(n, m.mine(s, k, actHangUp, 0))
	}
	p := &s.drivers[k]
	if !m.rules.has(UnknownIsNoRefusal) && p.phase == phasePublish && p.works == m.sc.drivers[k] {
		m.answer(&n, k, answeredNo)
		m.emit(n, m.mine(s, k, actGiveUp, 0))
	}
}
