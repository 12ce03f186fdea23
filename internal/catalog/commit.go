package catalog

import (
	"context"
	"errors"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/auth"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/store"
)

// step is one thing that a commit is asked to do, after the form of the request was checked.
type step struct {
	kind lance.EntryKind
	id   lance.TableID

	// For lance.EntryCreateVersion.
	branch       lance.Branch
	version      lance.VersionNumber
	manifestPath string
	manifestSize int64 // as the writer says; 0 where it does not
	scheme       lance.NamingScheme
	metadata     map[string]string
	echo         bool // the catalog itself repeats the version before (C5)

	// For lance.EntryDeclare.
	location   string // canonical; "" where the server picks one
	properties map[string]string
	refusal    *api.Error // what stands in the way, unless the commit is a replay

	// For lance.EntryDeleteVersions: first and last, both included.
	ranges [][2]lance.VersionNumber
}

// work is a step together with the table it is about and the bytes it publishes.
type work struct {
	step
	index int
	table lance.Table
	place place
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
	branched branchState
	data     []byte // what to publish; nil where there is no room to keep it
	kept     *keeper
	digest   lance.Digest
	size     int64
	summary  *lance.VersionSummary
	bases    []string // beside the table's own directory, where files of the version lie
}

// outcome is what a commit came to; results stand in the order of its steps.
type outcome struct {
	transaction lance.TransactionID
	results     []result
}

// commitRequest is what a commit is asked for.
type commitRequest struct {
	steps   []step
	context map[string]string // the caller's
	where   naming
	// keep notes the outcome, in the transaction that makes it visible; nil does nothing.
	keep func(store.Tx, *outcome) error
}

// result is what one step came to.
type result struct {
	table   lance.Table
	version lance.Version
	count   int64
}

// commitRounds bounds how often a commit looks again after it met somebody else's unfinished transaction, a version that it did
// not know, or a table that was replaced under its hands. Every round ends another transaction or adopts a chain, so the
// bound is reached only under a storm on one chain.
const commitRounds = 50

