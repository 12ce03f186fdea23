package model

// verdict is what the reserving database transaction finds.
type verdict struct {
	kind verdictKind
	txn  txnID // to help
	at   slot  // to adopt
}

type verdictKind uint8

const (
	free           verdictKind = iota // nothing stands against it
	helpFirst                         // a pending transaction is in the way
	adoptFirst                        // storage has a version that no row knows
	echoFirst                         // the number before may have shown an aborted content
	replayOK                          // these very rows are committed
	conflict                          // another's version is in the slot
	refused                           // no, and no winner to show
	unstaged                          // the staged manifest is missing
	refusedWrongly                    // refused though the number follows what storage shows
)

// judge decides on request k by the rows as they are now (C5, C8, C9).
func (m *machine) judge(s *state, k int) verdict {
	x := m.sc.drivers[k]
	if v := m.judgeReplay(s, x); v.kind != free {
		return v
	}
	if v := m.judgeRows(s, x); v.kind != free {
		return v
	}
	resent := s.recorded(m.sc.content(x)) && m.rules.has(RefuseAbortedBytes)
	if s.txns[x].status == statusAborted || resent {
		return m.judgeAborted(s, x)
	}
	if !s.drivers[k].holds {
		return verdict{kind: unstaged}
	}
	for _, at := range m.sc.entries[x] {
		if v := m.judgeNumber(s, x, at); v.kind != free {
			return v
		}
	}
	return verdict{}
}

// judgeReplay recognises the transaction's own rows: pending, they are helped; resolved, they are answered as the first time.
func (m *machine) judgeReplay(s *state, x txnID) verdict {
	if !m.rules.has(RecogniseReplay) {
		return verdict{}
	}
	pending := false
	for _, at := range m.sc.entries[x] {
		r := s.rows[at]
		if r.status == statusNone || r.by != x && (r.holds != m.sc.content(x) || !r.resolved()) {
			return verdict{}
		}
		pending = pending || r.status == statusPending
	}
	if pending {
		return verdict{kind: helpFirst, txn: x}
	}
	return verdict{kind: replayOK}
}

// judgeRows looks for rows in the way. A pending one is helped first; its transaction may yet be aborted and the slot free (C8).
func (m *machine) judgeRows(s *state, x txnID) verdict {
	taken := verdict{}
	for _, at := range m.sc.entries[x] {
		r := s.rows[at]
		switch {
		case r.status == statusPending && m.rules.has(ConflictAfterResolve):
			return verdict{kind: helpFirst, txn: r.by}
		case r.status == statusPending, r.status == statusCommitted && s.cleaned&(1<<at) == 0:
			taken.kind = conflict
		case r.status != statusNone && taken.kind == free:
			taken.kind = refused
		}
	}
	return taken
}

// judgeAborted answers for a transaction that was aborted: its winner, once adopted, has been found by judgeRows.
func (m *machine) judgeAborted(s *state, x txnID) verdict {
	for _, at := range m.sc.entries[x] {
		if !m.adoptable(s, at, s.objects[at]) {
			continue
		}
		if m.rules.has(AdoptWinner) {
			return verdict{kind: adoptFirst, at: at}
		}
		return verdict{kind: conflict}
	}
	return verdict{kind: refused}
}

// judgeNumber checks that the slot follows the head of its chain, as far as storage has it (C5, C9).
func (m *machine) judgeNumber(s *state, x txnID, at slot) verdict {
	if at == slotA0 && s.rows[slotA1].status != statusNone && m.sc.entries[x][len(m.sc.entries[x])-1] != slotA1 {
		return verdict{kind: refused}
	}
	if at != slotA1 || m.sc.entries[x][0] == slotA0 {
		return verdict{}
	}
	head := s.rows[slotA0]
	switch { // the slot is A:N+1, and the transaction does not bring A:N itself
	case head.status == statusPending && m.rules.has(HelpPendingHead):
		return verdict{kind: helpFirst, txn: head.by}
	case head.resolved():
		return m.judgeBurnt(s)
	case head.status == statusPending, m.sc.branch, !m.rules.has(HeadPlusOne):
		return verdict{}
	case !m.adoptable(s, slotA0, s.objects[slotA0]):
		return verdict{kind: refused}
	case m.rules.has(AdoptBeforeNumber):
		return verdict{kind: adoptFirst, at: slotA0}
	default:
		return verdict{kind: refusedWrongly}
	}
}

// judgeBurnt keeps the number after a slot that may have shown an aborted content from clients: whoever built upon that content
// asks for it, and nothing in a manifest tells (C5). The server takes it itself, with an echo of the version below.
func (m *machine) judgeBurnt(s *state) verdict {
	if s.burnt&(1<<slotA0) == 0 || !m.rules.has(EchoAfterAbort) {
		return verdict{}
	}
	if m.adoptable(s, slotA1, s.objects[slotA1]) {
		return verdict{kind: adoptFirst, at: slotA1}
	}
	if s.txns[txnE].status != statusNone {
		return verdict{kind: refused}
	}
	return verdict{kind: echoFirst}
}
