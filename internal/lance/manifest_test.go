package lance_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lancerest/lancerest/internal/lance"
	"google.golang.org/protobuf/encoding/protowire"
)

// readAll returns the files of testdata that match a pattern, by name. There is at least one.
func readAll(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/" + pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no files match %s: %v", pattern, err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = data
	}
	return files
}

// manifestFile builds a manifest file of sections and the message of a manifest.
func manifestFile(sections, message []byte) []byte {
	data := append([]byte{}, sections...)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(message)))
	data = append(data, message...)
	data = binary.LittleEndian.AppendUint64(data, uint64(len(sections)))
	data = binary.LittleEndian.AppendUint16(data, 0)
	data = binary.LittleEndian.AppendUint16(data, 2)
	return append(data, "LANC"...)
}

// section builds a section of a manifest file: a message behind its length.
func section(message []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(message))), message...)
}

// number and content build one field of a protobuf message.
func number(field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), v)
}

func content(field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), v)
}

// message joins fields.
func message(fields ...[]byte) []byte {
	var m []byte
	for _, f := range fields {
		m = append(m, f...)
	}
	return m
}

// TestReadManifest reads manifests that pylance 14.0.2 wrote.
func TestReadManifest(t *testing.T) {
	t.Parallel()
	at := func(nanos int) time.Time { return time.Date(2026, 11, 29, 13, 37, 47, nanos, time.UTC) }
	base := lance.Manifest{Version: 1, FileFormat: "lance", DataVersion: "2.2", WriterLibrary: "lance", WriterVersion: "14.0.2", Fragments: 1, PhysicalRows: 3}
	with := func(change func(m *lance.Manifest)) lance.Manifest {
		m := base
		change(&m)
		return m
	}
	for _, tc := range []struct {
		file  string
		want  lance.Manifest
		read  lance.VersionNumber // wanted as ReadVersion
		bytes int64
	}{
		{"data_2.0.manifest", with(func(m *lance.Manifest) {
			m.DataVersion, m.Timestamp, m.TransactionFile = "2.0", at(815699751), "0-616e2c83-26e3-4aaf-a16b-b7a957cdfa84.txn"
		}), 0, 571},
		{"data_2.1.manifest", with(func(m *lance.Manifest) {
			m.DataVersion, m.Timestamp, m.TransactionFile = "2.1", at(818642468), "0-e34d486e-2456-476f-956e-510f46c1c5ff.txn"
		}), 0, 630},
		{"data_2.2.manifest", with(func(m *lance.Manifest) {
			m.Timestamp, m.TransactionFile = at(821062789), "0-31445f99-475a-4c4b-ae57-6f3986da0535.txn"
		}), 0, 634},
		{"naming_v1.manifest", with(func(m *lance.Manifest) {
			m.Timestamp, m.TransactionFile = at(823536098), "0-af2364da-1a28-4585-a2a8-915343ab7df2.txn"
		}), 0, 634},
		{"index.manifest", with(func(m *lance.Manifest) {
			m.Version, m.Fragments, m.PhysicalRows, m.MaxFragmentID = 3, 2, 310, 1
			m.Timestamp, m.TransactionFile = at(866138735), "2-4124af7e-787a-4669-b472-d3b9ce5c34b6.txn"
		}), 2, 4795},
		{"stable_row_ids.manifest", with(func(m *lance.Manifest) {
			m.Version, m.Fragments, m.PhysicalRows, m.DeletedRows, m.MaxFragmentID, m.RowVersions = 4, 3, 21, 2, 2, true
			m.ReaderFlags = lance.FlagDeletionFiles | lance.FlagStableRowIDs
			m.WriterFlags = m.ReaderFlags
			m.Timestamp, m.TransactionFile = at(885600967), "3-53ebbafb-5949-436f-9439-8892072ce9b6.txn"
		}), 3, 1936},
		{"branch.manifest", with(func(m *lance.Manifest) {
			m.Version, m.Branch, m.Fragments, m.PhysicalRows, m.MaxFragmentID = 2, "feature/x", 2, 12, 1
			m.ReaderFlags, m.WriterFlags = lance.FlagBasePaths, lance.FlagBasePaths
			m.Timestamp, m.TransactionFile = at(896091844), "1-63989eff-78c3-47a5-9c87-5e09c413b724.txn"
		}), 1, 1396},
		{"detached.manifest", with(func(m *lance.Manifest) {
			m.Version, m.Fragments, m.PhysicalRows, m.MaxFragmentID = -13852115556801732, 2, 6, 1
			m.Timestamp, m.TransactionFile = time.Date(2026, 11, 29, 13, 48, 16, 141190893, time.UTC), "1-68b46432-493c-431c-96e8-d3252b1c59bc.txn"
		}), 1, 1268},
	} {
		t.Run(tc.file, func(t *testing.T) {
			t.Parallel()
			got, err := lance.ReadManifest(readFile(t, "manifests/"+tc.file))
			if err != nil {
				t.Fatal(err)
			}
			tc.want.ReadVersion, tc.want.ReadVersionKnown = tc.read, true
			_, tc.want.TransactionUUID, _ = strings.Cut(strings.TrimSuffix(tc.want.TransactionFile, ".txn"), "-")
			tc.want.DataFiles, tc.want.DataBytes = tc.want.Fragments, tc.bytes
			if tc.want.DeletedRows > 0 {
				tc.want.DeletionFiles = 1
			}
			tc.want.Schema = got.Schema // TestSchemaDigest
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ReadManifest (-want +got):\n%s", diff)
			}
			if got, want := got.Rows(), tc.want.PhysicalRows-tc.want.DeletedRows; got != want {
				t.Errorf("Rows = %d, want %d", got, want)
			}
		})
	}
}

