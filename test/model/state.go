package model

// content names the bytes of a manifest; each writer has its own, and zero is "no object".
type content uint8

const (
	contentNone content = iota
	contentT
	contentU
	contentV
	contentE
	contentR
	contentQ
	numContents
)

// txnID names a transaction. T, U and V are clients' batches; E is the server's own echo. R and Q bypass the catalog and have none.
type txnID uint8

const (
	txnT txnID = iota
	txnU
	txnV
	txnE
	numTxns
	// adopted stands in rows that no transaction brought.
	adopted txnID = 7
)

// slot is one version number of one chain.
type slot uint8

const (
	slotA0 slot = iota // table A, version N
	slotA1             // table A, version N+1
	slotB0             // table B, version N
	numSlots
)

// status is the state of a row or of a transaction.
type status uint8

const (
	statusNone status = iota
	statusPending
	statusCommitted
	statusAborted // transactions only
	statusPruned  // rows only: a cleanup removed the manifest
)

// row is a version row of the database.
type row struct {
	status status
	by     txnID
	holds  content
}

func (r row) resolved() bool { return r.status == statusCommitted || r.status == statusPruned }

// txn is a transaction's row, its staged objects and the answers that were given to its client.
type txn struct {
	status  status
	staged  uint8 // one bit an entry: the staged object is there
	answers uint8 // answeredOK | answeredNo
	excused bool  // somebody other than the server removed staging
}

const (
	answeredOK uint8 = 1 << iota
	answeredNo
)

// phase is where a process stands.
type phase uint8

const (
	phaseIdle phase = iota
	phaseLook
	phaseAdopt
	phaseReserve
	phaseReserveRest
	phasePublish
	phaseClean
	phaseDone
	phaseDead
)

// progress is what a process knows of one entry of the transaction that it works on.
type progress uint8

const (
	todo    progress = iota // nothing known, no bytes at hand
	bytes                   // the bytes are at hand, to be put
	done                    // the final object has them
	foreign                 // another's object is there
	gone                    // neither final nor staged object was there
	lost                    // and the final one was not there at a second look
	unseen                  // prepare: the view had no row
	stray                   // prepare: an object without a row
	zombie                  // plus the content that was met
)

// process is a server's work on one transaction: the driver of a request, or a helper.
type process struct {
	phase phase
	works txnID
	holds bool // the driver read all staged bytes of its own transaction
	entry [2]progress
}

// adopter is the background adoption: between its look at an object, its put of the same bytes (create-only, which makes them
// durable) and its database transaction anything may happen.
type adopter struct {
	at      slot
	content content
	put     bool
}

// flight is an operation that its process gave up but that may still land.
type flight struct {
	op      flightOp
	at      slot
	content content
}

type flightOp uint8

const (
	flightNone flightOp = iota
	flightPut
	flightDelete
)

// state is everything that the model knows. It is comparable: equal states are one.
type state struct {
	objects  [numSlots]content
	rows     [numSlots]row
	txns     [numTxns]txn
	drivers  [maxDrivers]process
	helpers  [maxHelpers]process
	adopter  adopter
	flights  [2]flight
	base     [numContents]content // what a content of slot A1 was built upon
	record   uint8                // one bit a content: on record as aborted
	burnt    uint8                // one bit a slot: an aborted content may have been seen there
	taken    uint8                // one bit a slot: a bypassing writer put its version there
	cleaned  uint8                // one bit a slot: a client's cleanup removed the object
	crashes  uint8
	timeouts uint8
	bypasses uint8
	cleanups uint8
	broken   Promise // broken by the step that led here
}

const (
	maxDrivers = 3
	maxHelpers = 2
)

func (s *state) recorded(c content) bool { return s.record&(1<<c) != 0 }

// fly adds an operation in flight, in canonical order; it reports false where there is no room or it is there already.
func (s *state) fly(f flight, limit int) bool {
	for i := range limit {
		if s.flights[i] == f {
			return false
		}
	}
	for i := range limit {
		if s.flights[i].op != flightNone {
			continue
		}
		s.flights[i] = f
		s.sortFlights()
		return true
	}
	return false
}

func (s *state) sortFlights() {
	if s.flights[0].less(s.flights[1]) {
		s.flights[0], s.flights[1] = s.flights[1], s.flights[0]
	}
}

func (f flight) less(g flight) bool {
	if f.op != g.op {
		return f.op < g.op
	}
	if f.at != g.at {
		return f.at < g.at
	}
	return f.content < g.content
}
