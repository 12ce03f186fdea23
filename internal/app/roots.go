package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/config"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/alone"
	"github.com/lancerest/lancerest/internal/objstore/local"
	"github.com/lancerest/lancerest/internal/objstore/mem"
	"github.com/lancerest/lancerest/internal/objstore/s3"
)

// makeDirs makes the directories that a server needs: that of its state, and that of its first root if this lies on the machine.
func makeDirs(c Config, settings []config.Root) error {
	var dirs []string
	if !onPostgres(c) {
		dirs = append(dirs, c.Data)
	}
	if settings[0].Scheme() == "file" {
		dir, err := localDir(settings[0].Location)
		if err != nil {
			return err
		}
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	return nil
}

// openRoots opens the storage of every root, and what makes keys for it; directories must exist. Roots that are reached in the same way share
// a store: one for the file system, one for each bucket.
//
// Each store that is distant is tried first: does its server judge the conditions that commits rely on? Where it does not, this process does, which
// is possible only if no other server shares its state.
func openRoots(ctx context.Context, c Config, settings []config.Root) ([]catalog.Root, error) {
	s := stores{shared: onPostgres(c)}
	roots := make([]catalog.Root, len(settings))
	for i, r := range settings {
		loc, err := rootLocation(r)
		if err != nil {
			return nil, fmt.Errorf("root %q: %w", r.Location, err)
		}
		o, err := s.of(ctx, loc, r)
		if err != nil {
			return nil, fmt.Errorf("root %s: %w", loc, err)
		}
		given, err := accessTo(ctx, r, loc, o.objects)
		if err != nil {
			return nil, fmt.Errorf("root %s: %w", loc, err)
		}
		own, err := accessOfEngine(ctx, c, r, loc, o.objects)
		if err != nil {
			return nil, fmt.Errorf("root %s: keys for the engine: %w", loc, err)
		}
		roots[i] = catalog.Root{Engine: own, Location: loc, Objects: o.judging, Access: given, Distant: distant(loc), Unjudged: o.judged.Missing()}
	}
	return roots, nil
}

// openCatalog opens a catalog. Where that fails because a root's marker is missing, the error also says how to mend it where only the marker is
// lost: the catalog itself never concludes that.
func openCatalog(ctx context.Context, o catalog.Options) (*catalog.Catalog, error) {
	c, err := catalog.New(ctx, o)
	if err == nil || api.CodeOf(err) != api.CodeServiceUnavailable {
		return c, err
	}
	for _, r := range o.Roots {
		marker, joinErr := r.Location.Join(catalog.Marker)
		if joinErr != nil {
			continue
		}
		if _, headErr := r.Objects.Head(ctx, marker.Key()); errors.Is(headErr, objstore.ErrNotFound) {
			return nil, fmt.Errorf("%w (if the tables are there and only the marker was removed, put an empty file at %s)", err, marker)
		}
	}
	return nil, err
}

// rootLocation is the location of a root. Of a directory, which must exist, symbolic links are resolved: clients see the same path whichever
// way the server was told.
func rootLocation(r config.Root) (lance.Location, error) {
	if r.Scheme() != "file" {
		return lance.ParseLocation(r.Location)
	}
	dir, err := localDir(r.Location)
	if err != nil {
		return lance.Location{}, err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return lance.Location{}, err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return lance.Location{}, err
	}
	return lance.ParseLocation(filepath.ToSlash(abs))
}

// localDir returns the directory that a root names: as a path, or as a file URI.
func localDir(root string) (string, error) {
	if !strings.Contains(root, "://") {
		return root, nil
	}
	loc, err := lance.ParseLocation(root)
	return filepath.FromSlash(loc.Path), err
}

// distant reports whether a location is reached over a network.
func distant(loc lance.Location) bool { return loc.Scheme != "file" && loc.Scheme != "memory" }

// stores are the stores that were opened, by how they are reached.
type stores struct {
	shared bool // other servers may use them too
	opened []opened
}

type opened struct {
	at       lance.Location // of the store's root
	settings config.Root    // those that say how it is reached
	objects  objstore.Store
	judged   objstore.Conditions // by its server
	judging  objstore.Store      // the same store, on which every condition is judged
}

// of returns the store that holds a root.
func (s *stores) of(ctx context.Context, loc lance.Location, r config.Root) (opened, error) {
	at := lance.Location{Scheme: loc.Scheme, Authority: loc.Authority}
	r.Location, r.Credentials, r.Vend = "", "", config.Vending{}
	for _, o := range s.opened {
		if o.at == at && reflect.DeepEqual(o.settings, r) {
			return o, nil
		}
	}
	objects, err := openStore(ctx, at, r)
	if err != nil {
		return opened{}, err
	}
	o := opened{at: at, settings: r, objects: objects, judging: objects, judged: objstore.Conditions{Absent: true, Replace: true, Delete: true}}
	if distant(at) {
		if err := s.judge(ctx, &o, loc); err != nil {
			return opened{}, err
		}
	}
	s.opened = append(s.opened, o)
	return o, nil
}

// judge finds out which conditions a store's server judges, and has the rest judged here.
func (s *stores) judge(ctx context.Context, o *opened, root lance.Location) error {
	prefix := root.Key()
	if prefix != "" {
		prefix += "/"
	}
	var err error
	if o.judged, err = objstore.Try(ctx, o.objects, prefix); err != nil || o.judged.All() {
		return err
	}
	if s.shared {
		return fmt.Errorf("its storage does not know %s, which servers that share a state need: keep the state in the data directory of a single server, or choose another storage", o.judged.Missing())
	}
	o.judging, err = alone.New(o.objects, o.judged)
	return err
}

// openStore opens the store at a location. This is the one place that knows which package serves which scheme.
func openStore(ctx context.Context, at lance.Location, r config.Root) (objstore.Store, error) {
	switch at.Scheme {
	case "file":
		return local.New(local.Options{})
	case "memory":
		return mem.New(), nil
	case "s3":
		return openS3(ctx, at.Authority, r)
	case "gs":
		return openGCS(ctx, at.Authority, r)
	case "az", "abfss":
		return openAzure(at, r)
	}
	return nil, fmt.Errorf("tables cannot lie on %s: give a directory, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX", at.Scheme)
}

func openS3(ctx context.Context, bucket string, r config.Root) (objstore.Store, error) {
	o := s3.Options{Bucket: bucket, Endpoint: r.Endpoint, Region: r.Region, PathStyle: r.PathStyle, Profile: r.Profile}
	for _, secret := range []struct {
		from config.Secret
		to   *string
	}{{r.AccessKeyID, &o.AccessKeyID}, {r.SecretAccessKey, &o.SecretAccessKey}, {r.SessionToken, &o.SessionToken}} {
		var err error
		if *secret.to, err = secret.from.Read(); err != nil {
			return nil, err
		}
	}
	return s3.New(ctx, o)
}
