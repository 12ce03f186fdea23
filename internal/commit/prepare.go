package commit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/commit/finish"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/store"
)

// prepare reads every staged manifest and looks at every final name, in parallel and outside any database transaction (C4, C12).
// What is wrong with an input becomes the work's fault; what is wrong with storage ends the commit.
func (c *Committer) prepare(ctx context.Context, works []*work, where Naming) error {
	branches, err := c.branchStates(ctx, works)
	if err != nil {
		return err
	}
	if err := c.checkReferred(ctx, works, where); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	places := make([]place.Place, len(works))
	for i, w := range works {
		places[i] = w.place
	}
	g.SetLimit(c.places.AtOnce(places...))
	for _, w := range creating(works) {
		w.branched = branches[w.slot.Chain]
		g.Go(func() error {
			if err := c.prepareOne(ctx, w, where); err != nil {
				return where.wrapAny(w, err)
			}
			return nil
		})
		if !w.known {
			g.Go(func() error { return c.lookAtFinal(ctx, w, where) })
		}
	}
	return g.Wait()
}

// checkReferred refuses to delete versions that tags or branches refer to.
func (c *Committer) checkReferred(ctx context.Context, works []*work, where Naming) error {
	for _, w := range works {
		if w.Kind != lance.EntryDeleteVersions || w.fault != nil || len(w.Ranges) == 0 {
			continue
		}
		names, err := c.places.Referred(ctx, w.table, w.Branch, w.Ranges)
		if err != nil {
			return where.wrapAny(w, err)
		}
		if len(names) > 0 {
			w.fault = where.wrap(w, api.Errorf(api.CodeInvalidTableState, "versions to delete are referred to by %s: delete those first, or leave the versions out", strings.Join(names, ", ")))
		}
	}
	return nil
}

// noteKnown notes which works have a row in their slot already, as the rows at the slots of all works tell, so that storage need not be asked
// who owns it, and for each version to attach which detached versions stand before it in its chain.
func noteKnown(r store.Reader, creates []*work, named []lance.Version) error {
	for _, w := range creates {
		// A table that the commit itself declares has no rows yet, whatever has its name now.
		w.known = w.live && named[w.index].Number != 0
	}
	return followAll(r, creates)
}

// followMax is how far back the predecessors of a version to attach are looked up.
const followMax = 64

// followAll notes for each version to attach which detached versions were attached right before it, as rows or earlier in the same
// commit: its manifest may hold their numbers (C14).
func followAll(r store.Reader, creates []*work) error {
	last := map[lance.Chain]*work{}
	for _, w := range creates {
		before := last[w.slot.Chain]
		last[w.slot.Chain] = w
		if !w.attach {
			continue
		}
		w.after = map[lance.VersionNumber]lance.VersionNumber{}
		if before != nil {
			maps.Copy(w.after, before.after)
			w.follow(before.staged, before.Version)
			continue
		}
		for n := w.Version - 1; n > 0 && n >= w.Version-followMax; n-- {
			rows, err := r.Versions([]lance.Slot{{Chain: w.slot.Chain, Number: n}})
			if err != nil {
				return err
			}
			if !w.follow(rows[0].Staged, n) {
				break
			}
		}
	}
	return nil
}

// follow notes that a version before the one to attach is a detached one that was attached, and reports whether it is.
func (w *work) follow(staged string, number lance.VersionNumber) bool {
	d, _, final := lance.ParseManifestName(staged)
	if !final || !d.Detached() {
		return false
	}
	w.after[d] = number
	return true
}

