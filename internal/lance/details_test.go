package lance_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/lance"
)

// TestReadDetails reads manifests that pylance 14.0.2 wrote.
func TestReadDetails(t *testing.T) {
	t.Parallel()
	read := func(file string) lance.Details {
		t.Helper()
		d, err := lance.ReadDetails(readFile(t, "manifests/"+file))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	branch := read("branch.manifest")
	id := lance.SchemaField{ID: 0, Parent: -1, Name: "id", Nullable: true, LogicalType: "int64", Encoding: 1}
	if diff := cmp.Diff(id, branch.Fields[0]); diff != "" {
		t.Errorf("first field of a branch (-want +got):\n%s", diff)
	}
	if len(branch.BasePaths) != 1 || !branch.BasePaths[0].DatasetRoot || branch.BasePaths[0].Path == "" {
		t.Errorf("base paths of a branch are %+v, want the table's own directory", branch.BasePaths)
	}
	if n := read("stable_row_ids.manifest").NextRowID; n != 20 {
		t.Errorf("the next row id is %d, want 20", n)
	}
	indices := read("index.manifest").Segments
	if len(indices) != 1 {
		t.Fatalf("index.manifest has %d segments of indices, want 1", len(indices))
	}
	s := indices[0]
	if s.Name != "id_idx" || s.TypeURL != "/lance.table.BTreeIndexDetails" || s.DatasetVersion != 1 || s.Fragments == nil || !s.Fragments.Contains(0) || s.Fragments.Contains(1) {
		t.Errorf("the segment is %+v", s)
	}
	if s.Created.Year() != 2026 || s.Version == nil || len(s.UUID) != 36 || s.Bytes == 0 || s.Files == 0 {
		t.Errorf("the segment is %+v", s)
	}
}

// TestReadDetailsOfOtherWriters reads what the writers of today do not write.
func TestReadDetailsOfOtherWriters(t *testing.T) {
	t.Parallel()
	entry := func(key string, value []byte) []byte { return message(content(1, []byte(key)), content(2, value)) }
	field := message(
		content(2, []byte("key")), number(3, 7), number(4, 3), content(5, []byte("dict:string:int8:false")), number(7, 3),
		content(8, message(number(1, 11), number(2, 12))), content(9, []byte("ext")), content(10, entry("a", []byte("b\xff"))), number(12, 1), number(13, 2),
	)
	segment := message(
		content(1, content(1, []byte("0123456789abcdef"))), number(2, 1), number(2, 2), content(3, []byte("idx")), content(11, []byte{2}), number(8, 1000),
	)
	data := manifestFile(section(content(1, segment)), message(
		number(3, 1), content(1, field), content(5, entry("s", []byte("x"))), number(6, 0), content(8, []byte("v1")), number(14, 9),
		content(16, entry("c", []byte("y"))), content(19, entry("t", nil)),
		content(18, message(number(1, 4), content(2, []byte("clone")), content(4, []byte("s3://b/p")))),
	))
	want := lance.Details{
		Fields: []lance.SchemaField{{
			ID: 7, Parent: 3, Name: "key", LogicalType: "dict:string:int8:false", Encoding: 3, Extension: "ext", Metadata: map[string]string{"a": "b\uFFFD"},
			Dictionary: &lance.SchemaDictionary{Offset: 11, Length: 12}, PrimaryKey: true, KeyPosition: 2,
		}},
		SchemaMetadata: map[string]string{"s": "x"}, TableMetadata: map[string]string{"t": ""}, Config: map[string]string{"c": "y"}, Tag: "v1", NextRowID: 9,
		BasePaths: []lance.BasePath{{ID: 4, Name: "clone", Path: "s3://b/p"}},
		Segments: []lance.IndexSegment{{
			Name: "idx", UUID: "30313233-3435-3637-3839-616263646566", Fields: []int32{1, 2}, CoveringFields: []int32{2},
			Created: time.Date(1970, 1, 1, 0, 0, 1, 0, time.UTC),
		}},
	}
	got, err := lance.ReadDetails(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ReadDetails (-want +got):\n%s", diff)
	}
}

func TestReadDetailsRefuses(t *testing.T) {
	t.Parallel()
	index := func(fields ...[]byte) []byte {
		return manifestFile(section(content(1, message(fields...))), message(number(3, 1), number(6, 0)))
	}
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"name not UTF-8":         {manifestFile(nil, content(1, content(2, []byte{0xff}))), "in field"},
		"malformed metadata":     {manifestFile(nil, content(5, []byte{0xff})), "in an entry of field 5"},
		"base path as number":    {manifestFile(nil, number(18, 1)), "field 18"},
		"dictionary as number":   {manifestFile(nil, content(1, number(8, 1))), "field 8"},
		"UUID too short":         {index(content(1, content(1, []byte("x")))), "holds no UUID"},
		"malformed fields":       {index(content(2, []byte{0xff})), "malformed number"},
		"a bitmap that is none":  {index(content(5, []byte("nothing like a bitmap"))), "no form of it"},
		"created after all time": {index(number(8, 1<<62)), "out of range"},
		"section outside":        {manifestFile(nil, number(6, 5)), "outside the 0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := lance.ReadDetails(tc.data)
			wantCorrupt(t, err, tc.want)
		})
	}
}

