package model

// check returns the first promise that the state breaks, or Kept. P7's liveness is checked over the whole graph (see explore).
func (m *machine) check(s *state) Promise {
	if s.broken != Kept {
		return s.broken
	}
	for y := range numTxns {
		if p := m.checkTxn(s, y); p != Kept {
			return p
		}
	}
	for at := range numSlots {
		if p := m.checkSlot(s, at); p != Kept {
			return p
		}
	}
	// P9; contents with no base were not built upon a version of this chain that the model has.
	if r := s.rows[slotA1]; r.resolved() && s.base[r.holds] != contentNone {
		if below := s.rows[slotA0]; !below.resolved() || below.holds != s.base[r.holds] {
			return NothingLost
		}
	}
	return Kept
}

// checkTxn checks P1, P2, P3, P5 and the half of P6 that is about answers.
func (m *machine) checkTxn(s *state, y txnID) Promise {
	t := s.txns[y]
	shown, intact := 0, true
	for _, at := range m.sc.entries[y] {
		r := s.rows[at]
		own := r.by == y && r.status != statusNone
		if own && (r.resolved() || s.objects[at] == r.holds && m.described(s, at)) {
			shown++
		}
		replayed := r.resolved() && r.holds == m.sc.content(y)
		intact = intact && (own && r.resolved() || replayed) && (s.objects[at] == r.holds || s.cleaned&(1<<at) != 0)
	}
	switch {
	case shown > 0 && shown < len(m.sc.entries[y]):
		return WholeOrNothing
	case t.answers == answeredOK|answeredNo:
		return ReplaySameAnswer
	case t.answers == answeredNo && t.status == statusCommitted:
		return AbortedUnseen
	case t.answers == answeredOK && m.hasRival(s, y):
		return OneOwner
	case t.answers == answeredOK && !intact:
		return AckedStays
	default:
		return Kept
	}
}

// hasRival reports whether another transaction with other bytes was acknowledged for one of the slots.
func (m *machine) hasRival(s *state, y txnID) bool {
	for z := range numTxns {
		if z == y || s.txns[z].answers&answeredOK == 0 || m.sc.content(z) == m.sc.content(y) {
			continue
		}
		for _, at := range m.sc.entries[z] {
			for _, mine := range m.sc.entries[y] {
				if at == mine {
					return true
				}
			}
		}
	}
	return false
}

// checkSlot checks what a reader of one slot is shown (P6, P8), and that a bypassing writer's version stays (P2, P3).
func (m *machine) checkSlot(s *state, at slot) Promise {
	r, o := s.rows[at], s.objects[at]
	cleaned := s.cleaned&(1<<at) != 0
	if s.taken&(1<<at) != 0 && !cleaned && o != contentR && o != contentQ {
		if o == contentNone {
			return AckedStays
		}
		return OneOwner
	}
	if r.status != statusCommitted || !m.described(s, at) {
		return Kept
	}
	switch {
	case r.by == adopted && m.aborted(s, r.holds), o != r.holds && m.aborted(s, o):
		return AbortedUnseen
	case o != r.holds:
		return Readable
	default:
		return Kept
	}
}

// settled reports whether nothing is left to do: no transaction is pending, no request is under way, and no slot holds an aborted
// content. Every state must be able to come there by the system's own steps (P7).
func (m *machine) settled(s *state) bool {
	for k := range s.drivers {
		if p := s.drivers[k].phase; p != phaseIdle && p != phaseDone && p != phaseDead {
			return false
		}
	}
	for y := range numTxns {
		st := s.txns[y].status
		if st == statusPending || st == statusAborted && m.hasZombie(s, y) {
			return false
		}
	}
	return true
}
