package finish

import (
	"context"
	"errors"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
)

// Attachment is a detached manifest that becomes a version of its chain (C14).
type Attachment struct {
	Data    []byte              // of the detached manifest
	Branch  lance.Branch        // of the chain
	Version lance.VersionNumber // that it becomes
	// After are the detached versions that stand before it in the chain, each under a number of its own.
	After map[lance.VersionNumber]lance.VersionNumber
	// Between are those that it was made upon and that get no number: the changes of all become visible in this one version.
	Between []lance.VersionNumber
	Limit   int64 // bytes of one manifest
}

// detachedMax bounds how many detached versions may be attached in one.
const detachedMax = 256

// DetachedBelow finds the detached versions that a detached manifest was made upon, the newest first, down to one that is in the chain, which after
// tells; limit bounds the bytes of each. Where one of them is gone from storage the list ends, and attaching says what is missing. Errors: 15, 17.
func DetachedBelow(ctx context.Context, p place.Place, b lance.Branch, m lance.Manifest, after map[lance.VersionNumber]lance.VersionNumber, limit int64) ([]lance.VersionNumber, error) {
	var between []lance.VersionNumber
	for m.ReadVersionKnown && m.ReadVersion.Detached() && len(between) < detachedMax {
		base := m.ReadVersion
		if _, numbered := after[base]; numbered {
			break
		}
		data, err := readDetached(ctx, p, b, base, limit)
		if err != nil || data == nil {
			return between, err
		}
		between = append(between, base)
		if m, err = lance.ReadManifest(data); err != nil {
			break
		}
	}
	return between, nil
}

// readDetached reads the manifest of a detached version, nil if there is none.
func readDetached(ctx context.Context, p place.Place, b lance.Branch, v lance.VersionNumber, limit int64) ([]byte, error) {
	key := p.Final(b, v, lance.SchemeV2)
	data, _, err := p.Objects.Get(ctx, key, limit)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, place.StorageError("read "+key, err)
	}
	return data, nil
}

// Attach makes the bytes to publish, the same at every call. The error is an *api.Error where storage failed (15, 17), and else says
// why the manifest cannot become the version: lance.ErrStaleManifest where it would undo versions after its base.
func Attach(ctx context.Context, p place.Place, a Attachment) ([]byte, error) {
	if len(a.Between) == 0 {
		return lance.AttachAfter(a.Data, a.Version, a.After)
	}
	manifests := make([][]byte, 0, len(a.Between))
	for _, v := range a.Between {
		data, err := readDetached(ctx, p, a.Branch, v, a.Limit)
		if err != nil {
			return nil, err
		}
		if data != nil {
			manifests = append(manifests, data)
		}
	}
	return lance.AttachLast(a.Data, a.Version, manifests, a.After)
}
