package chain

import (
	"context"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
)

// AsItIs is a settle of Inspect that leaves a manifest alone: an import changes nothing of a dataset, and its owner knows how long it has been there.
func AsItIs(string, []byte) error { return nil }

// Importable reads all versions that storage has of a dataset that is to be registered as a table, of main and of its branches. Errors: 13
// (there is no readable manifest), 15, 17, 19 (a damaged reference).
func (c *Chains) Importable(ctx context.Context, t lance.Table) ([]Found, error) {
	p, err := c.places.At(t.Location)
	if err != nil {
		return nil, err
	}
	refs, err := p.Branches(ctx)
	if err != nil {
		return nil, err
	}
	branches := []lance.Branch{lance.Main}
	for _, ref := range refs {
		branches = append(branches, ref.Name)
	}
	var all []Found
	for _, b := range branches {
		cp := Located{Chain: lance.Chain{Table: t.ID, Branch: b}, Place: p, Path: t.Path}
		var infos []objstore.Info
		if infos, err = c.ManifestsAbove(ctx, cp, 0); err != nil {
			return nil, err
		}
		finds, err := c.Inspect(ctx, cp, infos, AsItIs)
		if err != nil {
			return nil, err
		}
		if b == lance.Main && len(finds) == 0 {
			return nil, p.Proven(ctx, api.Errorf(api.CodeInvalidInput, "location %q holds no Lance table: there is no readable manifest in its %s directory", t.Location, lance.VersionsDir))
		}
		for _, f := range finds {
			f.Version.Origin = lance.OriginImport
			all = append(all, f)
		}
	}
	return all, nil
}