// TestSchemaDigest holds that the digest tells schemas and table metadata apart, and nothing else.
func TestSchemaDigest(t *testing.T) {
	t.Parallel()
	pair := func(key, value string) []byte { return message(content(1, []byte(key)), content(2, []byte(value))) }
	column := func(name string, metadata ...[]byte) []byte {
		m := message(content(2, []byte(name)), content(5, []byte("int64")))
		for _, e := range metadata {
			m = append(m, content(10, e)...)
		}
		return content(1, m)
	}
	digest := func(fields ...[]byte) lance.Digest {
		t.Helper()
		m, err := lance.ReadManifest(manifestFile(nil, message(number(3, 1), message(fields...))))
		if err != nil {
			t.Fatal(err)
		}
		return m.Schema
	}
	a, b := pair("a", "1"), pair("b", "2")
	base := digest(column("x", a, b), column("y"), content(5, a), content(5, b), content(19, a))
	same := map[string]lance.Digest{
		"entries in another order": digest(column("x", b, a), column("y"), content(19, a), content(5, b), content(5, a)),
		"rows, config and version": digest(column("x", a, b), column("y"), content(2, number(4, 5)), content(5, a), content(16, a), content(5, b), content(19, a), number(3, 9)),
	}
	for name, d := range same {
		if d != base {
			t.Errorf("%s: another digest", name)
		}
	}
	seen := map[lance.Digest]string{base: "the first"}
	for name, d := range map[string]lance.Digest{
		"columns in another order": digest(column("y"), column("x", a, b), content(5, a), content(5, b), content(19, a)),
		"another name":             digest(column("z", a, b), column("y"), content(5, a), content(5, b), content(19, a)),
		"metadata of another":      digest(column("x", a), column("y", b), content(5, a), content(5, b), content(19, a)),
		"no schema metadata":       digest(column("x", a, b), column("y"), content(19, a)),
		"no table metadata":        digest(column("x", a, b), column("y"), content(5, a), content(5, b)),
		"the other's metadata":     digest(column("x", a, b), column("y"), content(19, a), content(19, b), content(5, a)),
		"nothing":                  digest(),
	} {
		if before, ok := seen[d]; ok {
			t.Errorf("%s: the digest of %s", name, before)
		}
		seen[d] = name
	}
}

// largeManifest returns a manifest of a version with many fragments, each of one data file as pylance describes it, one in ten with a
// deletion file.
func largeManifest(fragments int) []byte {
	m := message(number(3, 7), content(1, message(content(2, []byte("id")), number(4, 1<<64-1), content(5, []byte("int64")))))
	for i := range fragments {
		file := message(
			content(1, fmt.Appendf(nil, "1010111010110011110101111eba0%031x.lance", i)), content(2, []byte{0, 1, 2, 3}), content(3, []byte{0, 1, 2, 3}),
			number(4, 2), number(5, 1), number(6, uint64(1_000_000+i)),
		)
		fragment := message(number(1, uint64(i)), content(2, file), number(4, 1_000_000))
		if i%10 == 0 {
			fragment = append(fragment, content(3, message(number(1, 1), number(2, 6), number(3, 1<<60), number(4, 17)))...)
		}
		m = append(m, content(2, fragment)...)
	}
	return manifestFile(nil, m)
}

// TestLargeManifest reads one of 100,000 fragments in memory that does not grow with their number.
func TestLargeManifest(t *testing.T) {
	const fragments = 100_000
	data := largeManifest(fragments)
	var m lance.Manifest
	var err error
	allocations := testing.AllocsPerRun(1, func() { m, err = lance.ReadManifest(data) })
	if err != nil {
		t.Fatal(err)
	}
	if allocations > 100 {
		t.Errorf("ReadManifest allocates %v times", allocations)
	}
	if m.Fragments != fragments || m.Rows() != fragments*1_000_000-fragments/10*17 || m.DataFiles != fragments || m.DeletionFiles != fragments/10 {
		t.Errorf("ReadManifest counts %+v", m)
	}
	next := uint64(0)
	allocations = testing.AllocsPerRun(1, func() {
		next = 0
		err = lance.VisitFragments(data, func(f *lance.Fragment) error {
			if f.ID != next || f.DeletionFile != (f.ID%10 == 0) {
				return fmt.Errorf("fragment %+v stands where %d should", *f, next)
			}
			next++
			return nil
		})
	})
	if err != nil || next != fragments || allocations > 100 {
		t.Errorf("VisitFragments ends at %d with error %v after %v allocations", next, err, allocations)
	}
}

