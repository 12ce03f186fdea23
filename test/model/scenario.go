package model

// Scenario bounds one exploration: which transactions there are, who runs, and what may go wrong how often.
type Scenario struct {
	Name  string
	About string

	entries  [numTxns][]slot  // of T, U, V; E always has A:N+1
	drivers  []txnID          // the requests that are sent, each at any time; one transaction twice is a replay
	contents [numTxns]content // zero = the transaction's own bytes
	late     []txnID          // transactions whose client stages them upon what a listing of storage shows at A:N
	branch   bool             // A is a branch without versions: any number may come first

	helpers  int
	crashes  uint8
	timeouts uint8
	flights  int   // operations in flight at a time
	bypasses uint8 // versions that bypassing writers put
	bypassAt []slot
	cleanups uint8

	onPending     bool // a bypassing writer builds upon a version that is still pending
	adopter       bool // background adoption runs
	collects      bool // staged objects of committed transactions are deleted
	clientDeletes bool // clients delete their staging once they are shown another path
	janitor       bool // somebody removes T's staging at any time
	blindCleanup  bool // the cleanup takes the highest version in storage for the head, and does not ask the catalog
}

// content returns the bytes that transaction x publishes.
func (sc *Scenario) content(x txnID) content {
	if c := sc.contents[x]; c != contentNone {
		return c
	}
	return contentT + content(x)
}

// Scenarios returns the explorations in which everything must hold, the smallest first.
func Scenarios() []*Scenario {
	a, b, both := []slot{slotA0}, []slot{slotB0}, []slot{slotA0, slotB0}
	next := []slot{slotA1}
	all := []*Scenario{
		{
			Name: "staging", About: "T on A and B, a janitor removes its staging at any time",
			entries: [numTxns][]slot{txnT: both}, drivers: []txnID{txnT}, helpers: 1, crashes: 1, timeouts: 1, flights: 1,
			bypasses: 1, bypassAt: both, collects: true, janitor: true,
		},
		{
			Name: "replay", About: "T sent twice, staging deleted by server and client, R takes B",
			entries: [numTxns][]slot{txnT: both}, drivers: []txnID{txnT, txnT}, helpers: 1, crashes: 1, timeouts: 1, flights: 1,
			bypasses: 1, bypassAt: b, collects: true, clientDeletes: true,
		},
		{
			Name: "bypass", About: "T on A and B, R takes a slot, U follows on A, adoption in the background",
			entries: [numTxns][]slot{txnT: both, txnU: a}, drivers: []txnID{txnT, txnU}, helpers: 1, crashes: 1, timeouts: 1, flights: 1,
			bypasses: 1, bypassAt: both, adopter: true,
		},
		{
			Name: "opposite", About: "T on A and B, U on B and A, R takes a slot",
			entries: [numTxns][]slot{txnT: both, txnU: {slotB0, slotA0}}, drivers: []txnID{txnT, txnU}, helpers: 1, crashes: 1, flights: 1,
			bypasses: 1, bypassAt: b, clientDeletes: true,
		},
		{
			Name: "resend", About: "U sends T's bytes for A again after R took B",
			entries: [numTxns][]slot{txnT: both, txnU: a}, contents: [numTxns]content{txnU: contentT}, drivers: []txnID{txnT, txnU},
			helpers: 1, crashes: 1, timeouts: 1, flights: 2, bypasses: 1, bypassAt: b,
		},
		{
			Name: "next", About: "U builds A:N+1 upon what storage shows, V takes A:N after T, R takes B",
			entries: [numTxns][]slot{txnT: both, txnU: next, txnV: a}, late: []txnID{txnU}, drivers: []txnID{txnT, txnU, txnV},
			helpers: 1, crashes: 0, timeouts: 1, flights: 1, bypasses: 1, bypassAt: b,
		},
		{
			Name: "adopt-next", About: "R takes A:N or A:N+1 of a single table, U builds A:N+1 upon it",
			entries: [numTxns][]slot{txnT: a, txnU: next}, late: []txnID{txnU}, drivers: []txnID{txnT, txnU},
			helpers: 1, crashes: 1, timeouts: 1, flights: 1, bypasses: 2, bypassAt: []slot{slotA0, slotA1}, adopter: true,
		},
		{
			Name: "cleanup", About: "U takes A:N after T, V builds A:N+1, a client's cleanup deletes A:N, an old put lands",
			entries: [numTxns][]slot{txnT: both, txnU: a, txnV: next}, late: []txnID{txnV}, drivers: []txnID{txnT, txnU, txnV},
			helpers: 1, timeouts: 1, flights: 1, bypasses: 1, bypassAt: b, cleanups: 1,
		},
		{
			Name: "branch", About: "T begins branch A at N and writes B, V begins it at N+1, R takes a slot",
			entries: [numTxns][]slot{txnT: both, txnV: next}, branch: true, drivers: []txnID{txnT, txnV},
			helpers: 1, crashes: 1, timeouts: 1, flights: 1, bypasses: 1, bypassAt: both, adopter: true,
		},
		{
			Name: "next-batch", About: "T on A:N and B:N, U on A:N+1 and B:N, R takes B",
			entries: [numTxns][]slot{txnT: both, txnU: {slotA1, slotB0}}, late: []txnID{txnU}, drivers: []txnID{txnT, txnU},
			helpers: 1, crashes: 1, timeouts: 1, flights: 1, bypasses: 1, bypassAt: b, clientDeletes: true,
		},
		{
			Name: "consecutive", About: "T writes A:N and A:N+1, U takes A:N, R takes a slot",
			entries: [numTxns][]slot{txnT: {slotA0, slotA1}, txnU: a}, drivers: []txnID{txnT, txnU},
			helpers: 1, crashes: 1, timeouts: 1, flights: 1, bypasses: 1, bypassAt: []slot{slotA0, slotA1},
		},
		{
			Name: "helpers", About: "T driven by one server and helped by two, two crashes, R takes a slot",
			entries: [numTxns][]slot{txnT: both}, drivers: []txnID{txnT}, helpers: 2, crashes: 2, timeouts: 1, flights: 2,
			bypasses: 1, bypassAt: b,
		},
	}
	return withEcho(all)
}

