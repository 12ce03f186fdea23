// Package commit makes versions: one, or many of many tables at once, together with what else a batch does. It finds the tables, reads what is
// staged, and takes all version numbers in one database transaction; package finish does the rest. It follows the numbered rules of
// docs/commit.md (C1 to C15), which comments cite.
//
// What does not live here: the form of requests and of answers, and the rules of names; those are package catalog's.
package commit

import (
	"context"
	"errors"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/auth"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/commit/finish"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// Options say what a Committer works on. All fields are required.
type Options struct {
	State     *state.State
	Places    *place.Places
	Completer *finish.Completer
	Chains    *chain.Chains
	// Learn is told of every manifest that is to be published, which has been read anyhow.
	Learn func(data []byte, summary *lance.VersionSummary)
	// Reserving is called in the database transaction that is about to reserve a commit, or to apply one that makes no version; where it returns an
	// error nothing is reserved, and the error is the commit's.
	Reserving func(context.Context, store.Tx, lance.TransactionID) error
}

// Committer performs commits. All methods are safe for concurrent use.
type Committer struct {
	state     *state.State
	places    *place.Places
	completer *finish.Completer
	chains    *chain.Chains
	learn     func([]byte, *lance.VersionSummary)
	reserving func(context.Context, store.Tx, lance.TransactionID) error
}

// New returns a Committer. Nothing is looked at.
func New(opts Options) *Committer {
	return &Committer{
		state: opts.State, places: opts.Places, completer: opts.Completer, chains: opts.Chains, learn: opts.Learn, reserving: opts.Reserving,
	}
}

// Step is one thing that a commit is asked to do, after the form of the request was checked.
type Step struct {
	Kind lance.EntryKind
	ID   lance.TableID

	// For lance.EntryCreateVersion.
	Branch       lance.Branch
	Version      lance.VersionNumber
	ManifestPath string
	ManifestSize int64 // as the writer says; 0 where it does not
	Scheme       lance.NamingScheme
	Metadata     map[string]string
	echo         bool // the catalog itself repeats the version before (C5)

	// For lance.EntryDeclare.
	Location   string // canonical; "" where the server picks one
	Properties map[string]string
	Refusal    *api.Error // what stands in the way, unless the commit is a replay

	// For lance.EntryDeleteVersions: first and last, both included.
	Ranges [][2]lance.VersionNumber
}

// work is a step together with the table it is about and the bytes it publishes.
type work struct {
	Step
	index int
	table lance.Table
	place place.Place
	slot  lance.Slot
	// live says that the table stands in the catalog; otherwise an earlier step, or this one, declares it.
	live bool
	// fault is the first thing found wrong with the step. It is kept until reserving has seen that the commit is no replay.
	fault *api.Error

	staged   string                                      // the staged manifest's name in its chain's _versions directory
	attach   bool                                        // the staged manifest is a detached version (C14)
	after    map[lance.VersionNumber]lance.VersionNumber // the detached versions attached before it in its chain
	between  []lance.VersionNumber                       // the detached versions that are attached in one with it
	known    bool                                        // the slot has a row already
	absent   bool                                        // there is no staged manifest: only a replay or a conflict can be the answer
	taken    bool                                        // storage has an object under the final name, and no row says whose
	branched chain.BranchState
	data     []byte // what to publish; nil where there is no room to keep it
	kept     *place.Keeper
	digest   lance.Digest
	size     int64
	summary  *lance.VersionSummary
	bases    []string // beside the table's own directory, where files of the version lie
}

// Outcome is what a commit came to; results stand in the order of its steps.
type Outcome struct {
	Transaction lance.TransactionID // "" where a version was made by none
	Results     []Result
}

// Request is what a commit is asked for.
type Request struct {
	Steps   []Step            // at least one
	Context map[string]string // the caller's
	Where   Naming            // how errors name the steps
	// Keep notes the outcome, in the transaction that makes it visible; nil does nothing.
	Keep func(store.Tx, *Outcome) error
}

// Result is what one step came to.
type Result struct {
	Table   lance.Table   // as it was when the step was done
	Version lance.Version // of a step that makes one
	Count   int64         // of deleted versions
}

// commitRounds bounds how often a commit looks again after it met somebody else's unfinished transaction, a version that it did
// not know, or a table that was replaced under its hands. Every round ends another transaction or adopts a chain, so the
// bound is reached only under a storm on one chain.
const commitRounds = 50

// Commit performs steps all or not at all. It is the one path for a single version, a batch and a mixed batch (C2): look → prepare →
// reserve → publish → resolve → answer. Sent again, steps that make versions come to the same outcome (C5). Errors, which name the step: 1,
// 4, 5, 13, 14 (a conflict, whose winner can be read; C8), 15, 17 and 21 (nothing was done), 18 (the outcome is not known yet; C11), 19,
// 22.
func (c *Committer) Commit(ctx context.Context, req Request) (*Outcome, error) {
	where := req.Where
	adopted := map[lance.Chain]bool{}
	kept := c.places.Keeper()
	defer kept.Free()
	var works []*work
	for range commitRounds {
		var err error
		if works, err = c.look(ctx, req.Steps, works, where); err != nil {
			return nil, err
		}
		for _, w := range works {
			w.kept = kept
		}
		if err := c.prepare(ctx, works, where); err != nil {
			return nil, err
		}
		if chains := takenChains(works, adopted, where); len(chains) > 0 {
			if err := c.adoptAll(ctx, chains, adopted); err != nil {
				return nil, err
			}
			continue
		}
		o, v, err := c.attempt(ctx, works, req)
		if err != nil || o != nil {
			return o, err
		}
		switch {
		case v.outcome != nil:
			c.completer.Wake() // a batch that was applied at once may have queued jobs
			return v.outcome, nil
		case len(v.pending) > 0:
			if err = c.completer.HelpAll(ctx, v.pending); err != nil && v.same {
				// It is the request's own transaction: that it cannot be finished now says nothing of its outcome (C11).
				err = unknownOutcome(v.pending[0], err)
			}
		case v.burnt != nil:
			err = c.echo(ctx, *v.burnt)
		case v.refusal != nil && (v.behind == nil || adopted[v.behind.Chain]):
			return nil, c.refused(v.refusal)
		case v.behind != nil:
			err = c.adoptAll(ctx, []chain.Located{*v.behind}, adopted)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, api.Errorf(api.CodeThrottling,
		"%s: too many others commit to the same tables at once; try again", where.name(works[0]))
}

// attempt reserves the works and, where that succeeds, carries them out and returns the outcome. The transaction is entered as being
// finished here before anybody can see it, so that readers in this process wait for it instead of doing the same work.
func (c *Committer) attempt(ctx context.Context, works []*work, req Request) (*Outcome, *verdict, error) {
	t := c.newTransaction(ctx, works, req.Context)
	end, err := c.completer.Begin(ctx, t.ID)
	if err != nil {
		return nil, nil, api.Errorf(api.CodeServiceUnavailable, "the server is shutting down; nothing was done; try again").Because(err)
	}
	defer end()
	v, err := c.reserve(ctx, t, works, req)
	if err != nil || !v.reserved {
		return nil, v, err
	}
	o, err := c.carryOut(ctx, t, works, req)
	return o, v, err
}

// refused counts a conflict. Its winner has been seen committed (C8).
func (c *Committer) refused(e *api.Error) error {
	if e.Code == api.CodeConcurrentModification {
		c.completer.Counters().Conflicts.Add(1)
	}
	return e
}

// newTransaction makes the record of a commit that is about to be reserved.
func (c *Committer) newTransaction(ctx context.Context, works []*work, given map[string]string) *lance.Transaction {
	t := &lance.Transaction{
		ID:        c.state.Store.NewTransactionID(),
		Principal: auth.PrincipalFrom(ctx).Name,
		Context:   given,
		Entries:   make([]lance.Entry, len(works)),
	}
	for i, w := range works {
		e := lance.Entry{Kind: w.Kind, Table: w.table.ID, Path: w.ID, Location: w.table.Location}
		switch w.Kind {
		case lance.EntryCreateVersion:
			e.Branch, e.Version, e.Scheme, e.Staged = w.Branch, w.Version, w.Scheme, w.staged
			e.Digest, e.Size, e.After, e.Between = lance.HexDigest(w.digest), w.size, w.after, w.between
		case lance.EntryDeclare:
			e.Properties = w.Properties
		case lance.EntryDeleteVersions:
			e.Branch, e.Ranges = w.Branch, w.Ranges
		}
		t.Entries[i] = e
	}
	return t
}

// carryOut publishes and resolves a reserved transaction on a context of its own: neither a client that hangs up nor the start
// of a shutdown stops it half-way (C11).
func (c *Committer) carryOut(ctx context.Context, t *lance.Transaction, works []*work, req Request) (*Outcome, error) {
	detached, cancel := c.completer.Detach(ctx)
	defer cancel()
	data := make([][]byte, len(works))
	for i, w := range works {
		data[i] = w.data
	}
	f, err := c.completer.Finish(detached, t, finish.Driven{Data: data, Kept: func(tx store.Tx, f *finish.Finished) error {
		return req.noted(tx, outcomeOf(t, works, f))
	}})
	if err != nil {
		return nil, unknownOutcome(t.ID, err)
	}
	if f.State == lance.TransactionAborted {
		return nil, c.lost(detached, works, f, req.Where)
	}
	c.completer.Counters().Commits.Add(1)
	for _, w := range creating(works) {
		c.completer.Counters().Versions.Add(1)
		c.dropStaged(w)
	}
	return outcomeOf(t, works, f), nil
}

// outcomeOf is what a finished transaction came to, step by step.
func outcomeOf(t *lance.Transaction, works []*work, f *finish.Finished) *Outcome {
	o := &Outcome{Transaction: t.ID, Results: make([]Result, len(works))}
	for i, w := range works {
		o.Results[i] = Result{Table: w.table, Version: f.Versions[i], Count: f.Entries[i].Count}
		o.Results[i].Version.Summary = w.summary // as in the row, which a repeated request is answered from
	}
	return o
}

// noted notes the outcome of a commit in the transaction that makes it visible.
func (req Request) noted(tx store.Tx, o *Outcome) error {
	if req.Keep == nil {
		return nil
	}
	return req.Keep(tx, o)
}

// dropStaged lets go of a staged manifest some time after its bytes were published. A detached version that was attached can still
// be described by its own number, and goes with a job of the commit (C13).
func (c *Committer) dropStaged(w *work) {
	if w.attach {
		return
	}
	c.completer.RemoveLater(w.place, w.place.Staged(w.Branch, w.staged))
}

// lost is the error of a commit that was aborted after it was reserved. Where a bypassing writer won, its version is adopted
// before the answer, so that the loser can read it (C8, C10).
func (c *Committer) lost(ctx context.Context, works []*work, f *finish.Finished, where Naming) error {
	if f.Refusal != nil {
		return c.refused(where.wrap(works[f.Index], f.Refusal))
	}
	c.completer.Counters().Conflicts.Add(1)
	w := works[max(f.Index, 0)]
	if f.Index < 0 {
		w = creating(works)[0]
	}
	if !w.live {
		return where.wrap(w, placeTaken(w))
	}
	if _, err := c.chains.Adopt(ctx, w.chainPlace()); err != nil {
		return err
	}
	row, _, err := c.state.RowAndHead(ctx, w.slot)
	if err != nil {
		return err
	}
	if row.Number != 0 {
		return where.wrap(w, api.Errorf(api.CodeConcurrentModification,
			"another writer published this version in storage first, and nothing of the commit was kept: read that version, then try the next number"))
	}
	final := w.place.Final(w.Branch, w.Version, w.Scheme)
	_, err = w.place.Objects.Head(ctx, final)
	switch {
	case err == nil:
		return where.wrap(w, api.Errorf(api.CodeInvalidTableState,
			"an object that is no manifest of this version stands under its final name, %s, and nothing of the commit was kept: remove that object", final))
	case !errors.Is(err, objstore.ErrNotFound):
		return where.wrapAny(w, place.StorageError("look at the final manifest", err))
	}
	return where.wrap(w, api.Errorf(api.CodeConcurrentModification,
		"the commit could not be completed, as when a staged manifest is removed before it is published, and nothing of it was kept: stage the manifests anew and try again"))
}

// unknownOutcome is the error of a commit that was reserved and could not be finished yet: it may still succeed, so it is
// never a 4xx (C11).
func unknownOutcome(id lance.TransactionID, cause error) error {
	return api.Errorf(api.CodeInternal,
		"the outcome of transaction %s is not known yet: it will be finished or undone; describe the version, or send the same request again", id).Because(cause)
}

// takenChains returns the chains on which storage is ahead of the rows, as far as the final names told, and that were not
// adopted yet by this commit. A table that the commit itself declares has no chain to adopt: its place is somebody else's.
func takenChains(works []*work, adopted map[lance.Chain]bool, where Naming) []chain.Located {
	var chains []chain.Located
	for _, w := range works {
		switch {
		case w.taken && !w.live && w.fault == nil:
			w.fault = where.wrap(w, placeTaken(w))
		case w.taken && w.live && !adopted[w.slot.Chain]:
			chains = append(chains, w.chainPlace())
		}
	}
	return chains
}

// placeTaken is the refusal to declare a table where somebody has published versions meanwhile.
func placeTaken(w *work) *api.Error {
	return api.Errorf(api.CodeInvalidTableState, "its location %q holds a dataset by now: register that, or declare the table elsewhere", w.table.Location)
}

// chainPlace returns the chain that the work adds to, with its place in storage.
func (w *work) chainPlace() chain.Located {
	return chain.Located{Chain: w.slot.Chain, Place: w.place, Path: w.ID}
}

// adoptAll adopts chains and notes that they were.
func (c *Committer) adoptAll(ctx context.Context, chains []chain.Located, adopted map[lance.Chain]bool) error {
	for _, cp := range chains {
		if adopted[cp.Chain] {
			continue
		}
		if _, err := c.chains.Adopt(ctx, cp); err != nil {
			return err
		}
		adopted[cp.Chain] = true
	}
	return nil
}
