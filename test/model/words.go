package model

import "strings"

// who takes a step.
type who uint8

const (
	whoDriver who = iota // plus the request's index
	whoHelper who = maxDrivers + iota - 1
	whoStorage
	whoAdopter
	whoCollector
	whoBypass
	whoClient
	whoCleanup
	whoJanitor
)

// act is what a step does.
type act uint8

const (
	actPrepare act = iota
	actLook
	actAdopt
	actReserve
	actHelp
	actAnswerReplay
	actConflict
	actRefuse
	actAdoptAt
	actPutAgain
	actEcho
	actPut
	actMeet
	actFetch
	actLookAgain
	actRemove
	actPass
	actResolve
	actAbort
	actAbortEarly
	actCrash
	actCrashPut
	actTimeoutPut
	actCrashDelete
	actTimeoutDelete
	actLatePut
	actLateDelete
	actUnstage
	actPrune
	actTake
	actStage
	actTakeAway
	actDescribe
	actHangUp
	actGiveUp
	numActs
)

// words of the acts; {x} stands for the transaction, {s} for the slot.
func (a act) words() string {
	return [numActs]string{
		actPrepare:       "reads {x}'s staging and rows",
		actLook:          "looks at {x}'s final names",
		actAdopt:         "adopts what it saw without rows",
		actReserve:       "reserves {x}",
		actHelp:          "helps {x}",
		actAnswerReplay:  "answers ok (replay)",
		actConflict:      "answers conflict",
		actRefuse:        "answers refused",
		actAdoptAt:       "adopts {s}",
		actPutAgain:      "puts what it read at {s} again, if it is gone",
		actEcho:          "reserves an echo at A:N+1",
		actPut:           "puts {x} at {s}",
		actMeet:          "meets an object at {s}",
		actFetch:         "finds {s} free, reads {x}'s staging",
		actLookAgain:     "finds no staging, looks at {s} again",
		actRemove:        "removes what it met at {s}",
		actPass:          "finds nothing to remove at {s}",
		actResolve:       "resolves {x}",
		actAbort:         "aborts {x}",
		actAbortEarly:    "aborts {x}, its put at {s} still in flight",
		actCrash:         "crashes",
		actCrashPut:      "crashes, its put at {s} still in flight",
		actTimeoutPut:    "gives up its put at {s}, still in flight, and tries again",
		actCrashDelete:   "crashes, its delete at {s} still in flight",
		actTimeoutDelete: "gives up its delete at {s}, still in flight, and tries again",
		actLatePut:       "late put lands at {s}",
		actLateDelete:    "late delete lands at {s}",
		actUnstage:       "deletes {x}'s staging",
		actPrune:         "marks {s} pruned",
		actTake:          "takes {s}",
		actStage:         "stages {x} upon what storage shows at {s}",
		actTakeAway:      "deletes {s}",
		actDescribe:      "is shown {s}, deletes its staging",
		actHangUp:        "stops because its client left",
		actGiveUp:        "answers 503 for an outcome it does not know",
	}[a]
}

// String names a slot as in docs/commit.md.
func (at slot) String() string { return [numSlots]string{"A:N", "A:N+1", "B:N"}[at] }

// String names a transaction.
func (x txnID) String() string { return [numTxns]string{"T", "U", "V", "echo"}[x] }

// text says the step in words.
func (st step) text(sc *Scenario) string {
	actor := ""
	switch {
	case st.who < whoHelper:
		actor = "server " + string(rune('1'+st.who)) + " (" + sc.drivers[st.who].String() + ")"
	case st.who == whoClient:
		actor = "client of " + st.txn.String()
	default:
		actor = [...]string{"helper", "storage:", "adoption", "collector", "R", "", "cleanup", "janitor"}[st.who-whoHelper]
	}
	act := strings.NewReplacer("{x}", st.txn.String(), "{s}", st.at.String()).Replace(st.act.words())
	return actor + " " + act
}
