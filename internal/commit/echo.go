package commit

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
)

// A client finds the next number, and what was committed since it read, in a listing of storage (client contract, facts 50 and
// 62). So it may have seen a manifest of a transaction that was aborted later, and built the version after it upon that content.
// Nothing in the manifest that it stages tells. But it can only ask for the number after the slot in question. The catalog
// therefore gives that number to a copy of the version that does stand in the slot: whoever asks for it meets a conflict, rebases
// on the copy, and so leaves the aborted content behind (C5, C10).

// burntChain is a chain whose head stands where an aborted content may have been seen.
type burntChain struct {
	chain.Located
	head lance.Version
}

// checkBurnt finds the first chain that a work would continue right after a burnt slot.
func (j *judge) checkBurnt() {
	for i, w := range j.creates {
		head := j.heads[w.slot.Chain]
		if w.echo || w.Version.Detached() || head.Number == 0 || w.Version != head.Number+1 {
			continue
		}
		if j.found.Burnt[i] { // of the slot before the work's, which is the head's
			j.v.burnt = &burntChain{Located: w.chainPlace(), head: head}
			return
		}
	}
}

// echo commits a copy of a chain's head under the next number. That somebody else did so first, or that the table went away, is
// as good: the commit that needs it looks again.
func (c *Committer) echo(ctx context.Context, b burntChain) error {
	key := b.Place.Final(b.Chain.Branch, b.head.Number, b.head.Scheme)
	data, _, err := b.Place.Objects.Get(ctx, key, c.places.MaxManifest())
	if errors.Is(err, objstore.ErrNotFound) {
		return api.Errorf(api.CodeInvalidTableState, "the manifest of version %d of table %q is gone from storage: restore it, or drop the table", b.head.Number, lance.ShowID(b.Path))
	}
	if err != nil {
		return place.StorageError("read "+key, err)
	}
	next := b.head.Number + 1
	copied, err := lance.RenumberVersion(data, next)
	if err != nil {
		return fmt.Errorf("copy version %d of table %q: %w", b.head.Number, lance.ShowID(b.Path), err)
	}
	staged := b.Place.Final(b.Chain.Branch, next, b.head.Scheme) + "-" + uuid.NewString()
	if _, err := b.Place.Objects.PutIfAbsent(ctx, staged, copied); err != nil {
		return place.StorageError("write "+staged, err)
	}
	_, err = c.Commit(ctx, Request{Steps: []Step{{
		Kind: lance.EntryCreateVersion, ID: b.Path, Branch: b.Chain.Branch, Version: next, ManifestPath: staged,
		Scheme: b.head.Scheme, echo: true,
	}}})
	if err != nil {
		_ = b.Place.Objects.Delete(ctx, staged) // tidiness only: nobody reads it
	}
	var known *api.Error
	if errors.As(err, &known) && known.Code != api.CodeInternal && known.Code != api.CodeServiceUnavailable {
		return nil
	}
	return err
}
