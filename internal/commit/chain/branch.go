package chain

import (
	"context"
	"errors"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/store"
)

// BranchState is what storage says about the branch that a commit adds to.
type BranchState struct {
	Registered bool
	Parent     lance.VersionNumber // the version it was forked from; only when registered
}

// BranchState reads the reference of a branch. One whose reference and whose head are both gone from storage was deleted there by a client
// (client contract, fact 67): its rows are removed, and its name may begin anew. Errors: 15, 17, 19 (a damaged file), and those of ForgetDeleted.
func (c *Chains) BranchState(ctx context.Context, cp Located) (BranchState, error) {
	ref, err := cp.Place.ReadBranch(ctx, cp.Chain.Branch)
	if err == nil {
		return BranchState{Registered: true, Parent: ref.ParentVersion}, nil
	}
	if !errors.Is(err, objstore.ErrNotFound) {
		return BranchState{}, place.RefError("read the reference of branch "+cp.Chain.Branch.String(), err)
	}
	return BranchState{}, c.ForgetDeleted(ctx, cp)
}

// ForgetDeleted removes the rows of an unregistered branch whose head manifest is gone as well. A pending head is left to its
// transaction. Errors: those of ProveTable and of State.Update.
func (c *Chains) ForgetDeleted(ctx context.Context, cp Located) error {
	head, err := c.state.Head(ctx, cp.Chain)
	if err != nil || head.Number == 0 || head.State == lance.VersionPending {
		return err
	}
	_, err = cp.Place.Objects.Head(ctx, cp.Place.Final(cp.Chain.Branch, head.Number, head.Scheme))
	if err == nil {
		return nil
	}
	if !errors.Is(err, objstore.ErrNotFound) {
		return place.StorageError("look at the head of branch "+cp.Chain.Branch.String(), err)
	}
	if err := c.ProveTable(ctx, cp); err != nil {
		return err
	}
	return c.state.Update(ctx, func(tx store.Tx) error {
		now, err := tx.Heads([]lance.Chain{cp.Chain})
		if err != nil || now[0].Number != head.Number || now[0].State != head.State {
			return err
		}
		return tx.RemoveChain(cp.Chain)
	})
}