// commit performs steps all or not at all. It is the one path for a single version, a batch and a mixed batch (C2):
// look → prepare → reserve → publish → resolve → answer.
func (c *Catalog) commit(ctx context.Context, req commitRequest) (*outcome, error) {
	where := req.where
	adopted := map[lance.Chain]bool{}
	kept := c.keeper()
	defer kept.free()
	var works []*work
	for range commitRounds {
		var err error
		if works, err = c.look(ctx, req.steps, works, where); err != nil {
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
			c.wakeJobs() // a batch that was applied at once may have queued jobs
			return v.outcome, nil
		case len(v.pending) > 0:
			if err = c.helpAll(ctx, v.pending); err != nil && v.same {
				// It is the request's own transaction: that it cannot be finished now says nothing of its outcome (C11).
				err = unknownOutcome(v.pending[0], err)
			}
		case v.burnt != nil:
			err = c.echo(ctx, *v.burnt)
		case v.refusal != nil && (v.behind == nil || adopted[v.behind.chain]):
			return nil, c.refused(v.refusal)
		case v.behind != nil:
			err = c.adoptAll(ctx, []chainPlace{*v.behind}, adopted)
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
func (c *Catalog) attempt(ctx context.Context, works []*work, req commitRequest) (*outcome, *verdict, error) {
	t := c.newTransaction(ctx, works, req.context)
	end, err := c.begin(ctx, t.ID)
	if err != nil {
		return nil, nil, withCause(api.Errorf(api.CodeServiceUnavailable, "the server is shutting down; nothing was done; try again"), err)
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
func (c *Catalog) refused(e *api.Error) error {
	if e.Code == api.CodeConcurrentModification {
		c.counters.Conflicts.Add(1)
	}
	return e
}

// newTransaction makes the record of a commit that is about to be reserved.
func (c *Catalog) newTransaction(ctx context.Context, works []*work, given map[string]string) *lance.Transaction {
	t := &lance.Transaction{
		ID:        c.store.NewTransactionID(),
		Principal: auth.PrincipalFrom(ctx).Name,
		Context:   given,
		Entries:   make([]lance.Entry, len(works)),
	}
	for i, w := range works {
		e := lance.Entry{Kind: w.kind, Table: w.table.ID, Path: w.id, Location: w.table.Location}
		switch w.kind {
		case lance.EntryCreateVersion:
			e.Branch, e.Version, e.Scheme, e.Staged = w.branch, w.version, w.scheme, w.staged
			e.Digest, e.Size, e.After, e.Between = hexDigest(w.digest), w.size, w.after, w.between
		case lance.EntryDeclare:
			e.Properties = w.properties
		case lance.EntryDeleteVersions:
			e.Branch, e.Ranges = w.branch, w.ranges
		}
		t.Entries[i] = e
	}
	return t
}

// carryOut publishes and resolves a reserved transaction on a context of its own: neither a client that hangs up nor the start
// of a shutdown stops it half-way (C11).
func (c *Catalog) carryOut(ctx context.Context, t *lance.Transaction, works []*work, req commitRequest) (*outcome, error) {
	detached, cancel := c.detach(ctx)
	defer cancel()
	data := make([][]byte, len(works))
	for i, w := range works {
		data[i] = w.data
	}
	f, err := c.finish(detached, t, driven{data: data, kept: func(tx store.Tx, f *finished) error {
		return req.noted(tx, outcomeOf(t, works, f))
	}})
	if err != nil {
		return nil, unknownOutcome(t.ID, err)
	}
	if f.state == lance.TransactionAborted {
		return nil, c.lost(detached, works, f, req.where)
	}
	c.counters.Commits.Add(1)
	for _, w := range creating(works) {
		c.counters.Versions.Add(1)
		c.dropStaged(w)
	}
	return outcomeOf(t, works, f), nil
}

// outcomeOf is what a finished transaction came to, step by step.
func outcomeOf(t *lance.Transaction, works []*work, f *finished) *outcome {
	o := &outcome{transaction: t.ID, results: make([]result, len(works))}
	for i, w := range works {
		o.results[i] = result{table: w.table, version: f.versions[i], count: f.entries[i].Count}
		o.results[i].version.Summary = w.summary // as in the row, which a repeated request is answered from
	}
	return o
}

// noted notes the outcome of a commit in the transaction that makes it visible.
func (req commitRequest) noted(tx store.Tx, o *outcome) error {
	if req.keep == nil {
		return nil
	}
	return req.keep(tx, o)
}

// dropStaged lets go of a staged manifest some time after its bytes were published. A detached version that was attached can still
// be described by its own number, and goes with a job of the commit (C13).
func (c *Catalog) dropStaged(w *work) {
	if w.attach {
		return
	}
	c.removeLater(w.place, w.place.staged(w.branch, w.staged))
}

// lost is the error of a commit that was aborted after it was reserved. Where a bypassing writer won, its version is adopted
// before the answer, so that the loser can read it (C8, C10).
func (c *Catalog) lost(ctx context.Context, works []*work, f *finished, where naming) error {
	if f.refusal != nil {
		return c.refused(where.wrap(works[f.index], f.refusal))
	}
	c.counters.Conflicts.Add(1)
	w := works[max(f.index, 0)]
	if f.index < 0 {
		w = creating(works)[0]
	}
	if !w.live {
		return where.wrap(w, placeTaken(w))
	}
	if _, err := c.adopt(ctx, w.chainPlace()); err != nil {
		return err
	}
	row, _, err := c.rowAndHead(ctx, w.slot)
	if err != nil {
		return err
	}
	if row.Number != 0 {
		return where.wrap(w, api.Errorf(api.CodeConcurrentModification,
			"another writer published this version in storage first, and nothing of the commit was kept: read that version, then try the next number"))
	}
	final := w.place.final(w.branch, w.version, w.scheme)
	_, err = w.place.objects.Head(ctx, final)
	switch {
	case err == nil:
		return where.wrap(w, api.Errorf(api.CodeInvalidTableState,
			"an object that is no manifest of this version stands under its final name, %s, and nothing of the commit was kept: remove that object", final))
	case !errors.Is(err, objstore.ErrNotFound):
		return where.wrapAny(w, storageError("look at the final manifest", err))
	}
	return where.wrap(w, api.Errorf(api.CodeConcurrentModification,
		"the commit could not be completed, as when a staged manifest is removed before it is published, and nothing of it was kept: stage the manifests anew and try again"))
}

// unknownOutcome is the error of a commit that was reserved and could not be finished yet: it may still succeed, so it is
// never a 4xx (C11).
func unknownOutcome(id lance.TransactionID, cause error) error {
	return withCause(api.Errorf(api.CodeInternal,
		"the outcome of transaction %s is not known yet: it will be finished or undone; describe the version, or send the same request again", id), cause)
}

// takenChains returns the chains on which storage is ahead of the rows, as far as the final names told, and that were not
// adopted yet by this commit. A table that the commit itself declares has no chain to adopt: its place is somebody else's.
func takenChains(works []*work, adopted map[lance.Chain]bool, where naming) []chainPlace {
	var chains []chainPlace
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
func (w *work) chainPlace() chainPlace {
	return chainPlace{chain: w.slot.Chain, place: w.place, path: w.id}
}
