package catalog

import (
	"context"
	"errors"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
)

// attachment is a detached manifest that becomes a version of its chain (C14).
type attachment struct {
	data    []byte
	branch  lance.Branch
	version lance.VersionNumber
	// after are the detached versions that stand before it in the chain, each under a number of its own.
	after map[lance.VersionNumber]lance.VersionNumber
	// between are those that it was made upon and that get no number: the changes of all become visible in this one version.
	between []lance.VersionNumber
	limit   int64 // bytes of one manifest
}

// detachedMax bounds how many detached versions may be attached in one.
const detachedMax = 256

// detachedBelow finds the detached versions that a detached manifest was made upon, down to one that is in the chain. Where one of them
// is gone from storage the list ends, and attaching says what is missing.
func detachedBelow(ctx context.Context, p place, b lance.Branch, m lance.Manifest, after map[lance.VersionNumber]lance.VersionNumber, limit int64) ([]lance.VersionNumber, error) {
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
func readDetached(ctx context.Context, p place, b lance.Branch, v lance.VersionNumber, limit int64) ([]byte, error) {
	key := p.final(b, v, lance.SchemeV2)
	data, _, err := p.objects.Get(ctx, key, limit)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, storageError("read "+key, err)
	}
	return data, nil
}

// attach makes the bytes to publish, the same at every call. The error is an *api.Error where storage failed, and else says
// why the manifest cannot become the version.
func attach(ctx context.Context, p place, a attachment) ([]byte, error) {
	if len(a.between) == 0 {
		return lance.AttachAfter(a.data, a.version, a.after)
	}
	manifests := make([][]byte, 0, len(a.between))
	for _, v := range a.between {
		data, err := readDetached(ctx, p, a.branch, v, a.limit)
		if err != nil {
			return nil, err
		}
		if data != nil {
			manifests = append(manifests, data)
		}
	}
	return lance.AttachLast(a.data, a.version, manifests, a.after)
}