func BenchmarkReadManifest(b *testing.B) {
	data := largeManifest(100_000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := lance.ReadManifest(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVisitFragments(b *testing.B) {
	data := largeManifest(100_000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := lance.VisitFragments(data, func(*lance.Fragment) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// setOf makes the bytes of a set of fragments without runs, in arrays alone.
func setOf(ids ...uint32) []byte {
	var keys []uint16
	parts := map[uint16][]uint16{}
	for _, id := range ids {
		key := uint16(id >> 16)
		if parts[key] == nil {
			keys = append(keys, key)
		}
		parts[key] = append(parts[key], uint16(id))
	}
	out := binary.LittleEndian.AppendUint32(nil, 12346)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(keys)))
	for _, key := range keys {
		out = binary.LittleEndian.AppendUint16(out, key)
		out = binary.LittleEndian.AppendUint16(out, uint16(len(parts[key])-1))
	}
	out = append(out, make([]byte, 4*len(keys))...)
	for _, key := range keys {
		for _, low := range parts[key] {
			out = binary.LittleEndian.AppendUint16(out, low)
		}
	}
	return out
}

func TestFragmentSet(t *testing.T) {
	t.Parallel()
	dense := binary.LittleEndian.AppendUint32(nil, 12346) // one part of bits: the even numbers below 10,000
	dense = append(dense, 1, 0, 0, 0, 0, 0, 0x87, 0x13, 0, 0, 0, 0)
	for i := range 8192 {
		b := byte(0)
		if i < 1250 {
			b = 0x55
		}
		dense = append(dense, b)
	}
	runs := []byte{0x3b, 0x30, 1, 0, 1, 0, 0, 4, 0, 2, 0, 1, 0, 2, 0, 5, 0, 2, 0, 20, 0, 1, 0, 3, 0, 9, 0} // runs 5-7 and 20-21, then 131075 and 131081
	for name, tc := range map[string]struct {
		data    []byte
		in, out []uint64
		n       int
	}{
		"arrays":  {setOf(0, 3, 65535, 65536, 1<<32-1), []uint64{0, 3, 65535, 65536, 1<<32 - 1}, []uint64{1, 2, 4, 65534, 65537, 1<<32 - 2, 1 << 32}, 5},
		"bits":    {dense, []uint64{0, 2, 9998}, []uint64{1, 9999, 10000, 65536}, 5000},
		"runs":    {runs, []uint64{5, 6, 7, 20, 21, 131075, 131081}, []uint64{0, 4, 8, 19, 22, 65541, 131076}, 7},
		"nothing": {setOf(), nil, []uint64{0, 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := lance.ParseFragmentSet(tc.data)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range tc.in {
				if !s.Contains(id) {
					t.Errorf("%d is missing", id)
				}
			}
			for _, id := range tc.out {
				if s.Contains(id) {
					t.Errorf("%d is in it", id)
				}
			}
			if s.Len() != tc.n {
				t.Errorf("Len = %d, want %d", s.Len(), tc.n)
			}
			for n := range tc.data {
				if _, err := lance.ParseFragmentSet(tc.data[:n]); err == nil {
					t.Errorf("its first %d of %d bytes pass for a set", n, len(tc.data))
				}
			}
			if _, err := lance.ParseFragmentSet(append(tc.data[:len(tc.data):len(tc.data)], 0)); err == nil {
				t.Error("a byte more passes")
			}
		})
	}
	if _, err := lance.ParseFragmentSet(setOf(3, 2)); err == nil {
		t.Error("ids out of order pass")
	}
	if _, err := lance.ParseFragmentSet(setOf(1<<16, 1)); err == nil {
		t.Error("parts out of order pass")
	}
}

// FuzzFragmentSet holds that no bytes make a set panic, and that it contains as many ids as it says.
func FuzzFragmentSet(f *testing.F) {
	f.Add(setOf(0, 3, 65535, 65536))
	f.Add([]byte{0x3b, 0x30, 0, 0, 1, 0, 0, 4, 0, 1, 0, 5, 0, 2, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := lance.ParseFragmentSet(data)
		if err != nil || len(data) > 1<<12 {
			return
		}
		n := 0
		for id := range uint64(1 << 17) {
			if s.Contains(id) {
				n++
			}
		}
		if n > s.Len() {
			t.Errorf("%d ids are in a set that counts %d", n, s.Len())
		}
	})
}
