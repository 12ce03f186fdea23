package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
)

// A client finds the next number, and what was committed since it read, in a listing of storage (client contract, facts 50 and
// 62). So it may have seen a manifest of a transaction that was aborted later, and built the version after it upon that content.
// Nothing in the manifest that it stages tells. But it can only ask for the number after the slot in question. The catalog
// therefore gives that number to a copy of the version that does stand in the slot: whoever asks for it meets a conflict, rebases
// on the copy, and so leaves the aborted content behind (C5, C10).

// burntChain is a chain whose head stands where an aborted content may have been seen.
type burntChain struct {
	chainPlace
	head lance.Version
}

// checkBurnt finds the first chain that a work would continue right after a burnt slot.
func (j *judge) checkBurnt() {
	for i, w := range j.creates {
		head := j.heads[w.slot.Chain]
		if w.echo || w.version.Detached() || head.Number == 0 || w.version != head.Number+1 {
			continue
		}
		if j.found.Burnt[i] { // of the slot before the work's, which is the head's
			j.v.burnt = &burntChain{chainPlace: w.chainPlace(), head: head}
			return
		}
	}
}

// echo commits a copy of a chain's head under the next number. That somebody else did so first, or that the table went away, is
// as good: the commit that needs it looks again.
func (c *Catalog) echo(ctx context.Context, b burntChain) error {
	key := b.place.final(b.chain.Branch, b.head.Number, b.head.Scheme)
	data, _, err := b.place.objects.Get(ctx, key, c.opts.MaxManifest)
	if errors.Is(err, objstore.ErrNotFound) {
		return api.Errorf(api.CodeInvalidTableState, "the manifest of version %d of table %q is gone from storage: restore it, or drop the table", b.head.Number, show(b.path))
	}
	if err != nil {
		return storageError("read "+key, err)
	}
	next := b.head.Number + 1
	copied, err := lance.RenumberVersion(data, next)
	if err != nil {
		return fmt.Errorf("copy version %d of table %q: %w", b.head.Number, show(b.path), err)
	}
	staged := b.place.final(b.chain.Branch, next, b.head.Scheme) + "-" + uuid.NewString()
	if _, err := b.place.objects.PutIfAbsent(ctx, staged, copied); err != nil {
		return storageError("write "+staged, err)
	}
	_, err = c.commit(ctx, commitRequest{steps: []step{{
		kind: lance.EntryCreateVersion, id: b.path, branch: b.chain.Branch, version: next, manifestPath: staged,
		scheme: b.head.Scheme, echo: true,
	}}})
	if err != nil {
		_ = b.place.objects.Delete(ctx, staged) // tidiness only: nobody reads it
	}
	var known *api.Error
	if errors.As(err, &known) && known.Code != api.CodeInternal && known.Code != api.CodeServiceUnavailable {
		return nil
	}
	return err
}
