package catalog_test

import (
	"context"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
)

// checks is how many sequences one run tries, unless -rapid.checks says otherwise: 30 take seconds also where every test is slow.
const checks = "30"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if !chosen {
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// modelTable is what the model knows of a table.
type modelTable struct {
	table
	// versions holds the bytes of every version that can be described: those that the catalog was told of, and those that
	// bypassing writers put into storage, which count as soon as anybody asks for them or for the number after them (C9).
	versions map[int64][]byte
	// known is the highest version that the catalog was told of, or was asked about.
	known int64
	last  int64 // the highest number ever used; none is given twice
}

// machine runs two servers and a model side by side.
type machine struct {
	lake    *lake
	servers []*server
	tables  map[string]*modelTable
	gone    []*modelTable // deregistered; their files are still there
	sent    []sentBatch
}

// sentBatch is a batch that succeeded, with the tables that it was sent to.
type sentBatch struct {
	versions []staged
	tables   []*modelTable
}

// TestRandomOperations compares what two servers on one state answer to any sequence of operations, by code and by content, with a
// model in memory.
func TestRandomOperations(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(parent, "")
		if err != nil {
			t.Fatal(err)
		}
		m := &machine{lake: openLake(t, dir), tables: map[string]*modelTable{}}
		m.servers = []*server{m.lake.server(t), m.lake.server(t)}
		t.Repeat(map[string]func(*rapid.T){
			"":           m.check,
			"declare":    m.declare,
			"create":     m.create,
			"batch":      m.batch,
			"mixed":      m.mixed,
			"abandon":    m.abandon,
			"replay":     m.replay,
			"bypass":     m.bypass,
			"cleanup":    m.cleanup,
			"delete":     m.delete,
			"rename":     m.rename,
			"drop":       m.drop,
			"deregister": m.deregister,
			"register":   m.register,
			"describe":   m.describe,
		})
	})
}

var names = []string{"a", "b", "c"}

func (m *machine) server(t *rapid.T) *server {
	return m.servers[rapid.IntRange(0, 1).Draw(t, "server")]
}

func (m *machine) name(t *rapid.T) string { return rapid.SampledFrom(names).Draw(t, "table") }

// existing draws a table that exists, or skips the action.
func (m *machine) existing(t *rapid.T) *modelTable {
	if len(m.tables) == 0 {
		t.Skip("no table")
	}
	return m.tables[rapid.SampledFrom(slices.Sorted(maps.Keys(m.tables))).Draw(t, "table")]
}

// answered fails the test unless err has one of the codes; none means that it must be nil.
func answered(t *rapid.T, err error, codes ...api.Code) {
	t.Helper()
	switch {
	case err == nil && len(codes) > 0:
		t.Fatalf("no error, want one of the codes %v", codes)
	case err != nil && !slices.Contains(codes, api.CodeOf(err)):
		t.Fatalf("code %v, want one of %v: %v", api.CodeOf(err), codes, err)
	}
}

// check is run after every action.
func (m *machine) check(t *rapid.T) {
	s := m.servers[0]
	if got, want := s.tables(t), slices.Sorted(maps.Keys(m.tables)); !slices.Equal(got, want) {
		t.Fatalf("tables %v, want %v", got, want)
	}
	for _, name := range slices.Sorted(maps.Keys(m.tables)) {
		mt := m.tables[name]
		got := m.servers[1].list(t, mt.table)
		want := slices.Sorted(maps.Keys(mt.versions))
		told := slices.DeleteFunc(slices.Clone(want), func(v int64) bool { return v > mt.known })
		if !slices.Equal(got, want) && (len(told) == 0 || !slices.Equal(got, told)) {
			t.Fatalf("versions of %s are %v, want %v, those above %d perhaps not", name, got, want, mt.known)
		}
		if len(got) > 0 {
			mt.known = max(mt.known, got[len(got)-1])
			latest := got[rapid.IntRange(0, len(got)-1).Draw(t, "shown")]
			s.shows(t, mt.table, latest, mt.versions[latest])
		}
	}
}

func (m *machine) declare(t *rapid.T) {
	name := m.name(t)
	resp, err := m.server(t).DeclareTable(context.Background(), &api.DeclareTableRequest{Target: api.At(name)})
	if m.tables[name] != nil {
		answered(t, err, api.CodeTableAlreadyExists)
		return
	}
	answered(t, err)
	m.tables[name] = &modelTable{table: tableAt(t, name, *resp.Location), versions: map[int64][]byte{}}
}