// TestReadManifestCutShort cuts real manifests anywhere: none of the pieces is a manifest.
func TestReadManifestCutShort(t *testing.T) {
	t.Parallel()
	for name, data := range readAll(t, "manifests/*") {
		for n := range len(data) {
			if _, err := lance.ReadManifest(data[:n]); err == nil {
				t.Errorf("%s: its first %d of %d bytes pass for a manifest", name, n, len(data))
			}
			if _, err := lance.ReadManifest(data[n+1:]); err == nil {
				t.Errorf("%s: what follows its first %d of %d bytes passes for a manifest", name, n+1, len(data))
			}
		}
	}
}

func TestReadManifestRefuses(t *testing.T) {
	t.Parallel()
	one := number(3, 1)
	good := manifestFile(nil, one)
	put := func(at int, bytes ...byte) []byte {
		data := append([]byte{}, good...)
		copy(data[at:], bytes)
		return data
	}
	fragment := func(fields ...[]byte) []byte { return manifestFile(nil, message(one, content(2, message(fields...)))) }
	deleted := func(n uint64) []byte { return content(3, number(4, n)) }
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"empty":                         {nil, "0 bytes"},
		"a footer alone":                {good[6:], "too few"},
		"another magic":                 {put(len(good)-1, 'X'), `ends in "LANX"`},
		"negative position":             {put(6, 255, 255, 255, 255, 255, 255, 255, 255), "at byte -1"},
		"position beyond the end":       {put(6, 3), "at byte 3 of 22"},
		"huge length":                   {put(0, 255, 255, 255, 255), "4294967295 bytes where it has 2"},
		"short length":                  {put(0, 1), "1 bytes where it has 2"},
		"zeros":                         {make([]byte, 64), "ends in"},
		"no version":                    {manifestFile(nil, nil), "no version"},
		"version as text":               {manifestFile(nil, content(3, []byte("1"))), "field 3 is no number"},
		"flags as text":                 {manifestFile(nil, message(one, content(9, nil))), "field 9 is no number"},
		"fragment as number":            {manifestFile(nil, message(one, number(2, 1))), "field 2 is no text or message"},
		"malformed tag":                 {manifestFile(nil, []byte{0xff}), "malformed field at byte 0"},
		"malformed field":               {manifestFile(nil, message(one, []byte{0x12, 0x7f})), "malformed field 2 at byte 2"},
		"malformed fragment":            {fragment([]byte{0x12, 0x7f}), "in a fragment: malformed"},
		"rows as text":                  {fragment(content(4, nil)), "in a fragment: field 4"},
		"deletion file as number":       {fragment(number(3, 1)), "in a fragment: field 3"},
		"too many rows":                 {fragment(number(4, 1<<63)), "out of range"},
		"too many rows together":        {manifestFile(nil, message(one, content(2, number(4, 1<<62)), content(2, number(4, 1<<62)))), "out of range"},
		"too many bytes":                {fragment(number(4, 1), content(2, number(6, 1<<63))), "9223372036854775808 bytes is out of range"},
		"more deleted rows than rows":   {fragment(number(4, 1), deleted(2)), "2 deleted rows of 1"},
		"branch not UTF-8":              {manifestFile(nil, message(one, content(20, []byte{0xff}))), "UTF-8"},
		"impossible branch":             {manifestFile(nil, message(one, content(20, []byte("../x")))), "branch name"},
		"malformed timestamp":           {manifestFile(nil, message(one, content(7, []byte{8}))), "in the timestamp"},
		"timestamp as number":           {manifestFile(nil, message(one, number(7, 1))), "field 7"},
		"timestamp too late":            {manifestFile(nil, message(one, content(7, number(1, 253402300800)))), "out of range"},
		"timestamp too early":           {manifestFile(nil, message(one, content(7, number(1, 1<<63)))), "out of range"},
		"nanoseconds of a second":       {manifestFile(nil, message(one, content(7, number(2, 1e9)))), "out of range"},
		"negative nanoseconds":          {manifestFile(nil, message(one, content(7, number(2, 1<<63)))), "out of range"},
		"format as number":              {manifestFile(nil, message(one, number(15, 1))), "field 15"},
		"library not UTF-8":             {manifestFile(nil, message(one, content(13, content(1, []byte{0xff})))), "UTF-8"},
		"transaction outside the file":  {manifestFile(nil, message(one, number(23, 9))), "outside the 0 bytes"},
		"transaction without a length":  {manifestFile([]byte{0}, message(one, number(23, 0))), "outside the 1 bytes"},
		"transaction beyond the file":   {manifestFile([]byte{9, 0, 0, 0}, message(one, number(23, 0))), "section of 9 bytes"},
		"position of a section as text": {manifestFile(nil, message(one, content(23, nil))), "field 23"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := lance.ReadManifest(tc.data)
			wantCorrupt(t, err, tc.want)
		})
	}
}

