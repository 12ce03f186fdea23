package model

// Rule is one rule of the protocol that the model can take out.
type Rule uint8

// The rules, in the order in which a commit meets them. Text says what each asks; how it behaves when it is taken out stands
// where the model asks for it.
const (
	ReplayBeforeStaging Rule = iota
	LookAgain
	AllOrNothing
	ReserveFirst
	RecogniseReplay
	ConflictAfterResolve
	HelpPendingHead
	HeadPlusOne
	AdoptBeforeNumber
	RefuseAbortedBytes
	EchoAfterAbort
	CreateOnly
	EqualBytesDone
	RemoveZombie
	ResolveOnlyPending
	AbortOnlyPending
	AbortWhenStagingGone
	LookAgainBeforeAbort
	RecordAborted
	RemoveOnAbort
	RemoveOnlyOwn
	ConditionalDelete
	AdoptWinner
	JudgeAfterAbort
	NeverAdoptAborted
	AdoptCheckInTx
	HelpBeforeRead
	BackgroundHelp
	LookComparesContent
	KeepStagingWhilePending
	GoOnAfterHangup
	UnknownIsNoRefusal
	numRules
)

// allRules is the protocol as it is meant to be.
const allRules ruleSet = 1<<numRules - 1

// ruleSet is a set of rules in force.
type ruleSet uint64

// has reports whether the rule is in force.
func (s ruleSet) has(r Rule) bool { return s&(1<<r) != 0 }

// without takes a rule out.
func (s ruleSet) without(r Rule) ruleSet { return s &^ (1 << r) }

// ruleText says of each rule where it stands and what it asks.
type ruleText struct{ name, cites, text string }

// words is the one table of what is said about rules.
func (r Rule) words() ruleText {
	return [numRules]ruleText{
		ReplayBeforeStaging:     {"replay-before-staging", "C5", "a missing staged manifest is refused only after looking for a replay"},
		LookAgain:               {"look-again", "C4", "after adopting, the rows are read again; nothing is answered from the earlier view"},
		AllOrNothing:            {"all-or-nothing", "C5", "all rows of a transaction are reserved in one database transaction"},
		ReserveFirst:            {"reserve-first", "C2", "nothing is published before the reservation is known to be durable"},
		RecogniseReplay:         {"recognise-replay", "C5", "rows with the same staged paths are a replay, not a conflict"},
		ConflictAfterResolve:    {"conflict-after-resolve", "C8", "a pending winner is helped to its end before a conflict is answered"},
		HelpPendingHead:         {"help-pending-head", "C5, C7", "a number that follows a pending version waits for its transaction's end"},
		HeadPlusOne:             {"head-plus-one", "C5", "a version must follow the head of its chain"},
		AdoptBeforeNumber:       {"adopt-before-number", "C9", "storage is looked at before a commit is refused by number"},
		RefuseAbortedBytes:      {"refuse-aborted-bytes", "C5", "bytes of an aborted entry are refused in that slot"},
		EchoAfterAbort:          {"echo-after-abort", "C5", "the number after a slot with an aborted content is taken by an echo of the version in that slot"},
		CreateOnly:              {"create-only", "C6", "a final name is never overwritten"},
		EqualBytesDone:          {"equal-bytes-done", "C6", "equal bytes under the final name are a helper's work, not a foreign version"},
		RemoveZombie:            {"remove-zombie", "C10", "an aborted content met in a slot is removed, and publishing goes on"},
		ResolveOnlyPending:      {"resolve-only-pending", "C6", "only a pending transaction becomes committed, checked in the database"},
		AbortOnlyPending:        {"abort-only-pending", "C10", "only a pending transaction becomes aborted, checked in the database"},
		AbortWhenStagingGone:    {"abort-when-staging-gone", "C7", "a helper that finds neither final nor staged manifest aborts"},
		LookAgainBeforeAbort:    {"look-again-before-abort", "C7", "a helper that misses the staged manifest looks once more at the final name before it aborts"},
		RecordAborted:           {"record-aborted", "C10", "contents of aborted entries stay on record"},
		RemoveOnAbort:           {"remove-on-abort", "C10", "objects of an aborted transaction are removed, also by whoever meets one later"},
		RemoveOnlyOwn:           {"remove-only-own", "C10", "an abort removes only objects with the transaction's own contents"},
		ConditionalDelete:       {"conditional-delete", "C10", "removal compares the content and deletes in one step"},
		AdoptWinner:             {"adopt-winner", "C10", "after an abort the foreign version is adopted before the conflict is answered"},
		JudgeAfterAbort:         {"judge-after-abort", "C8, C10", "after an abort, by whomever, all slots are looked at anew to find the winner that the answer names"},
		NeverAdoptAborted:       {"never-adopt-aborted", "C9", "adoption refuses contents on record as aborted"},
		AdoptCheckInTx:          {"adopt-check-in-tx", "C9", "that check is part of the database transaction that adopts"},
		HelpBeforeRead:          {"help-before-read", "C7", "a read that meets a pending row helps first and never shows the row as it is"},
		BackgroundHelp:          {"background-help", "C7", "a background job finishes what a crash left, removals included"},
		LookComparesContent:     {"look-compares-content", "C9", "the look at the object of a version below the head compares it with the row"},
		KeepStagingWhilePending: {"keep-staging-while-pending", "C6", "staged manifests are deleted only after resolving"},
		GoOnAfterHangup:         {"go-on-after-hangup", "C11", "work goes on when the client hangs up"},
		UnknownIsNoRefusal:      {"unknown-is-no-refusal", "C11", "after reserving, an unknown outcome is never answered as a refusal"},
	}[r]
}

