package lance_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lancerest/lancerest/internal/lance"
	"google.golang.org/protobuf/encoding/protowire"
)

// attachedBefore returns the detached versions that the files "<name>.<n>.before" of testdata/attach, attached as version n,
// leave behind for the file of version v.
func attachedBefore(t testing.TB, name string, v lance.VersionNumber) map[lance.VersionNumber]lance.VersionNumber {
	t.Helper()
	attached := map[lance.VersionNumber]lance.VersionNumber{}
	for file, data := range readAll(t, "attach/"+name+".*.before") {
		var n lance.VersionNumber
		if _, err := fmt.Sscanf(strings.TrimPrefix(file, name), ".%d.before", &n); err != nil {
			t.Fatal(err)
		}
		m, err := lance.ReadManifest(data)
		if err != nil {
			t.Fatal(err)
		}
		if n < v {
			attached[m.Version] = n
		}
	}
	return attached
}

// TestAttach attaches detached manifests of pylance 14.0.2, and compares with what pylance has read, appended to, deleted
// from, indexed and compacted. A name that ends in _sr is of a table with stable row ids; chain's version 3 was made upon
// the detached version that became 2, and 4 upon that one.
func TestAttach(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		v    lance.VersionNumber
	}{
		{"append", 2}, {"overwrite", 2}, {"delete", 2}, {"merge", 2}, {"append_sr", 2}, {"overwrite_sr", 2}, {"delete_sr", 2}, {"merge_sr", 2},
		{"chain", 2}, {"chain", 3}, {"chain", 4}, {"chain_sr", 2}, {"chain_sr", 3}, {"chain_sr", 4}, {"indexed", 3}, {"branch", 2},
	} {
		file := fmt.Sprintf("attach/%s.%d", tc.name, tc.v)
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			before := readFile(t, file+".before")
			kept := bytes.Clone(before)
			got, err := lance.AttachAfter(before, tc.v, attachedBefore(t, tc.name, tc.v))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(readFile(t, file+".after"), got); diff != "" {
				t.Errorf("AttachAfter (-want +got):\n%s", diff)
			}
			if !bytes.Equal(before, kept) {
				t.Error("AttachAfter changed its argument")
			}
			wantOnlyVersionChanged(t, before, got, tc.v)
		})
	}
}

// wantOnlyVersionChanged fails the test unless two manifests say the same but for the version.
func wantOnlyVersionChanged(t *testing.T, before, after []byte, v lance.VersionNumber) {
	t.Helper()
	want, err := lance.ReadManifest(before)
	if err != nil {
		t.Fatal(err)
	}
	got, err := lance.ReadManifest(after)
	if err != nil {
		t.Fatal(err)
	}
	want.Version = v
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
}