// Limits returns the explorations in which a promise breaks although every rule is in force: what writers that bypass the catalog
// can do to it and no server can prevent. In the first it is P9, in the second P8.
func Limits() []*Scenario {
	both := []slot{slotA0, slotB0}
	return withEcho([]*Scenario{
		{
			Name: "build-on-pending", About: "one bypassing writer builds A:N+1 upon T's A:N while T is pending, another takes B:N",
			entries: [numTxns][]slot{txnT: both}, drivers: []txnID{txnT}, helpers: 1,
			bypasses: 2, bypassAt: []slot{slotA1, slotB0}, onPending: true, adopter: true,
		},
		{
			Name: "blind-cleanup", About: "a cleanup that does not ask the catalog deletes A:N below U's pending A:N+1",
			entries: [numTxns][]slot{txnT: {slotA0}, txnU: {slotA1, slotB0}}, drivers: []txnID{txnT, txnU}, late: []txnID{txnU}, helpers: 1,
			bypasses: 1, bypassAt: []slot{slotB0}, cleanups: 1, blindCleanup: true,
		},
	})
}

// Deeper returns the scenario with one more crash and one more timeout, for explorations that take minutes and gigabytes.
func (sc *Scenario) Deeper() *Scenario {
	deep := *sc
	deep.crashes++
	deep.timeouts++
	deep.flights = 2
	return &deep
}

// withEcho adds the entry of the server's own transaction to each scenario.
func withEcho(all []*Scenario) []*Scenario {
	for _, sc := range all {
		sc.entries[txnE] = []slot{slotA1}
	}
	return all
}