// draw stages versions of tables that exist, most often those that come next, and says with which codes their batch may be
// refused.
func (m *machine) draw(t *rapid.T, n int) (sentBatch, []api.Code) {
	var b sentBatch
	var codes []api.Code
	next := map[*modelTable]int64{}
	for range n {
		mt := m.existing(t)
		if next[mt] == 0 {
			next[mt] = mt.last + 1
		}
		v := next[mt] + rapid.SampledFrom([]int64{0, 0, 0, 0, 0, 1, -1, -2}).Draw(t, "beside the next")
		if v < 1 {
			v = 1
		}
		if slices.ContainsFunc(b.versions, func(sv staged) bool { return sv.Version == v && sv.table.dir == mt.dir }) {
			codes = append(codes, api.CodeInvalidInput)
		} else if v != next[mt] {
			codes = append(codes, api.CodeConcurrentModification)
		}
		next[mt]++
		b.versions = append(b.versions, m.lake.stage(t, mt.table, v))
		b.tables = append(b.tables, mt)
	}
	return b, codes
}

// keep makes the model know what a batch committed.
func (m *machine) keep(b sentBatch) {
	for i, sv := range b.versions {
		b.tables[i].committed(sv.Version, sv.data)
	}
	m.sent = append(m.sent, b)
}

func (mt *modelTable) committed(v int64, data []byte) {
	mt.versions[v] = data
	mt.known, mt.last = max(mt.known, v), max(mt.last, v)
}

func (m *machine) create(t *rapid.T) {
	b, codes := m.draw(t, 1)
	_, err := m.server(t).create(context.Background(), b.versions[0])
	answered(t, err, codes...)
	if err == nil {
		m.keep(b)
	}
}

func (m *machine) batch(t *rapid.T) {
	b, codes := m.draw(t, rapid.IntRange(1, 4).Draw(t, "entries"))
	_, err := m.server(t).batch(context.Background(), b.versions...)
	answered(t, err, codes...)
	if err == nil {
		m.keep(b)
	}
}

// mixed declares a table and creates its first version, beside a version of another table.
func (m *machine) mixed(t *rapid.T) {
	name := m.name(t)
	b, codes := m.draw(t, 1)
	fresh := &modelTable{versions: map[int64][]byte{}, table: m.lake.table(name, name+rapid.StringMatching("[a-z]{12}").Draw(t, "directory"))}
	first := m.lake.stage(t, fresh.table, 1)
	if m.tables[name] != nil {
		codes = append(codes, api.CodeTableAlreadyExists, api.CodeInvalidInput, api.CodeConcurrentModification)
	}
	_, err := m.server(t).mixed(context.Background(), createOp(b.versions[0]), declareAt(name, fresh.table), createOp(first))
	answered(t, err, codes...)
	if err == nil {
		m.tables[name] = fresh
		fresh.committed(1, first.data)
		b.tables[0].committed(b.versions[0].Version, b.versions[0].data)
	}
}

// abandon lets a third server die while it publishes a batch. Whoever meets it finishes it.
func (m *machine) abandon(t *rapid.T) {
	b, codes := m.draw(t, rapid.IntRange(1, 3).Draw(t, "entries"))
	if len(codes) > 0 {
		t.Skip("the batch would be refused")
	}
	m.lake.abandon(t, b.versions...)
	m.keep(b)
}

// replay sends a batch again that succeeded, if its tables are what they were.
func (m *machine) replay(t *rapid.T) {
	if len(m.sent) == 0 {
		t.Skip("nothing was sent")
	}
	b := m.sent[rapid.IntRange(0, len(m.sent)-1).Draw(t, "batch")]
	for i, mt := range b.tables {
		if m.tables[b.versions[i].table.id[0]] != mt {
			t.Skip("a table is another now")
		}
	}
	resp, err := m.server(t).batch(context.Background(), b.versions...)
	answered(t, err)
	for i, v := range resp.Versions {
		if v.Version != b.versions[i].Version || v.Metadata["mark"] != b.versions[i].Metadata["mark"] {
			t.Fatalf("the replay was answered with version %d of mark %q", v.Version, v.Metadata["mark"])
		}
	}
}

// bypass publishes the next version behind the catalog's back.
func (m *machine) bypass(t *rapid.T) {
	mt := m.existing(t)
	if len(m.lake.pending(t)) > 0 {
		t.Skip("it could undo what is pending; that has tests of its own")
	}
	mt.last++
	mt.versions[mt.last] = m.lake.bypass(t, mt.table, mt.last)
}

// cleanup removes an old version in storage, as clients do.
func (m *machine) cleanup(t *rapid.T) {
	mt := m.existing(t)
	old := slices.DeleteFunc(slices.Sorted(maps.Keys(mt.versions)), func(v int64) bool { return v >= mt.known })
	if len(old) == 0 {
		t.Skip("no old version")
	}
	v := rapid.SampledFrom(old).Draw(t, "version")
	// A pending version's object would be put again.
	m.servers[0].shows(t, mt.table, v, mt.versions[v])
	m.lake.remove(t, mt.final(v))
	delete(mt.versions, v)
}

