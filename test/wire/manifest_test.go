package wire_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of the Lance manifest message that this suite writes or looks at.
const (
	fieldSchema        = 1
	fieldVersion       = 3
	fieldTimestamp     = 7
	fieldReaderFlags   = 9
	fieldWriterFlags   = 10
	fieldTransaction   = 12
	fieldWriterVersion = 13
	fieldDataFormat    = 15
	fieldConfig        = 16
)

// manifestSpec says what manifest to write.
type manifestSpec struct {
	version                  int64
	read                     int64 // the version that the writer read, which its transaction file is named after
	readerFlags, writerFlags uint64
	mark                     string // makes the content unique; random when empty
}

// manifestBytes writes the smallest manifest that a Lance reader takes: one column, no fragments, a 16-byte footer. Two calls
// give different bytes, as two writers do, unless both state the same mark.
func manifestBytes(spec manifestSpec) []byte {
	if spec.mark == "" {
		spec.mark = token() + token()
	}
	var field []byte
	field = appendString(field, 2, "id")
	field = appendVarint(field, 4, math.MaxUint64) // parent −1: a top-level column
	field = appendString(field, 5, "int64")
	field = appendVarint(field, 6, 1)
	timestamp := appendVarint(nil, 1, uint64(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC).Unix()))
	writer := appendString(appendString(nil, 1, "lance"), 2, "14.0.2")
	format := appendString(appendString(nil, 1, "lance"), 2, "2.2")
	config := appendString(appendString(nil, 1, "mark"), 2, spec.mark)

	var m []byte
	m = appendBytes(m, fieldSchema, field)
	m = appendVarint(m, fieldVersion, uint64(spec.version))
	m = appendBytes(m, fieldTimestamp, timestamp)
	if spec.readerFlags != 0 {
		m = appendVarint(m, fieldReaderFlags, spec.readerFlags)
	}
	if spec.writerFlags != 0 {
		m = appendVarint(m, fieldWriterFlags, spec.writerFlags)
	}
	m = appendString(m, fieldTransaction, strconv.FormatInt(spec.read, 10)+"-"+spec.mark+".txn")
	m = appendBytes(m, fieldWriterVersion, writer)
	m = appendBytes(m, fieldDataFormat, format)
	m = appendBytes(m, fieldConfig, config)
	return frame(m)
}

// frame puts a manifest message into its file: length, message, position of the length, format version 0.2, magic.
func frame(message []byte) []byte {
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(message)))
	out = append(out, message...)
	out = binary.LittleEndian.AppendUint64(out, 0)
	out = binary.LittleEndian.AppendUint16(out, 0)
	out = binary.LittleEndian.AppendUint16(out, 2)
	return append(out, "LANC"...)
}

// readManifest takes a manifest file apart: the value of its version field, and everything else of the file in order, so that
// two files that differ in their version alone give equal rests. The length before the message is no part of the rest.
func readManifest(t *testing.T, file []byte) (version int64, rest []byte) {
	t.Helper()
	if len(file) < 20 || string(file[len(file)-4:]) != "LANC" {
		t.Fatalf("%d bytes that do not end in a manifest's magic", len(file))
	}
	pos := binary.LittleEndian.Uint64(file[len(file)-16:])
	if pos > uint64(len(file)-20) {
		t.Fatalf("manifest of %d bytes says that its message stands at %d", len(file), pos)
	}
	length := uint64(binary.LittleEndian.Uint32(file[pos:]))
	message := file[pos+4 : len(file)-16]
	if length != uint64(len(message)) {
		t.Fatalf("manifest message of %d bytes in a room of %d", length, len(message))
	}
	rest = append(rest, file[:pos]...)
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		size := protowire.ConsumeFieldValue(number, kind, message[max(n, 0):])
		if n < 0 || size < 0 {
			t.Fatalf("manifest message breaks off: %v", protowire.ParseError(min(n, size)))
		}
		if number == fieldVersion {
			v, _ := protowire.ConsumeVarint(message[n:])
			version = int64(v)
		} else {
			rest = append(rest, message[:n+size]...)
		}
		message = message[n+size:]
	}
	return version, append(rest, file[len(file)-16:]...)
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return appendBytes(b, field, []byte(s))
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

// finalName is the name of a version's manifest in the naming scheme V2, or of a detached version (client contract, fact 43).
func finalName(version int64) string {
	if version < 0 {
		return "d" + strconv.FormatUint(uint64(version), 10) + ".manifest"
	}
	digits := strconv.FormatUint(math.MaxUint64-uint64(version), 10)
	return "00000000000000000000"[len(digits):] + digits + ".manifest"
}

// finalNameV1 is the same in the naming scheme V1.
func finalNameV1(version int64) string { return strconv.FormatInt(version, 10) + ".manifest" }

// realManifest returns a manifest that pylance wrote (testdata/manifests).
func realManifest(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "manifests", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// writeFile writes an object of a table as a client does, making its directory.
func writeFile(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// sameFile fails the test unless the file holds exactly these bytes.
func sameFile(t *testing.T, name string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s holds %d bytes that differ from the %d expected", name, len(got), len(want))
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// TestOwnManifestsReadLikeRealOnes holds the small writer of this suite to the layout that pylance writes.
func TestOwnManifestsReadLikeRealOnes(t *testing.T) {
	t.Parallel()
	for want := int64(1); want <= 3; want++ {
		if got, _ := readManifest(t, realManifest(t, "v"+strconv.FormatInt(want, 10)+".manifest")); got != want {
			t.Errorf("real manifest of version %d reads as %d", want, got)
		}
		if got, _ := readManifest(t, manifestBytes(manifestSpec{version: want})); got != want {
			t.Errorf("own manifest of version %d reads as %d", want, got)
		}
	}
	if got, want := finalName(1), "18446744073709551614.manifest"; got != want {
		t.Errorf("finalName(1) = %s, want %s", got, want)
	}
}
