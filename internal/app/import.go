package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/client"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/config"
	"github.com/lancerest/lancerest/internal/importer"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lockfile"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/store"
)

// ImportOptions say what to import. Source is required.
type ImportOptions struct {
	// Source is the directory or URI where the datasets lie.
	Source string
	// Into is the namespace that takes them (default: the root).
	Into lance.NamespaceID
	// Nested, Unmanaged and Python are as in importer.Options.
	Nested, Unmanaged bool
	Python            string
	// DryRun changes nothing.
	DryRun bool
	// URI is the address of a server to import through; "" opens the state of the configuration, on which no server may run unless it is
	// in PostgreSQL.
	URI string
	// Report is told of every table.
	Report func(importer.Item)
}

// Import takes datasets that lie in storage already into the catalog of a configuration, or of a running server; then the configuration only says how
// the source is reached.
func Import(ctx context.Context, c Config, o ImportOptions) (importer.Summary, error) {
	setDefaults(&c)
	settings, err := settle(c)
	if err != nil {
		return importer.Summary{}, err
	}
	options := importer.Options{
		Into: o.Into, Nested: o.Nested, Unmanaged: o.Unmanaged, Python: o.Python, Report: o.Report, Resolve: reallyAt,
	}
	if options.Location, options.Objects, err = openSource(ctx, settings, o.Source); err != nil {
		return importer.Summary{}, fmt.Errorf("source %q: %w", o.Source, err)
	}
	switch {
	case o.URI != "":
		remote, err := openRemote(o.URI)
		if err != nil {
			return importer.Summary{}, err
		}
		options.Known = knownRemote{remote}
		if !o.DryRun {
			options.Catalog = remote
		}
		return importer.Run(ctx, options)
	case o.DryRun:
		return importDry(ctx, c, settings, options)
	}
	return importDirect(ctx, c, settings, options)
}

// openRemote returns a client of a server that was given on the command line. What is no URL is not repeated: it may hold a password.
func openRemote(address string) (*client.Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the address of the server must be a URL that begins with http:// or https://, such as http://127.0.0.1:2333")
	}
	return client.New(address, client.Options{}), nil
}

// importDirect imports into the state itself.
func importDirect(ctx context.Context, c Config, settings []config.Root, options importer.Options) (importer.Summary, error) {
	if err := errors.Join(checkState(c), makeDirs(c, settings)); err != nil {
		return importer.Summary{}, err
	}
	state, err := openState(ctx, c)
	if errors.Is(err, lockfile.ErrHeld) {
		err = fmt.Errorf("%w; or import through it with --uri and its address", err)
	}
	if err != nil {
		return importer.Summary{}, err
	}
	a := &App{config: c, settings: settings, store: state}
	defer a.Close()
	if a.roots, err = openRoots(ctx, c, settings); err != nil {
		return importer.Summary{}, err
	}
	own, err := reserved(c)
	if err != nil {
		return importer.Summary{}, err
	}
	a.catalog, err = openCatalog(ctx, catalog.Options{Store: state, Roots: a.roots, Reserved: own, Notify: a.notify})
	if err != nil {
		return importer.Summary{}, err
	}
	if _, err := a.catalog.RestoreUnsynced(ctx); err != nil {
		return importer.Summary{}, err
	}
	locations := make([]lance.Location, len(a.roots))
	for i, r := range a.roots {
		locations[i] = r.Location
	}
	options.Known, options.Catalog, options.Refuse = knownState{state}, a.catalog, outsideOf(locations)
	summary, err := importer.Run(ctx, options)
	return summary, errors.Join(err, a.Close())
}

// importDry says what importDirect would do. It opens neither the catalog nor its roots, either of which would write.
func importDry(ctx context.Context, c Config, settings []config.Root, options importer.Options) (importer.Summary, error) {
	if err := checkState(c); err != nil {
		return importer.Summary{}, err
	}
	locations := make([]lance.Location, len(settings))
	for i, r := range settings {
		var err error
		if locations[i], err = plannedLocation(r); err != nil {
			return importer.Summary{}, err
		}
	}
	options.Refuse = outsideOf(locations)
	state, _, err := openStateBeside(ctx, c)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		options.Known = knownNothing{}
		return importer.Run(ctx, options)
	case err != nil:
		return importer.Summary{}, err
	}
	options.Known = knownState{state}
	summary, err := importer.Run(ctx, options)
	return summary, errors.Join(err, state.Close())
}