// TestAttachKeepsEveryByte attaches a manifest that has unknown fields, fields twice, and encodings that no writer would choose.
func TestAttachKeepsEveryByte(t *testing.T) {
	t.Parallel()
	odd := message([]byte{0xc8, 0x86, 0x80, 0x00, 0x81, 0x00}, content(99, []byte("unknown")), protowire.AppendFixed64(protowire.AppendTag(nil, 98, protowire.Fixed64Type), 7))
	build := func(version lance.VersionNumber, stamp uint64) []byte {
		run := message(content(1, []byte("span")), number(2, stamp), odd)
		fragment := message(odd, content(7, message(odd, content(1, run))), number(4, 3), content(9, content(1, number(2, 1))))
		return manifestFile([]byte("sections"), message(
			odd, number(3, uint64(version)), content(2, fragment), []byte{0x92, 0x00, 0x82, 0x00, 0x20, 0x03}, content(12, []byte("6-x.txn")), odd, number(3, uint64(version))))
	}
	got, err := lance.AttachVersion(build(-5, 7), 7)
	if err != nil {
		t.Fatal(err)
	}
	if want := build(7, 7); !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestAttachRefuses(t *testing.T) {
	t.Parallel()
	// A detached manifest that was made from version 6.
	detached := message(number(3, 1<<63+5), content(12, []byte("6-x.txn")))
	made := func(fields ...[]byte) []byte { return manifestFile(nil, message(detached, message(fields...))) }
	stamped := func(v uint64) []byte { return made(content(2, content(9, content(1, number(2, v))))) }
	indexed := func(index []byte) []byte {
		return manifestFile(section(content(1, index)), message(detached, number(6, 0)))
	}
	unsupported := map[string]struct {
		data []byte
		want string
	}{
		"overlays by flag":                {made(number(9, 1<<6)), "bits 6 set"},
		"unknown writer flags":            {made(number(10, 1<<20|1<<9|1)), "bits 9, 20 set"},
		"fragment tree":                   {made(content(22, nil)), "in a tree"},
		"overlays":                        {made(content(2, content(11, nil))), "overlays"},
		"row versions in a data file":     {made(content(2, content(14, nil))), "data file"},
		"rows of a later version":         {stamped(8), "rows of version 8"},
		"rows upon an unknown version":    {stamped(1<<63 + 10), "not attached"},
		"index of a detached version":     {indexed(message(content(3, []byte("ix")), number(4, 1<<63))), `index "ix"`},
		"made upon an unattached one":     {manifestFile(nil, message(number(3, 1<<63), content(12, []byte("9223372036854775817-x.txn")))), "attach that one first, as version 6"},
		"index of a detached, by pylance": {nil, `its index "id_idx" was built from detached version`},
	}
	for name, tc := range unsupported {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, attached := lance.VersionNumber(7), map[lance.VersionNumber]lance.VersionNumber(nil)
			if tc.data == nil {
				tc.data = readFile(t, "attach/ixd.3.before")
				m, err := lance.ReadManifest(tc.data)
				if err != nil {
					t.Fatal(err)
				}
				v, attached = 3, map[lance.VersionNumber]lance.VersionNumber{m.ReadVersion: 2}
			}
			_, err := lance.AttachAfter(tc.data, v, attached)
			if !errors.Is(err, lance.ErrUnsupportedManifest) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want ErrUnsupportedManifest about %q", err, tc.want)
			}
		})
	}
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"a sequence that is no message":   {made(content(2, number(7, 1))), "field 7"},
		"a malformed sequence":            {made(content(2, content(7, []byte{0xff}))), "in field 2: in field 7: malformed"},
		"a stamp that is no number":       {made(content(2, content(7, content(1, content(2, nil))))), "field 2 is no number"},
		"an index that is no message":     {manifestFile(section(number(1, 1)), message(detached, number(6, 0))), "field 1"},
		"a malformed index":               {indexed([]byte{0xff}), "in the index section: malformed"},
		"an index version that is a text": {indexed(content(4, nil)), "in the index section: field 4"},
		"index section outside the file":  {made(number(6, 5)), "field 6 points to byte 5"},
		"no manifest":                     {[]byte("LANC"), "4 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := lance.AttachVersion(tc.data, 7)
			wantCorrupt(t, err, tc.want)
		})
	}
}

func TestAttachOnlyAfterTheVersionRead(t *testing.T) {
	t.Parallel()
	detached := readFile(t, "attach/append.2.before")
	for _, v := range []lance.VersionNumber{1, 3, 1 << 40} {
		if _, err := lance.AttachVersion(detached, v); !errors.Is(err, lance.ErrStaleManifest) {
			t.Errorf("AttachVersion as %d: %v, want ErrStaleManifest", v, err)
		}
	}
	second := readFile(t, "attach/chain.3.before")
	attached := attachedBefore(t, "chain", 3)
	if _, err := lance.AttachAfter(second, 4, attached); !errors.Is(err, lance.ErrStaleManifest) {
		t.Errorf("AttachAfter as 4, after a detached version attached as 2: %v, want ErrStaleManifest", err)
	}
	for _, v := range []lance.VersionNumber{0, -1} {
		_, err := lance.AttachVersion(detached, v)
		wantInvalid(t, err, "at least 1")
	}
	_, err := lance.AttachVersion(readFile(t, "manifests/index.manifest"), 4)
	wantInvalid(t, err, "version 3: is not a detached version")
}

// FuzzAttach holds that whatever can be attached is, afterwards, the same manifest under the new version. Its input is the
// message of a manifest.
func FuzzAttach(f *testing.F) {
	attached := map[lance.VersionNumber]lance.VersionNumber{}
	for _, name := range []string{"append_sr", "merge", "chain", "chain_sr", "indexed"} {
		maps.Copy(attached, attachedBefore(f, name, 1<<40))
	}
	for _, data := range readAll(f, "attach/*.before") {
		for v := range int64(3) {
			f.Add(manifestContent(data), v+2)
		}
	}
	index := section(content(1, message(content(3, []byte("ix")), number(4, 1))))
	f.Fuzz(func(t *testing.T, content []byte, v int64) {
		data := manifestFile(index, content)
		got, err := lance.AttachAfter(data, lance.VersionNumber(v), attached)
		if err != nil {
			return
		}
		wantOnlyVersionChanged(t, data, got, lance.VersionNumber(v))
	})
}