// prepareOne reads a staged manifest: it must exist, be whole, and be of the version that it is to become. Feature flags are
// its writer's business, unless the manifest must be changed (C4, C14).
func (c *Committer) prepareOne(ctx context.Context, w *work, where Naming) error {
	if w.digest != (lance.Digest{}) {
		return nil // kept from the round before
	}
	staged, err := c.places.Read(ctx, w.place, w.place.Staged(w.Branch, w.staged), w.ManifestSize)
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		w.absent = true
		return w.place.Root.Prove(ctx)
	case errors.Is(err, objstore.ErrTooLarge):
		w.fault = where.wrap(w, api.Errorf(api.CodeInvalidInput, "the staged manifest %q has more than %d bytes, the most that is allowed", w.ManifestPath, c.places.MaxManifest()))
		return nil
	case err != nil:
		return place.StorageError("read the staged manifest "+w.ManifestPath, err)
	}
	defer staged.Free()
	published, fault, err := w.publishable(ctx, staged.Data, c.places.MaxManifest())
	if err != nil {
		return err
	}
	if fault != nil {
		fault.Message = fmt.Sprintf("the staged manifest %q %s", w.ManifestPath, fault.Message)
		w.fault = where.wrap(w, fault)
		return nil
	}
	c.learn(published, w.summary)
	w.digest, w.size = sha256.Sum256(published), int64(len(published))
	if w.kept.Keep(w.size) {
		w.data = published
	}
	return nil
}

// publishable checks a staged manifest and returns the bytes to publish: its own, or for a detached version that is attached
// those with only its version number changed (C14). The message of a fault begins after the manifest's name.
func (w *work) publishable(ctx context.Context, data []byte, limit int64) ([]byte, *api.Error, error) {
	m, err := lance.ReadManifest(data)
	if err != nil {
		return nil, api.Errorf(api.CodeInvalidInput, "is not a whole Lance manifest: %v", err), nil
	}
	want := w.Version
	if w.attach {
		want, _, _ = lance.ParseManifestName(w.staged)
	}
	if m.Version != want {
		return nil, api.Errorf(api.CodeInvalidInput, "is of version %d, not of version %d", m.Version, want), nil
	}
	w.bases = chain.BasesOf(data, m, w.place.Location)
	if !w.attach {
		w.summary = m.Summary()
		return data, nil, nil
	}
	if w.between, err = finish.DetachedBelow(ctx, w.place, w.Branch, m, w.after, limit); err != nil {
		return nil, nil, err
	}
	attached, err := finish.Attach(ctx, w.place, finish.Attachment{Data: data, Branch: w.Branch, Version: w.Version, After: w.after, Between: w.between, Limit: limit})
	var outage *api.Error
	switch {
	case errors.Is(err, lance.ErrStaleManifest):
		// Published as this version it would undo the versions after its base.
		return nil, api.Errorf(api.CodeConcurrentModification, "cannot be attached as version %d: %v", w.Version, err), nil
	case errors.As(err, &outage):
		return nil, nil, err
	case err != nil:
		return nil, api.Errorf(api.CodeInvalidTableState, "cannot be attached as version %d: %v", w.Version, err), nil
	}
	if m, err = lance.ReadManifest(attached); err != nil {
		return nil, nil, fmt.Errorf("read what was made of %s: %w", w.staged, err)
	}
	w.summary = m.Summary()
	return attached, nil, nil
}

// lookAtFinal sees whether storage has something under the final name although no row knows it: a writer went past the
// catalog (C4, C9).
func (c *Committer) lookAtFinal(ctx context.Context, w *work, where Naming) error {
	_, err := w.place.Objects.Head(ctx, w.place.Final(w.Branch, w.Version, w.Scheme))
	switch {
	case err == nil:
		w.taken = !w.Version.Detached()
	case !errors.Is(err, objstore.ErrNotFound):
		return where.wrapAny(w, place.StorageError("look at the final manifest", err))
	}
	return nil
}

// branchStates reads the references of the branches that a commit adds to. A branch whose reference and whose head are both
// gone from storage was deleted there by a client (client contract, fact 67): its rows go too, and its name may begin anew.
func (c *Committer) branchStates(ctx context.Context, works []*work) (map[lance.Chain]chain.BranchState, error) {
	states := map[lance.Chain]chain.BranchState{}
	for _, w := range creating(works) {
		if _, done := states[w.slot.Chain]; done || w.Branch == lance.Main || w.Version.Detached() {
			continue
		}
		state, err := c.chains.BranchState(ctx, w.chainPlace())
		if err != nil {
			return nil, err
		}
		states[w.slot.Chain] = state
	}
	return states, nil
}
