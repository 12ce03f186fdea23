package importer

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
)

// A directory catalog keeps its namespaces and tables as rows of a Lance table beside the tables. Its data file is read by the Lance library, in a
// Python process that is given a copy of just the files of the latest version: so it needs no keys, and reads any store that we read.

// row is a row of the catalog's table.
type row struct {
	ID       string  `json:"object_id"`
	Type     string  `json:"object_type"`
	Location *string `json:"location"`
	Metadata *string `json:"metadata"`
}

// readerFlags is the key of the table's metadata that names what a reader must know; none of it is defined yet.
const readerFlags = "lance.namespace.manifest.reader_feature_flags"

// findInCatalog takes the rows of a directory catalog, and those datasets beside them that no row names, as its readers do.
func (r *run) findInCatalog(ctx context.Context, f *found, folders []string) error {
	rows, err := r.rows(ctx)
	if err != nil {
		return fmt.Errorf("read the directory catalog at %s: %w", r.Location, err)
	}
	named := map[string]bool{}
	for _, row := range rows {
		path := r.at(strings.Split(row.ID, lance.DefaultDelimiter)...)
		switch row.Type {
		case "namespace":
			s := space{path: lance.NamespaceID(path)}
			// A property of that name would put tables elsewhere here; there it meant nothing.
			if s.properties, err = row.properties(); err == nil {
				delete(s.properties, "location")
			}
			f.spaces_ = append(f.spaces_, s)
		case "table":
			t := r.rowTable(row, path)
			f.tables = append(f.tables, t)
			if row.Location != nil {
				named[*row.Location] = true
			}
		}
	}
	for _, name := range folders {
		bare, listed := strings.CutSuffix(name, suffix)
		if listed && !named[name] {
			f.tables = append(f.tables, r.listedTable(r.at(bare), r.Location, name))
		}
	}
	return nil
}

// rowTable is the table that a row names.
func (r *run) rowTable(row row, path lance.TableID) table {
	t := table{path: path, location: r.Location}
	if row.Location == nil || *row.Location == "" {
		t.fault = "its row in the directory catalog has no location"
		return t
	}
	loc, err := r.rowLocation(*row.Location)
	if err != nil {
		t.fault = err.Error()
		return t
	}
	t.location = r.Resolve(loc)
	t.link = t.location != loc
	if t.properties, err = row.properties(); err != nil {
		t.fault = "the metadata of its row in the directory catalog are no map of texts: " + err.Error()
	}
	return t
}

// rowLocation reads a row's location, which is raw and relative to the catalog's directory.
func (r *run) rowLocation(given string) (lance.Location, error) {
	if strings.Contains(given, "://") || strings.HasPrefix(given, "/") {
		return lance.ParseLocation(given)
	}
	loc := r.Location
	for name := range strings.SplitSeq(strings.TrimSuffix(given, "/"), "/") {
		var err error
		if loc, err = loc.Join(name); err != nil {
			return loc, err
		}
	}
	return loc, nil
}

func (r row) properties() (map[string]string, error) {
	if r.Metadata == nil {
		return nil, nil
	}
	var m map[string]string
	err := json.Unmarshal([]byte(*r.Metadata), &m)
	return m, err
}

// rows reads the latest version of the catalog's table.
func (r *run) rows(ctx context.Context) ([]row, error) {
	dir := dirOf(r.Location) + catalogTable + "/"
	manifest, err := newestManifest(ctx, r.Objects, dir)
	if err != nil {
		return nil, err
	}
	if manifest == "" {
		return nil, nil
	}
	temporary, err := os.MkdirTemp("", "lancerest-import-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	c := copying{objects: r.Objects, dir: dir, to: temporary}
	data, err := c.copy(ctx, strings.TrimPrefix(manifest, dir))
	if err != nil {
		return nil, err
	}
	if err := c.files(ctx, data); err != nil {
		return nil, err
	}
	return readRows(ctx, r.Python, temporary)
}

// copying copies files of a dataset to a directory of this machine.
type copying struct {
	objects objstore.Store
	dir     string
	to      string
}

// files copies the data of a version, given its manifest.
func (c copying) files(ctx context.Context, manifest []byte) error {
	m, err := lance.ReadManifest(manifest)
	if err != nil {
		return err
	}
	details, err := lance.ReadDetails(manifest)
	if err != nil {
		return err
	}
	if flags := details.TableMetadata[readerFlags]; flags != "" && flags != "0" {
		return fmt.Errorf("it says %s = %s, which this release does not know: use a newer one", readerFlags, flags)
	}
	if len(details.BasePaths) > 0 {
		return fmt.Errorf("its table has files outside its own directory, which no catalog's table has")
	}
	paths, err := lance.DataFiles(manifest)
	if err != nil {
		return err
	}
	for _, path := range slices.Compact(paths) {
		if _, err := c.copy(ctx, "data/"+path); err != nil {
			return err
		}
	}
	if m.DeletionFiles == 0 {
		return nil
	}
	for info, err := range c.objects.List(ctx, c.dir+"_deletions/", "") {
		if err == nil {
			_, err = c.copy(ctx, strings.TrimPrefix(info.Key, c.dir))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copy copies one file and returns what is in it.
func (c copying) copy(ctx context.Context, path string) ([]byte, error) {
	if err := objstore.CheckKey(path); err != nil {
		return nil, err
	}
	data, _, err := c.objects.Get(ctx, c.dir+path, manifestMax)
	if err != nil {
		return nil, err
	}
	to := filepath.Join(c.to, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return nil, err
	}
	return data, os.WriteFile(to, data, 0o600)
}
