// Package check compares a catalog with storage and mends what can be mended: what `lancerest check` does.
//
// What does not live here: how a chain is brought together with storage, which is package chain's, and how findings are shown.
package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/commit/finish"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// Options say how to compare the catalog with storage.
type Options struct {
	// Repair mends what can be mended without losing anything; otherwise nothing is changed.
	Repair bool
	// Beside says that a server runs: it has seen to the manifests that the state kept before, and what is missing since a client removed.
	Beside bool
	// PendingAge is how old a pending transaction must be to count as left behind (0: any is).
	PendingAge time.Duration
	// StagedAge is how old a staged manifest that nobody needs must be to count as left over.
	StagedAge time.Duration
	// Report is told of every finding, in the order of tables. It is called from one goroutine at a time.
	Report func(Finding)
}

// Finding is one difference between the catalog and storage.
type Finding struct {
	Kind    Kind
	Table   string
	Branch  lance.Branch
	Version lance.VersionNumber
	What    string // what is wrong
	Action  string // what mends it, "" if that is for a person to decide
	Mended  bool
}

// Kind names what is wrong.
type Kind string

// Note reports that findings of the kind are for the operator to know, and that nothing is wrong.
func (k Kind) Note() bool { return k == Storage || k == Purge }

// The kinds of findings.
const (
	Pending  Kind = "pending"  // a transaction that nobody finished
	Missing  Kind = "missing"  // a version without its manifest
	Foreign  Kind = "foreign"  // a manifest without its version
	Diverged Kind = "diverged" // a version whose manifest holds something else
	Staged   Kind = "staged"   // a staged manifest that nobody needs
	Branch   Kind = "branch"   // a branch that was deleted in storage
	Job      Kind = "job"      // work after a commit that keeps failing
	Storage  Kind = "storage"  // a storage that does not keep writers apart as others do; this is a note, and nothing is wrong yet
	Purge    Kind = "purge"    // a dropped table whose objects are being removed; a note too
	Table    Kind = "table"    // something that keeps the table from being checked: a damaged reference, a root that is not allowed, files that cannot be read
)

// Summary is what a check went through.
type Summary struct {
	Tables, Versions int
	Wrong            int // findings that are not mended
	Mended           int
	// Tags and Branches are the references of the tables, and Pinned the versions that they keep from being deleted.
	Tags, Branches, Pinned int
}

// Subject is the catalog that is checked. All fields are required.
type Subject struct {
	State     *state.State
	Places    *place.Places
	Completer *finish.Completer
	Chains    *chain.Chains
	// Kinds are the kinds of jobs that the catalog queues, and RunJob performs one.
	Kinds  []string
	RunJob func(context.Context, store.Job) error
}

// Run compares rows with storage, table by table. It works beside a running server: what changes while it looks is looked at again
// before it is reported. An error means that the check could not be completed.
func Run(ctx context.Context, s Subject, opts Options) (Summary, error) {
	k := &checker{c: s, opts: opts}
	if err := k.c.Places.Prove(ctx); err != nil {
		return k.sum, err
	}
	k.unjudged()
	if !opts.Beside {
		var err error
		if k.kept, err = k.c.Completer.KeptUnsynced(ctx); err != nil {
			return k.sum, err
		}
	}
	if err := k.pending(ctx); err != nil {
		return k.sum, err
	}
	if err := k.jobs(ctx); err != nil {
		return k.sum, err
	}
	page := store.TablePage{AfterNamespace: -1, Limit: checkPage}
	for {
		var tables []lance.Table
		err := k.c.State.View(ctx, func(r store.Reader) (err error) {
			tables, err = r.ListAllTables(page)
			return err
		})
		if err != nil {
			return k.sum, err
		}
		for _, t := range tables {
			if err := k.tolerant(ctx, t, k.table(ctx, t)); err != nil {
				return k.sum, fmt.Errorf("check table %q: %w", lance.ShowID(t.Path), err)
			}
			page.AfterNamespace, page.AfterName = t.Namespace, t.Path.Name()
		}
		if len(tables) < checkPage {
			return k.sum, nil
		}
	}
}