// String returns the rule's name, as used on the command line and in README.md.
func (r Rule) String() string { return r.words().name }

// Cites returns the numbers of the rules in docs/commit.md that the rule belongs to.
func (r Rule) Cites() string { return r.words().cites }

// Text returns the rule in one sentence.
func (r Rule) Text() string { return r.words().text }

// Rules returns every rule in the order in which a commit meets them.
func Rules() []Rule {
	rules := make([]Rule, numRules)
	for i := range rules {
		rules[i] = Rule(i)
	}
	return rules
}

// Promise is something that must hold in every reachable state.
type Promise uint8

// The promises. Kept means that none was broken.
const (
	Kept              Promise = iota
	WholeOrNothing            // readers of the catalog see all rows of a transaction or none
	AckedStays                // what was answered with success keeps its rows and, unless a cleanup took them, its objects
	OneOwner                  // two contents are never both acknowledged for a slot; a bypassing writer's is never overwritten
	ConflictHasWinner         // at the moment of the answer the winner's row is committed and its object there
	ReplaySameAnswer          // one batch is never answered with success and with a refusal
	AbortedUnseen             // neither in a row nor through the object of another's row
	Resolves                  // from every state the system's own steps lead to one where nothing is left to do
	Readable                  // the object of a described version is there, and is that version's
	NothingLost               // a committed N+1 was built upon the committed N: no lost update, no smuggled content
	numPromises
)

// String returns the promise's number and a few words.
func (p Promise) String() string {
	return [numPromises]string{
		Kept:              "holds",
		WholeOrNothing:    "P1 half a transaction is never visible",
		AckedStays:        "P2 an acknowledged commit keeps its rows and objects",
		OneOwner:          "P3 one slot is never given to two writers",
		ConflictHasWinner: "P4 a conflict is answered only when the winner can be read",
		ReplaySameAnswer:  "P5 a replay is answered as the first time",
		AbortedUnseen:     "P6 aborted or refused content never becomes visible",
		Resolves:          "P7 everything ends, and nothing is aborted or refused without a cause",
		Readable:          "P8 a described version has its manifest",
		NothingLost:       "P9 a version is built upon the version below it",
	}[p]
}
