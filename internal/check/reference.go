package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
)

// FindingReference: a tag, or the fork of a branch, names a version that is gone.
const Reference Kind = "reference"

// references sees that every tag and every branch names a version that is there, and counts the versions that they keep from being deleted.
// A reference is its owner's to remove or to move, so nothing is mended.
func (k *checker) references(ctx context.Context, t lance.Table, p place.Place, branches []lance.BranchRef) error {
	names, err := p.TagNames(ctx, "")
	if err != nil {
		return err
	}
	pinned := map[lance.Slot]bool{}
	for _, name := range names {
		tag, err := k.c.Places.ReadTag(ctx, t, name)
		if err != nil && api.CodeOf(err) == api.CodeTableTagNotFound {
			continue // deleted since it was listed
		}
		if err := k.tolerant(ctx, t, err); err != nil {
			return err
		}
		if err != nil {
			continue
		}
		k.sum.Tags++
		again := func() (lance.Slot, error) {
			tag, err := k.c.Places.ReadTag(ctx, t, name)
			return slotIn(t, tag.Branch, tag.Version), err
		}
		if err := k.reference(ctx, p, t, reference{what: "tag " + name, slot: slotIn(t, tag.Branch, tag.Version), again: again}, pinned); err != nil {
			return err
		}
	}
	for _, b := range branches {
		k.sum.Branches++
		again := func() (lance.Slot, error) {
			ref, err := p.ReadBranch(ctx, b.Name)
			return slotIn(t, ref.ParentBranch, ref.ParentVersion), err
		}
		r := reference{what: "branch " + b.Name.String(), slot: slotIn(t, b.ParentBranch, b.ParentVersion), again: again}
		if err := k.reference(ctx, p, t, r, pinned); err != nil {
			return err
		}
	}
	k.sum.Pinned += len(pinned)
	return nil
}

func slotIn(t lance.Table, b lance.Branch, v lance.VersionNumber) lance.Slot {
	return lance.Slot{Chain: lance.Chain{Table: t.ID, Branch: b}, Number: v}
}

// reference is something that names a version.
type reference struct {
	what  string
	slot  lance.Slot
	again func() (lance.Slot, error) // reads it once more
}

// reference looks at one reference, and once more at what it says before it is found wrong: it may have been moved meanwhile.
func (k *checker) reference(ctx context.Context, p place.Place, t lance.Table, r reference, pinned map[lance.Slot]bool) error {
	there, err := k.versionThere(ctx, p, r.slot)
	if err != nil {
		return err
	}
	if there {
		pinned[r.slot] = true
		return nil
	}
	if now, err := r.again(); err != nil || now != r.slot {
		return nil
	}
	cp := chain.Located{Chain: r.slot.Chain, Place: p, Path: t.Path}
	what := fmt.Sprintf("%s names this version, which is gone: delete the %[1]s, or let it name another", r.what)
	return k.found(ctx, k.finding(Reference, cp, r.slot.Number, what, ""), nil)
}

// versionThere reports whether a version can be read: it is committed, or storage has it although no row knows it.
func (k *checker) versionThere(ctx context.Context, p place.Place, slot lance.Slot) (bool, error) {
	for _, scheme := range []lance.NamingScheme{lance.SchemeV2, lance.SchemeV1} {
		_, err := p.Objects.Head(ctx, p.Final(slot.Chain.Branch, slot.Number, scheme))
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, objstore.ErrNotFound) {
			return false, place.StorageError("look for a version that is referred to", err)
		}
	}
	row, err := k.c.State.RowIn(ctx, slot)
	return row.State == lance.VersionPending && row.Number != 0, err
}