// checkPage is how many rows a check reads at a time, and checkMax up to how many pending transactions, and jobs of a kind, it looks at.
const (
	checkPage = 1000
	checkMax  = 10_000
)

// checker is one run of Run.
type checker struct {
	c    Subject
	opts Options
	sum  Summary
	kept map[lance.Slot]bool // versions whose manifests the state keeps
}

// found reports a finding, after mending it where that is asked for and mend is not nil.
func (k *checker) found(ctx context.Context, f Finding, mend func(context.Context) error) error {
	if k.opts.Repair && mend != nil {
		err := mend(ctx)
		f.Mended = err == nil
		if err != nil {
			f.What += "; mending failed: " + withCauses(err)
		}
	}
	if f.Mended {
		k.sum.Mended++
	} else {
		k.sum.Wrong++
	}
	k.opts.Report(f)
	return nil
}

// withCauses is an error's text with the causes that a caller over HTTP is not told.
func withCauses(err error) string {
	var e *api.Error
	if errors.As(err, &e) && e.Cause != nil {
		return e.Message + ": " + withCauses(e.Cause)
	}
	return err.Error()
}

// unjudged notes which roots rely on this server alone.
func (k *checker) unjudged() {
	for _, r := range k.c.Places.Roots() {
		if r.Unjudged != "" {
			k.opts.Report(Finding{Kind: Storage, What: r.Warning()})
		}
	}
}