func TestReadVersion(t *testing.T) {
	t.Parallel()
	one := number(3, 1)
	inline := func(transaction []byte, fields ...[]byte) []byte {
		return manifestFile(section(transaction), message(one, number(23, 0), message(fields...)))
	}
	for name, tc := range map[string]struct {
		data  []byte
		want  lance.VersionNumber
		known bool
	}{
		"from the file's name":            {manifestFile(nil, message(one, content(12, []byte("7-x.txn")))), 7, true},
		"from a detached version":         {manifestFile(nil, message(one, content(12, []byte("18446744073709551615-x.txn")))), -1, true},
		"from the copy in the file":       {inline(number(1, 8)), 8, true},
		"the name before the copy":        {inline(number(1, 8), content(12, []byte("7-x.txn"))), 7, true},
		"the copy where the name is odd":  {inline(number(1, 8), content(12, []byte("x.txn"))), 8, true},
		"from no version":                 {inline(nil), 0, true},
		"nothing":                         {manifestFile(nil, one), 0, false},
		"a copy that cannot be decoded":   {inline([]byte{0xff}), 0, false},
		"a copy of which the type is odd": {inline(content(1, nil)), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := lance.ReadManifest(tc.data)
			if err != nil {
				t.Fatal(err)
			}
			if m.ReadVersion != tc.want || m.ReadVersionKnown != tc.known {
				t.Errorf("ReadVersion = %d, %v, want %d, %v", m.ReadVersion, m.ReadVersionKnown, tc.want, tc.known)
			}
		})
	}
}