func (m *machine) delete(t *rapid.T) {
	mt := m.existing(t)
	m.settle(t, mt)
	first := rapid.Int64Range(1, mt.last+2).Draw(t, "first")
	end := rapid.Int64Range(first, mt.last+3).Draw(t, "end")
	s := m.server(t)
	resp, err := s.BatchDeleteTableVersions(context.Background(), &api.BatchDeleteTableVersionsRequest{
		Target: api.At(mt.id...), Ranges: []api.VersionRange{{StartVersion: first, EndVersion: end}},
	})
	if first <= mt.last && mt.last < end {
		answered(t, err, api.CodeInvalidTableState)
		return
	}
	answered(t, err)
	for v := range mt.versions {
		if v >= first && v < end {
			delete(mt.versions, v)
		}
	}
	if *resp.DeletedCount < 0 || *resp.DeletedCount > end-first {
		t.Fatalf("%d versions of %d to %d were deleted", *resp.DeletedCount, first, end)
	}
	s.runJobs(t, catalog.JobDeleteManifests)
}

// settle makes the catalog know the latest version.
func (m *machine) settle(t *rapid.T, mt *modelTable) {
	if mt.last > 0 {
		m.servers[0].shows(t, mt.table, mt.last, mt.versions[mt.last])
		mt.known = mt.last
	}
}

func (m *machine) rename(t *rapid.T) {
	from, to := m.name(t), m.name(t)
	_, err := m.server(t).RenameTable(context.Background(), &api.RenameTableRequest{Target: api.At(from), NewTableName: to})
	switch {
	case m.tables[from] == nil:
		answered(t, err, api.CodeTableNotFound)
	case from == to:
		answered(t, err)
	case m.tables[to] != nil:
		answered(t, err, api.CodeTableAlreadyExists)
	default:
		answered(t, err)
		mt := m.tables[from]
		delete(m.tables, from)
		mt.id = []string{to}
		m.tables[to] = mt
	}
}

func (m *machine) drop(t *rapid.T) {
	name := m.name(t)
	s := m.server(t)
	_, err := s.DropTable(context.Background(), &api.DropTableRequest{Target: api.At(name)})
	if m.tables[name] == nil {
		answered(t, err, api.CodeTableNotFound)
		return
	}
	answered(t, err)
	dir := m.tables[name].dir
	delete(m.tables, name)
	s.runJobs(t, catalog.JobPurge)
	for info, err := range m.lake.objects.List(context.Background(), dir+"/", "") {
		t.Fatalf("%s is left of the dropped table, error %v", info.Key, err)
	}
}

func (m *machine) deregister(t *rapid.T) {
	name := m.name(t)
	_, err := m.server(t).DeregisterTable(context.Background(), &api.DeregisterTableRequest{Target: api.At(name)})
	if m.tables[name] == nil {
		answered(t, err, api.CodeTableNotFound)
		return
	}
	answered(t, err)
	m.gone = append(m.gone, m.tables[name])
	delete(m.tables, name)
}

// register brings a deregistered table back under any name: its versions are those of storage.
func (m *machine) register(t *rapid.T) {
	if len(m.gone) == 0 {
		t.Skip("nothing was deregistered")
	}
	i := rapid.IntRange(0, len(m.gone)-1).Draw(t, "which")
	name, old := m.name(t), m.gone[i]
	_, err := m.server(t).RegisterTable(context.Background(), &api.RegisterTableRequest{
		Target: api.At(name), Location: old.location,
	})
	switch {
	case len(old.versions) == 0:
		answered(t, err, api.CodeInvalidInput, api.CodeTableAlreadyExists)
	case m.tables[name] != nil:
		answered(t, err, api.CodeTableAlreadyExists)
	default:
		answered(t, err)
		last := slices.Max(slices.Collect(maps.Keys(old.versions)))
		m.tables[name] = &modelTable{table: table{id: []string{name}, dir: old.dir, location: old.location}, versions: maps.Clone(old.versions), known: last, last: last}
		m.gone = slices.Delete(m.gone, i, i+1)
	}
}

// describe asks for any version, and for the latest.
func (m *machine) describe(t *rapid.T) {
	mt := m.existing(t)
	s := m.server(t)
	v := rapid.Int64Range(1, mt.last+2).Draw(t, "version")
	got, err := s.describe(context.Background(), mt.table, v)
	if mt.versions[v] == nil {
		answered(t, err, api.CodeTableVersionNotFound)
	} else {
		answered(t, err)
		m.lake.holds(t, got.ManifestPath, mt.versions[v])
		mt.known = max(mt.known, v)
	}
	resp, err := s.DescribeTableVersion(context.Background(), &api.DescribeTableVersionRequest{Target: api.At(mt.id...)})
	if mt.last == 0 {
		answered(t, err, api.CodeTableVersionNotFound)
		return
	}
	answered(t, err)
	latest := resp.Version.Version
	if latest < mt.known || lancetest.Mark(mt.versions[latest]) == "" {
		t.Fatalf("the latest version is said to be %d, and %d is known of %v", latest, mt.known, slices.Sorted(maps.Keys(mt.versions)))
	}
	m.lake.holds(t, resp.Version.ManifestPath, mt.versions[latest])
	if resp.Version.ManifestPath != mt.finalOn(lance.Main, latest) {
		t.Fatalf("the latest version is said to stand at %s", resp.Version.ManifestPath)
	}
}
