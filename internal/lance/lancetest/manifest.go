// Package lancetest writes the smallest manifest files that Lance readers take, for tests that need many different ones. Manifests
// that real writers made stand in internal/lance/testdata.
//
// What does not live here: anything that a server uses.
package lancetest

import (
	"cmp"
	"encoding/binary"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lancerest/lancerest/internal/lance"
)

// Spec says what manifest to write.
type Spec struct {
	Version lance.VersionNumber
	// Read is the version that the writer says it changed; its transaction file is named after it (C14).
	Read lance.VersionNumber
	// Mark stands in the manifest, so that two writers' manifests of one version differ in their bytes.
	Mark string
	// Flags are the features that a reader must know.
	Flags lance.FeatureFlags
	// Fragments are how many rows each has; each has one data file of a thousand bytes.
	Fragments []uint64
	// Column is the name of the one column, "id" where empty.
	Column string
	// Bases are places beside the table's own where files lie, as URIs.
	Bases []string
}

// written is the time that every manifest carries: noon of 2026-08-01, UTC.
const written = 1785585600

// Manifest returns a manifest file with one column: equal specs give equal bytes.
func Manifest(s Spec) []byte {
	column := text(number(text(number(nil, 6, 1), 2, cmp.Or(s.Column, "id")), 4, ^uint64(0)), 5, "int64")
	var m []byte
	m = message(m, 1, column)
	for i, rows := range s.Fragments {
		file := number(text(nil, 1, strconv.Itoa(i)+".lance"), 6, 1000)
		m = message(m, 2, number(message(number(nil, 1, uint64(i)), 2, file), 4, rows))
	}
	m = number(m, 3, uint64(s.Version))
	m = message(m, 7, number(nil, 1, written))
	if s.Flags != 0 {
		m = number(m, 9, uint64(s.Flags))
	}
	m = text(m, 12, strconv.FormatUint(uint64(s.Read), 10)+"-"+s.Mark+".txn")
	m = message(m, 13, text(text(nil, 1, "lance"), 2, "14.0.2"))
	m = message(m, 15, text(text(nil, 1, "lance"), 2, "2.1"))
	m = message(m, 16, text(text(nil, 1, "mark"), 2, s.Mark))
	for i, base := range s.Bases {
		m = message(m, 18, text(number(number(nil, 1, uint64(i+1)), 3, 1), 4, base))
	}
	return file(m)
}

// Mark returns the mark of a manifest file that Manifest wrote, "" for any other bytes.
func Mark(data []byte) string {
	if len(data) < 20 {
		return ""
	}
	for rest := data[4 : len(data)-16]; len(rest) > 0; {
		field, kind, n := protowire.ConsumeTag(rest)
		size := protowire.ConsumeFieldValue(field, kind, rest[max(n, 0):])
		if n < 0 || size < 0 {
			return ""
		}
		if field == 16 {
			return mapValue(rest[n : n+size])
		}
		rest = rest[n+size:]
	}
	return ""
}

// mapValue returns the value of a map's entry, which follows its length.
func mapValue(entry []byte) string {
	inner, _ := protowire.ConsumeBytes(entry)
	_, _, n := protowire.ConsumeField(inner)
	if n < 0 {
		return ""
	}
	_, _, tag := protowire.ConsumeTag(inner[n:])
	value, _ := protowire.ConsumeBytes(inner[n+max(tag, 0):])
	return string(value)
}

// file frames a manifest message: length, message, position of the length, format version 0.2, magic.
func file(m []byte) []byte {
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(m)))
	out = append(out, m...)
	out = binary.LittleEndian.AppendUint64(out, 0)
	out = binary.LittleEndian.AppendUint16(out, 0)
	out = binary.LittleEndian.AppendUint16(out, 2)
	return append(out, "LANC"...)
}

func number(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func text(b []byte, field protowire.Number, s string) []byte { return message(b, field, []byte(s)) }

func message(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}