func TestReadManifestOfOtherWriters(t *testing.T) {
	t.Parallel()
	unknown := message(number(3, 9), content(99, []byte("x")), number(3, 4), content(20, []byte("main")), content(2, content(13, nil)))
	got, err := lance.ReadManifest(manifestFile(nil, unknown))
	if err != nil {
		t.Fatal(err)
	}
	want := lance.Manifest{Version: 4, MaxFragmentID: -1, Fragments: 1, RowVersions: true, RowsUnknown: true, Schema: got.Schema}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ReadManifest (-want +got):\n%s", diff)
	}
}

func TestFeatureFlagsString(t *testing.T) {
	t.Parallel()
	for flags, want := range map[lance.FeatureFlags]string{0: "none", 1: "0", lance.FlagTableConfig | lance.FlagDeletionFiles | 1<<63: "0, 3, 63"} {
		if got := flags.String(); got != want {
			t.Errorf("String of %#x = %q, want %q", uint64(flags), got, want)
		}
	}
}

// FuzzReadManifest holds that no bytes whatever make ReadManifest panic, and that what it accepts makes sense. It takes its input
// as a file, and as the message in a sound one.
func FuzzReadManifest(f *testing.F) {
	for _, pattern := range []string{"manifests/*", "attach/*.before"} {
		for _, data := range readAll(f, pattern) {
			f.Add(data)
			f.Add(manifestContent(data))
		}
	}
	f.Add(message(number(3, 1), number(23, 0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, file := range [][]byte{data, manifestFile(section(number(1, 8)), data)} {
			m, err := lance.ReadManifest(file)
			if err != nil {
				wantCorrupt(t, err, "manifest")
				continue
			}
			d, detailsErr := lance.ReadDetails(file)
			counted, err := countFragments(file)
			if err != nil || counted != m.Fragments {
				t.Errorf("VisitFragments visits %d fragments and returns error %v, ReadManifest counts %d", counted, err, m.Fragments)
			}
			if detailsErr != nil {
				wantCorrupt(t, detailsErr, "manifest")
			}
			indices := d.Indices(m.ReaderFlags)
			for _, x := range indices {
				if details := x.DetailsJSON(); details != "" && !json.Valid([]byte(details)) {
					t.Errorf("index %q, a %s by %s, has the details %s", x.Name, x.Type(), x.Distance(), details)
				}
			}
			covers, err := lance.Covers(file, d, indices)
			if err != nil || len(covers) != len(indices) {
				t.Errorf("Covers returns %d of %d indices and error %v", len(covers), len(indices), err)
			}
			if _, _, err := lance.ReadChange(file); err != nil {
				var corrupt *lance.CorruptError
				if !errors.As(err, &corrupt) {
					t.Errorf("ReadChange: %v", err)
				}
			}
			if m.Version == 0 || m.Rows() < 0 || m.Fragments < 0 || m.MaxFragmentID < -1 {
				t.Errorf("ReadManifest accepts %+v", m)
			}
			if _, err := m.Timestamp.MarshalText(); err != nil {
				t.Errorf("the timestamp has no text form: %v", err)
			}
		}
	})
}

func countFragments(file []byte) (int, error) {
	n := 0
	err := lance.VisitFragments(file, func(*lance.Fragment) error {
		n++
		return nil
	})
	return n, err
}

// manifestContent returns the message of a sound manifest file.
func manifestContent(file []byte) []byte {
	at := binary.LittleEndian.Uint64(file[len(file)-16:])
	return file[at+4 : len(file)-16]
}
