package model_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/test/model"
)

var update = flag.Bool("update", false, "write README.md anew")

// TestModel explores everything once. Whoever changes the protocol changes the model with it, and reads what README.md now says.
func TestModel(t *testing.T) {
	t.Parallel()
	rep := model.Run()
	for _, r := range rep.Whole {
		if r.Broken != model.Kept {
			t.Errorf("%s with every rule: breaks %s:\n\t%s", r.Scenario.Name, r.Broken, strings.Join(r.Trace, "\n\t"))
		}
	}
	for _, p := range rep.Proofs {
		if got, want := p.Broken, wantBroken()[p.Rule]; got != want {
			t.Errorf("without %s: %s; want %s", p.Rule, got, want)
		}
		if (p.Broken == model.Kept) != (p.Rule.Spare() != "") {
			t.Errorf("without %s: %s; yet the reason to keep it is %q", p.Rule, p.Broken, p.Rule.Spare())
		}
	}
	wantLimits := []model.Promise{model.NothingLost, model.Readable}
	for i, r := range rep.Limits {
		if r.Broken != wantLimits[i] {
			t.Errorf("limit %s: %s; want %s", r.Scenario.Name, r.Broken, wantLimits[i])
		}
	}
	compareReadme(t, rep.Markdown())
}

func compareReadme(t *testing.T, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile("README.md", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("README.md is not what the model says (run with -update), -README +model:\n%s", diff)
	}
}

// TestPromises checks that the rules together keep every promise: each is broken by taking out at least one.
func TestPromises(t *testing.T) {
	t.Parallel()
	broken := map[model.Promise]bool{}
	for _, p := range wantBroken() {
		broken[p] = true
	}
	for p := model.WholeOrNothing; p <= model.NothingLost; p++ {
		if !broken[p] {
			t.Errorf("no rule is there for %s", p)
		}
	}
}

// wantBroken says which promise breaks first when a rule is taken out.
func wantBroken() map[model.Rule]model.Promise {
	return map[model.Rule]model.Promise{
		model.ReplayBeforeStaging:     model.ReplaySameAnswer,
		model.LookAgain:               model.ConflictHasWinner,
		model.AllOrNothing:            model.WholeOrNothing,
		model.ReserveFirst:            model.Readable,
		model.RecogniseReplay:         model.ConflictHasWinner,
		model.ConflictAfterResolve:    model.ConflictHasWinner,
		model.HelpPendingHead:         model.NothingLost,
		model.HeadPlusOne:             model.NothingLost,
		model.AdoptBeforeNumber:       model.Resolves,
		model.RefuseAbortedBytes:      model.AckedStays,
		model.EchoAfterAbort:          model.NothingLost,
		model.CreateOnly:              model.OneOwner,
		model.EqualBytesDone:          model.Resolves,
		model.RemoveZombie:            model.Resolves,
		model.ResolveOnlyPending:      model.AckedStays,
		model.AbortOnlyPending:        model.AckedStays,
		model.AbortWhenStagingGone:    model.Resolves,
		model.LookAgainBeforeAbort:    model.Kept,
		model.RecordAborted:           model.AbortedUnseen,
		model.RemoveOnAbort:           model.Resolves,
		model.RemoveOnlyOwn:           model.AckedStays,
		model.ConditionalDelete:       model.AckedStays,
		model.AdoptWinner:             model.ConflictHasWinner,
		model.JudgeAfterAbort:         model.ConflictHasWinner,
		model.NeverAdoptAborted:       model.AbortedUnseen,
		model.AdoptCheckInTx:          model.AbortedUnseen,
		model.HelpBeforeRead:          model.WholeOrNothing,
		model.BackgroundHelp:          model.Resolves,
		model.LookComparesContent:     model.AbortedUnseen,
		model.KeepStagingWhilePending: model.Resolves,
		model.GoOnAfterHangup:         model.Kept,
		model.UnknownIsNoRefusal:      model.AbortedUnseen,
	}
}