// pending looks for transactions that nobody is finishing.
func (k *checker) pending(ctx context.Context) error {
	before := time.Now().Add(-k.opts.PendingAge)
	if k.opts.PendingAge == 0 {
		before = before.Add(time.Hour) // any is, also one that another machine's clock dates later
	}
	var ids []lance.TransactionID
	err := k.c.State.View(ctx, func(r store.Reader) (err error) {
		ids, err = r.PendingTransactions(before, checkMax)
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		f := Finding{Kind: Pending, What: fmt.Sprintf("transaction %s is reserved and not resolved", id), Action: "finish it"}
		if err := k.found(ctx, f, func(ctx context.Context) error { return k.c.Completer.Help(ctx, id) }); err != nil {
			return err
		}
	}
	return nil
}

// jobs reports work that has failed before. What merely waits is no fault.
func (k *checker) jobs(ctx context.Context) error {
	for _, kind := range k.c.Kinds {
		var jobs []store.Job
		err := k.c.State.View(ctx, func(r store.Reader) (err error) {
			jobs, err = r.Jobs(kind, 0, checkMax)
			return err
		})
		if err != nil {
			return err
		}
		for _, job := range jobs {
			if job.Attempts == 0 {
				k.waiting(job)
				continue
			}
			f := Finding{Kind: Job, What: fmt.Sprintf("job %s %s failed %d times, last with: %s", kind, job.Payload, job.Attempts, job.LastErr), Action: "run it"}
			if err := k.found(ctx, f, func(ctx context.Context) error { return k.runJob(ctx, job) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// waiting notes a purge that is under way, or about to begin: until it is through its objects are there and its location is taken.
func (k *checker) waiting(job store.Job) {
	var p finish.PurgePayload
	if job.Kind != finish.JobPurge || json.Unmarshal([]byte(job.Payload), &p) != nil {
		return
	}
	k.opts.Report(Finding{Kind: Purge, What: "the objects of a dropped table at " + p.Location + " are being removed"})
}

func (k *checker) runJob(ctx context.Context, job store.Job) error {
	if err := k.c.RunJob(ctx, job); err != nil {
		return err
	}
	return k.c.State.Update(ctx, func(tx store.Tx) error { return tx.DeleteJob(job.ID) })
}

// tolerant makes a finding of what is wrong with one table alone, so that the others are looked at too: also that the storage refuses to show it,
// as long as the storage itself and the state are there.
func (k *checker) tolerant(ctx context.Context, t lance.Table, err error) error {
	switch code := api.CodeOf(err); {
	case err == nil:
		return nil
	case code == api.CodeInvalidTableState:
	case code != api.CodePermissionDenied && code != api.CodeServiceUnavailable, k.c.State.Ping(ctx) != nil, k.c.Places.Prove(ctx) != nil:
		return err
	}
	return k.found(ctx, Finding{Kind: Table, Table: lance.ShowID(t.Path), What: withCauses(err)}, nil)
}

// table compares all chains of a table.
func (k *checker) table(ctx context.Context, t lance.Table) error {
	k.sum.Tables++
	p, err := k.c.Places.At(t.Location)
	if err != nil || !chain.Managed(t) {
		return err // of a table that is not managed storage alone knows what is right
	}
	var branches []lance.Branch
	err = k.c.State.View(ctx, func(r store.Reader) (err error) {
		branches, err = r.Branches(t.ID)
		return err
	})
	if err != nil {
		return err
	}
	refs, err := p.Branches(ctx)
	if err := k.tolerant(ctx, t, err); err != nil {
		return err
	}
	for _, ref := range refs {
		branches = append(branches, ref.Name)
	}
	branches = append(branches, lance.Main)
	slices.Sort(branches)
	for _, b := range slices.Compact(branches) {
		if err := k.chain(ctx, chain.Located{Chain: lance.Chain{Table: t.ID, Branch: b}, Place: p, Path: t.Path}); err != nil {
			return err
		}
	}
	return k.references(ctx, t, p, refs)
}

// listed is what storage has of a chain.
type listed struct {
	final  map[lance.VersionNumber]objstore.Info
	staged []objstore.Info
}

// shows reports whether the listing has a version's manifest as it was published.
func (l listed) shows(cp chain.Located, row lance.Version) bool {
	info, ok := l.final[row.Number]
	return ok && info.Key == cp.Place.Final(cp.Chain.Branch, row.Number, row.Scheme) && info.ETag == row.ETag && info.Size == row.Size
}

// chain compares one chain: first its rows with what storage lists, then what storage lists with its rows.
func (k *checker) chain(ctx context.Context, cp chain.Located) error {
	gone, err := k.deletedBranch(ctx, cp)
	if err != nil || gone {
		return err
	}
	there, err := k.list(ctx, cp)
	if err != nil {
		return err
	}
	head, err := k.c.State.Head(ctx, cp.Chain)
	if err != nil {
		return err
	}
	needed := map[string]bool{head.Staged: true}
	for after := lance.VersionNumber(0); ; {
		var rows []lance.Version
		err := k.c.State.View(ctx, func(r store.Reader) (err error) {
			rows, err = r.ListVersions(cp.Chain, store.VersionPage{After: after, Limit: checkPage})
			return err
		})
		if err != nil {
			return err
		}
		if err := k.rows(ctx, cp, rows, head, there, needed); err != nil {
			return err
		}
		if len(rows) < checkPage {
			break
		}
		after = rows[len(rows)-1].Number
	}
	if err := k.foreign(ctx, cp, there, head); err != nil {
		return err
	}
	return k.leftovers(ctx, cp, there, needed)
}

// rows compares a page of a chain's rows with what was listed, from which it takes them. Staged manifests of what is pending are needed.
func (k *checker) rows(ctx context.Context, cp chain.Located, rows []lance.Version, head lance.Version, there listed, needed map[string]bool) error {
	for _, row := range rows {
		shown := there.shows(cp, row)
		delete(there.final, row.Number)
		if row.State == lance.VersionPending {
			needed[row.Staged] = true
			continue
		}
		k.sum.Versions++
		if shown {
			continue
		}
		if err := k.row(ctx, cp, row, head); err != nil {
			return err
		}
	}
	return nil
}

// deletedBranch finds rows of a branch that a client deleted in storage.
func (k *checker) deletedBranch(ctx context.Context, cp chain.Located) (bool, error) {
	if cp.Chain.Branch == lance.Main {
		return false, nil
	}
	_, err := cp.Place.ReadBranch(ctx, cp.Chain.Branch)
	if err == nil || !errors.Is(err, objstore.ErrNotFound) {
		return false, nil // a damaged file is reported by reading it; here it means that the branch is there
	}
	head, err := k.c.State.Head(ctx, cp.Chain)
	if err != nil || head.Number == 0 || head.State == lance.VersionPending {
		return head.Number == 0, err
	}
	_, err = cp.Place.Objects.Head(ctx, cp.Place.Final(cp.Chain.Branch, head.Number, head.Scheme))
	if err == nil || !errors.Is(err, objstore.ErrNotFound) {
		return false, ignoreAbsent(err)
	}
	f := k.finding(Branch, cp, head.Number, "the branch was deleted in storage", "remove its rows")
	return true, k.found(ctx, f, func(ctx context.Context) error { return k.c.Chains.ForgetDeleted(ctx, cp) })
}

func ignoreAbsent(err error) error {
	if errors.Is(err, objstore.ErrNotFound) {
		return nil
	}
	return err
}

func (k *checker) finding(kind Kind, cp chain.Located, v lance.VersionNumber, what, action string) Finding {
	return Finding{Kind: kind, Table: lance.ShowID(cp.Path), Branch: cp.Chain.Branch, Version: v, What: what, Action: action}
}

// list reads the names in a chain's _versions directory.
func (k *checker) list(ctx context.Context, cp chain.Located) (listed, error) {
	there := listed{final: map[lance.VersionNumber]objstore.Info{}}
	prefix := lance.VersionsPrefix(cp.Place.Dir, cp.Chain.Branch)
	for info, err := range cp.Place.Objects.List(ctx, prefix, "") {
		if err != nil {
			return there, place.StorageError("list "+prefix, err)
		}
		name := strings.TrimPrefix(info.Key, prefix)
		if v, _, ok := lance.ParseManifestName(name); ok {
			if !v.Detached() {
				there.final[v] = info
			}
		} else if final, _, cut := strings.Cut(name, "-"); cut && isFinal(final) {
			there.staged = append(there.staged, info)
		}
	}
	return there, nil
}

func isFinal(name string) bool {
	_, _, ok := lance.ParseManifestName(name)
	return ok
}

// row sees that a committed version's manifest is there and its own.
func (k *checker) row(ctx context.Context, cp chain.Located, row, head lance.Version) error {
	there, err := k.c.Chains.StillThere(ctx, cp, row)
	if err != nil || there {
		return err
	}
	now, err := k.c.State.RowIn(ctx, row.Slot)
	if err != nil || now.State != row.State || now.Digest != row.Digest {
		return err // it changed meanwhile
	}
	key := cp.Place.Final(cp.Chain.Branch, row.Number, row.Scheme)
	if k.kept[row.Slot] {
		return k.found(ctx, k.finding(Missing, cp, row.Number,
			"its manifest "+key+" is gone or damaged, as by a power failure; the state keeps it, and the next start of the server writes it again, as does a check with --repair while none runs", ""), nil)
	}
	if row.Number != head.Number {
		if err := k.c.Chains.ProveTable(ctx, cp); err != nil {
			return k.found(ctx, k.finding(Missing, cp, row.Number, "its manifest "+key+" is gone, and so is more of the table", ""), nil)
		}
		f := k.finding(Missing, cp, row.Number, "its manifest "+key+" is gone, as after a client's cleanup", "mark it pruned")
		return k.found(ctx, f, func(ctx context.Context) error { return k.c.Chains.Prune(ctx, cp, []lance.VersionNumber{row.Number}) })
	}
	_, err = cp.Place.Objects.Head(ctx, key)
	if err == nil {
		return k.found(ctx, k.finding(Diverged, cp, row.Number, "the manifest "+key+" of the latest version holds something else than was committed", ""), nil)
	}
	staged, readErr := cp.Place.Objects.Head(ctx, cp.Place.Staged(cp.Chain.Branch, row.Staged))
	if row.Staged == "" || readErr != nil {
		return k.found(ctx, k.finding(Missing, cp, row.Number, "the manifest "+key+" of the latest version is gone, and so is its staged copy", ""), nil)
	}
	f := k.finding(Missing, cp, row.Number, "the manifest "+key+" of the latest version is gone", "publish it again from "+staged.Key)
	return k.found(ctx, f, func(ctx context.Context) error { return k.c.Completer.Republish(ctx, cp.Place, row) })
}

// foreign looks at manifests that no committed or pending row knows. Those of pruned and deleted versions wait for their removal.
func (k *checker) foreign(ctx context.Context, cp chain.Located, there listed, head lance.Version) error {
	numbers := make([]lance.VersionNumber, 0, len(there.final))
	for v := range there.final {
		numbers = append(numbers, v)
	}
	slices.Sort(numbers)
	for _, v := range numbers {
		slot := lance.Slot{Chain: cp.Chain, Number: v}
		row, err := k.c.State.RowIn(ctx, slot)
		if err != nil {
			return err
		}
		if row.Number != 0 {
			if err := k.pruned(ctx, cp, row); err != nil {
				return err
			}
			continue
		}
		finds, err := k.c.Chains.Inspect(ctx, cp, []objstore.Info{there.final[v]}, chain.AsItIs)
		if err != nil {
			return err
		}
		key := there.final[v].Key
		if len(finds) == 0 {
			if _, err := cp.Place.Objects.Head(ctx, key); errors.Is(err, objstore.ErrNotFound) {
				continue
			}
			if err := k.found(ctx, k.finding(Foreign, cp, v, key+" is no readable manifest of this version, and stands in its place", ""), nil); err != nil {
				return err
			}
			continue
		}
		f := k.finding(Foreign, cp, v, key+" was published past the catalog, or belongs to an aborted transaction", "adopt it, or remove it if it is the latter")
		err = k.found(ctx, f, func(ctx context.Context) error {
			_, err := k.c.Chains.AdoptSlot(ctx, cp, v)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pruned finds a version that was marked pruned and whose very manifest is there, as after a restore from a backup.
func (k *checker) pruned(ctx context.Context, cp chain.Located, row lance.Version) error {
	if row.State != lance.VersionPruned {
		return nil
	}
	there, err := k.c.Chains.StillThere(ctx, cp, row)
	if err != nil || !there {
		return err
	}
	f := k.finding(Foreign, cp, row.Number, "it counts as cleaned up, and its manifest is there", "show it again")
	return k.found(ctx, f, func(ctx context.Context) error { return k.c.Chains.Restore(ctx, row.Slot) })
}

// leftovers looks for staged manifests that no row needs and that are too old to be about to be committed (case H12).
func (k *checker) leftovers(ctx context.Context, cp chain.Located, there listed, needed map[string]bool) error {
	prefix := lance.VersionsPrefix(cp.Place.Dir, cp.Chain.Branch)
	for _, info := range there.staged {
		name := strings.TrimPrefix(info.Key, prefix)
		if needed[name] || time.Now().Sub(info.Modified) < k.opts.StagedAge {
			continue
		}
		f := k.finding(Staged, cp, 0, "the staged manifest "+info.Key+" is left over since "+info.Modified.UTC().Format(time.RFC3339), "remove it")
		if err := k.found(ctx, f, func(ctx context.Context) error { return cp.Place.Objects.Delete(ctx, info.Key) }); err != nil {
			return err
		}
	}
	return nil
}