// plannedLocation is rootLocation for a root whose directory need not be there yet.
func plannedLocation(r config.Root) (lance.Location, error) {
	loc, err := rootLocation(r)
	if !errors.Is(err, fs.ErrNotExist) {
		return loc, err
	}
	dir, err := localDir(r.Location)
	if err != nil {
		return loc, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return loc, err
	}
	return lance.ParseLocation(filepath.ToSlash(dir))
}

// outsideOf returns what says why a location can have no table: it lies in none of the roots.
func outsideOf(roots []lance.Location) func(lance.Location) string {
	return func(loc lance.Location) string {
		for _, r := range roots {
			if r.Covers(loc) && r != loc {
				return ""
			}
		}
		parent := loc
		parent.Path = parent.Path[:max(0, lastSlash(parent.Path))]
		if parent.Scheme == "file" && parent.Path == "" {
			return fmt.Sprintf("it lies at %s, in none of the roots of the catalog, and right below the root of this machine, which is no place to allow: move it into a directory that is", loc)
		}
		return fmt.Sprintf("it lies at %s, in none of the roots of the catalog: add --allow %s, here and to lancerest serve", loc, parent)
	}
}

func lastSlash(path string) int {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return i
		}
	}
	return 0
}

// openSource opens the storage of a source, in the way that the settings of the root say which holds it, if one does.
func openSource(ctx context.Context, settings []config.Root, source string) (lance.Location, objstore.Store, error) {
	if err := config.CheckPlace(source); err != nil {
		return lance.Location{}, nil, err
	}
	how := config.Root{Location: source}
	loc, err := rootLocation(how)
	if err != nil {
		return loc, nil, err
	}
	for _, r := range settings {
		if at, err := plannedLocation(r); err == nil && at.Covers(loc) {
			how = r
		}
	}
	objects, err := openStore(ctx, lance.Location{Scheme: loc.Scheme, Authority: loc.Authority}, how)
	return loc, objects, err
}

// reallyAt resolves the symbolic links of a location on this machine; what cannot be resolved stays as it is.
func reallyAt(loc lance.Location) lance.Location {
	if loc.Scheme != "file" {
		return loc
	}
	path, err := filepath.EvalSymlinks(filepath.FromSlash(loc.Path))
	if err != nil {
		return loc
	}
	really, err := lance.ParseLocation(filepath.ToSlash(path))
	if err != nil {
		return loc
	}
	return really
}

// knownState is what a state says.
type knownState struct{ store store.Store }

// Table implements importer.Known.
func (k knownState) Table(ctx context.Context, id lance.TableID) (location string, err error) {
	err = k.store.View(ctx, func(r store.Reader) error {
		tables, err := r.Tables([]lance.TableID{id})
		if err == nil {
			location = tables[0].Location
		}
		return err
	})
	return location, err
}

// namespace reports whether there is one.
func (k knownState) namespace(ctx context.Context, id lance.NamespaceID) (bool, error) {
	err := k.store.View(ctx, func(r store.Reader) error {
		_, err := r.Namespace(id)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Claimed implements importer.Known.
func (k knownState) Claimed(ctx context.Context, location string) (claimed string, err error) {
	err = k.store.View(ctx, func(r store.Reader) (err error) {
		claimed, err = r.Claimed(location)
		return err
	})
	return claimed, err
}

// knownRemote is what a server says.
type knownRemote struct{ *client.Client }

// Table implements importer.Known.
func (k knownRemote) Table(ctx context.Context, id lance.TableID) (string, error) {
	no := false
	resp, err := k.DescribeTable(ctx, &api.DescribeTableRequest{Target: api.At(id...), VendCredentials: &no})
	switch code := api.CodeOf(err); {
	case err == nil && resp.Location != nil:
		return *resp.Location, nil
	case err == nil:
		return "", fmt.Errorf("the server says no location for table %q", id)
	case code == api.CodeTableNotFound || code == api.CodeNamespaceNotFound:
		return "", nil
	}
	return "", err
}

// namespace reports whether there is one.
func (k knownRemote) namespace(ctx context.Context, id lance.NamespaceID) (bool, error) {
	err := k.NamespaceExists(ctx, &api.NamespaceExistsRequest{Target: api.At(id...)})
	if api.CodeOf(err) == api.CodeNamespaceNotFound {
		return false, nil
	}
	return err == nil, err
}

// Claimed implements importer.Known: no operation tells.
func (knownRemote) Claimed(context.Context, string) (string, error) { return "", nil }

// knownNothing is a catalog that is not there yet.
type knownNothing struct{}

// Table implements importer.Known.
func (knownNothing) Table(context.Context, lance.TableID) (string, error) { return "", nil }

// Claimed implements importer.Known.
func (knownNothing) Claimed(context.Context, string) (string, error) { return "", nil }
