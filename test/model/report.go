package model

import (
	"fmt"
	"strings"
	"sync"
)

// Report is what the whole model says: that everything holds with all rules, what each rule is for, and where the protocol ends.
type Report struct {
	Whole  []Result // one a scenario, with every rule in force
	Proofs []Proof  // one a rule
	Limits []Result // explorations in which a promise breaks with every rule in force
}

// Proof is an exploration without one rule.
type Proof struct {
	Rule Rule
	Result
}

// proofs names for each rule the scenario that shows what breaks without it; several where nothing does.
func (r Rule) proofs() []string {
	return [numRules][]string{
		ReplayBeforeStaging:     {"replay"},
		LookAgain:               {"replay"},
		AllOrNothing:            {"replay"},
		ReserveFirst:            {"bypass"},
		RecogniseReplay:         {"replay"},
		ConflictAfterResolve:    {"opposite"},
		HelpPendingHead:         {"adopt-next"},
		HeadPlusOne:             {"adopt-next"},
		AdoptBeforeNumber:       {"adopt-next"},
		RefuseAbortedBytes:      {"resend"},
		EchoAfterAbort:          {"next"},
		CreateOnly:              {"helpers"},
		EqualBytesDone:          {"helpers"},
		RemoveZombie:            {"bypass"},
		ResolveOnlyPending:      {"staging"},
		AbortOnlyPending:        {"staging"},
		AbortWhenStagingGone:    {"staging"},
		LookAgainBeforeAbort:    {"staging", "replay", "helpers"},
		RecordAborted:           {"bypass"},
		RemoveOnAbort:           {"helpers"},
		RemoveOnlyOwn:           {"helpers"},
		ConditionalDelete:       {"bypass"},
		AdoptWinner:             {"helpers"},
		JudgeAfterAbort:         {"helpers"},
		NeverAdoptAborted:       {"bypass"},
		AdoptCheckInTx:          {"bypass"},
		HelpBeforeRead:          {"helpers"},
		BackgroundHelp:          {"helpers"},
		LookComparesContent:     {"cleanup"},
		KeepStagingWhilePending: {"helpers"},
		GoOnAfterHangup:         {"staging", "replay", "helpers"},
		UnknownIsNoRefusal:      {"helpers"},
	}[r]
}

// Spare says why the rule stands although no promise breaks without it; "" for every rule that is needed.
func (r Rule) Spare() string {
	switch r {
	case LookAgainBeforeAbort:
		return "It saves a commit when staging vanishes just after the last put; safety comes from abort-only-pending."
	case GoOnAfterHangup:
		return "A hang-up is a crash, and crashes are survived; the rule spares readers the wait for a helper."
	default:
		return ""
	}
}

// Prove explores without the rule, in the scenarios that show what it is for, and returns the first that breaks, else the last.
func Prove(r Rule) Proof {
	var p Proof
	for _, name := range r.proofs() {
		for _, sc := range Scenarios() {
			if sc.Name == name && p.Broken == Kept {
				p = Proof{Rule: r, Result: Explore(sc, r)}
			}
		}
	}
	return p
}

// Run makes the whole report, two explorations at a time: it takes some seconds and some hundred MB.
func Run() Report {
	whole, limits := Scenarios(), Limits()
	rep := Report{
		Whole:  make([]Result, len(whole)),
		Proofs: make([]Proof, numRules),
		Limits: make([]Result, len(limits)),
	}
	var work []func()
	for i, sc := range whole {
		work = append(work, func() { rep.Whole[i] = Explore(sc) })
	}
	for i, sc := range limits {
		work = append(work, func() { rep.Limits[i] = Explore(sc) })
	}
	for _, r := range Rules() {
		work = append(work, func() { rep.Proofs[r] = Prove(r) })
	}
	const workers = 2 // each holds one state space in memory
	queue := make(chan func())
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for f := range queue {
				f()
			}
		})
	}
	for _, f := range work {
		queue <- f
	}
	close(queue)
	wg.Wait()
	return rep
}

// Markdown renders the report as README.md holds it.
func (rep Report) Markdown() string {
	var b strings.Builder
	b.WriteString(intro)
	for p := WholeOrNothing; p < numPromises; p++ {
		fmt.Fprintf(&b, "* %s.\n", p)
	}
	b.WriteString("\n## With every rule in force\n\n| scenario | what happens | states | |\n|---|---|---:|---|\n")
	for _, r := range rep.Whole {
		fmt.Fprintf(&b, "| %s | %s | %d | %s |\n", r.Scenario.Name, r.Scenario.About, r.States, r.Broken)
	}
	b.WriteString("\n## With one rule taken out\n\n| rule | | in words | breaks | shown by |\n|---|---|---|---|---|\n")
	for _, p := range rep.Proofs {
		breaks := p.Broken.String()
		if p.Broken == Kept {
			breaks = "nothing. " + p.Rule.Spare()
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", p.Rule, p.Rule.Cites(), p.Rule.Text(), breaks, strings.Join(p.Rule.proofs(), ", "))
	}
	b.WriteString(limitsIntro)
	for _, r := range rep.Limits {
		writeTrace(&b, r.Scenario.Name+": "+r.Scenario.About, r)
	}
	b.WriteString("\n## Shortest traces without a rule\n")
	for _, p := range rep.Proofs {
		if p.Broken != Kept {
			writeTrace(&b, "Without "+p.Rule.String(), p.Result)
		}
	}
	return b.String()
}

// writeTrace writes the steps of a broken result as a numbered list.
func writeTrace(b *strings.Builder, title string, r Result) {
	fmt.Fprintf(b, "\n%s\n\n", title)
	for i, line := range r.Trace {
		fmt.Fprintf(b, "%d. %s\n", i+1, line)
	}
	if r.Broken == Resolves && r.Stuck {
		fmt.Fprintf(b, "\nFrom here the system's own steps never come to an end: breaks %s.\n", r.Broken)
		return
	}
	fmt.Fprintf(b, "\nBreaks %s.\n", r.Broken)
}

// intro opens README.md.
const intro = `# The commit model

An executable model of the commit protocol (docs/commit.md), explored breadth first through every interleaving. This file is
what ` + "`go run ./test/model/cmd/commitmodel`" + ` prints; a test compares the two.

T, U and V are clients' transactions on the tables A and B; R is a writer that bypasses the catalog. Every server may crash or give up
an operation that lands later; helpers, adoption and cleanup run at any time. What must hold in every reachable state:

`

// limitsIntro opens the section on Limits.
const limitsIntro = `
## Where the protocol ends

Writers that bypass the catalog read storage, where the first half of a pending transaction already stands. With every rule in
force, these break a promise; only sending such writers through the catalog prevents it.
`
