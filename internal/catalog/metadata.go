package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/schema"
	"github.com/lancerest/lancerest/internal/memory"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
)

// noteKey is the key of an answer's context under which a sentence says why the answer tells less than was asked for.
const noteKey = "note"

// described is what is told of all versions that have one digest in VersionSummary.Schema.
type described struct {
	fields         []lance.SchemaField
	schemaMetadata map[string]string
	tableMetadata  map[string]string
	forms          [2]writtenSchema // by schema.Form
}

// writtenSchema is a schema in one form, written when it is first asked for.
type writtenSchema struct {
	once sync.Once
	json *api.JSONArrowSchema
	err  error
}

// schema returns the schema in a form. The error says what in it cannot be told.
func (d *described) schema(form schema.Form) (*api.JSONArrowSchema, error) {
	w := &d.forms[form]
	w.once.Do(func() { w.json, w.err = schema.JSON(d.fields, d.schemaMetadata, form) })
	return w.json, w.err
}

// bytes estimates what the description takes in memory, its written forms included.
func (d *described) bytes() int64 {
	const perField, perEntry = 500, 100
	n := 0
	count := func(m map[string]string) {
		for k, v := range m {
			n += perEntry + len(k) + len(v)
		}
	}
	count(d.schemaMetadata)
	count(d.tableMetadata)
	for _, f := range d.fields {
		n += perField + len(f.Name) + len(f.LogicalType)
		count(f.Metadata)
	}
	return 3 * int64(n)
}

func describedBy(d lance.Details) *described {
	return &described{fields: d.Fields, schemaMetadata: d.SchemaMetadata, tableMetadata: d.TableMetadata}
}

// learn keeps the description that a manifest holds, which has been read for other reasons, unless it is known. One that cannot be read is
// left to those who ask for it.
func (c *Catalog) learn(data []byte, summary *lance.VersionSummary) {
	key := memory.Key{What: memory.OfSchema, Digest: summary.Schema}
	if c.memory.Has(key) {
		return
	}
	if details, err := lance.ReadDetails(data); err == nil {
		d := describedBy(details)
		c.memory.Put(memory.Item{Key: key, Value: d, Bytes: d.bytes()})
	}
}

// reading is a version of which more is asked than its row says. It reads the manifest when that is first needed, and once.
type reading struct {
	c       *Catalog
	table   lance.Table
	version lance.Version
	data    []byte
}

// manifest returns the bytes of the version's manifest. Errors: 19 (it is gone, or holds something else), 503 and the like.
func (r *reading) manifest(ctx context.Context) ([]byte, error) {
	if r.data != nil {
		return r.data, nil
	}
	p, err := r.c.places.At(r.table.Location)
	if err != nil {
		return nil, err
	}
	v := r.version
	key := p.Final(v.Chain.Branch, v.Number, v.Scheme)
	data, _, err := p.Objects.Get(ctx, key, r.c.places.MaxManifest())
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, p.Proven(ctx, api.Errorf(api.CodeInvalidTableState, "the manifest of version %d of table %q, %s, is gone from storage", v.Number, lance.ShowID(r.table.Path), key))
	}
	if err != nil {
		return nil, place.StorageError("read "+key, err)
	}
	if lance.Digest(sha256.Sum256(data)) != v.Digest {
		return nil, api.Errorf(api.CodeInvalidTableState, "the manifest of version %d of table %q, %s, holds something else than was committed", v.Number, lance.ShowID(r.table.Path), key)
	}
	r.data = data
	return data, nil
}

// summary returns the version's numbers: those of its row, or of its manifest where the row was written by an older release.
func (r *reading) summary(ctx context.Context) (*lance.VersionSummary, error) {
	if r.version.Summary != nil {
		return r.version.Summary, nil
	}
	data, err := r.manifest(ctx)
	if err != nil {
		return nil, err
	}
	m, err := lance.ReadManifest(data)
	if err != nil {
		return nil, r.damaged(err)
	}
	return m.Summary(), nil
}

// described returns what is told of the version beside its numbers, without a look at storage where a version with the same schema was
// looked at before.
func (r *reading) described(ctx context.Context, summary *lance.VersionSummary) (*described, error) {
	return memory.Remembered(r.c.memory, memory.Key{What: memory.OfSchema, Digest: summary.Schema}, func() (*described, int64, error) {
		data, err := r.manifest(ctx)
		if err != nil {
			return nil, 0, err
		}
		details, err := lance.ReadDetails(data)
		if err != nil {
			return nil, 0, r.damaged(err)
		}
		d := describedBy(details)
		return d, d.bytes(), nil
	})
}

// damaged is the error of a manifest that cannot be read.
func (r *reading) damaged(err error) error {
	return api.Errorf(api.CodeInvalidTableState, "the manifest of version %d of table %q cannot be read: %v", r.version.Number, lance.ShowID(r.table.Path), err)
}

// unknownFlags says that a manifest has feature flags which this catalog does not know, so that it might take what it reads for something
// else; "" where it knows all.
func unknownFlags(s *lance.VersionSummary) string {
	unknown := s.ReaderFlags &^ lance.DescribedFlags
	if unknown == 0 {
		return ""
	}
	return fmt.Sprintf("the manifest has reader feature flags with bits %v set, which this server does not know: what they change is not told; use a newer release, or read the manifest with the Lance library that wrote it", unknown)
}

// countable returns the error of an operation that needs what a manifest does not tell, nil where it tells.
func countable(t lance.Table, s *lance.VersionSummary) error {
	if why := unknownFlags(s); why != "" {
		return api.Errorf(api.CodeUnsupported, "table %q: %s", lance.ShowID(t.Path), why)
	}
	if s.Rows < 0 {
		return api.Errorf(api.CodeUnsupported, "table %q: its manifest does not say how many rows all of its fragments have, so they must be counted in its data files: use a Lance library; any write to the table with a current one notes the numbers", lance.ShowID(t.Path))
	}
	return nil
}

// summaryMetadata is a version's summary in the words in which the Lance library shows it with each version, nil where it cannot be told.
func summaryMetadata(s *lance.VersionSummary) map[string]string {
	if s == nil || unknownFlags(s) != "" {
		return nil
	}
	m := map[string]string{}
	set := func(key string, n int64) { m[key] = strconv.FormatInt(n, 10) }
	set("total_fragments", s.Fragments)
	set("total_data_files", s.DataFiles)
	set("total_files_size", s.DataBytes)
	set("total_deletion_files", s.DeletionFiles)
	if s.Rows >= 0 {
		set("total_rows", s.Rows)
		set("total_data_file_rows", s.Rows+s.DeletedRows)
		set("total_deletion_file_rows", s.DeletedRows)
	}
	return m
}

// withSummary adds the summary to metadata that a person or a writer gave, which wins.
func withSummary(given map[string]string, s *lance.VersionSummary) map[string]string {
	m := summaryMetadata(s)
	if m == nil {
		return filled(maps.Clone(given))
	}
	maps.Copy(m, given)
	return m
}
