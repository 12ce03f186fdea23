package importer

import (
	"context"
	"errors"
	"strings"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
)

// objectThere reports whether an object is there.
func objectThere(ctx context.Context, s objstore.Store, key string) (bool, error) {
	_, err := s.Head(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// newestManifest returns the key of the newest version's manifest of the dataset in dir, "" if there is none. Under the names that all writers of
// today give the newest one is the first of the listing.
func newestManifest(ctx context.Context, s objstore.Store, dir string) (string, error) {
	prefix := lance.VersionsPrefix(strings.TrimSuffix(dir, "/"), lance.Main)
	newest, number := "", lance.VersionNumber(0)
	for info, err := range s.List(ctx, prefix, "") {
		if err != nil {
			return "", err
		}
		v, scheme, ok := lance.ParseManifestName(strings.TrimPrefix(info.Key, prefix))
		if !ok || v.Detached() {
			continue
		}
		if v > number {
			newest, number = info.Key, v
		}
		if scheme == lance.SchemeV2 {
			break
		}
	}
	return newest, nil
}
