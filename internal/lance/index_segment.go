package lance

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// IndexSegment is one part of an index: an index made once has one segment, and gets another where rows are added to it. The segments of
// an index have its name and its type.
type IndexSegment struct {
	Name string
	UUID string // also the name of its directory
	// Fields are the schema fields of the index, and the last of them those that it only carries along, CoveringFields.
	Fields         []int32
	CoveringFields []int32
	DatasetVersion VersionNumber // that it was built from
	// Fragments are those whose rows it holds, or nil where the writer did not say, as before 2023.
	Fragments *FragmentSet
	// TypeURL and Details are the protobuf message that describes the index, "" where the writer left none.
	TypeURL string
	Details []byte
	Version *int32    // of the files' form, nil where not told
	Created time.Time // UTC, zero where not told
	Files   int       // whose sizes are told, 0 for none
	Bytes   int64     // of those files
}

// Fields of the index section.
const (
	indexUUID           protowire.Number = 1
	indexFields         protowire.Number = 2
	indexFragmentBitmap protowire.Number = 5
	indexDetails        protowire.Number = 6
	indexVersion        protowire.Number = 7
	indexCreated        protowire.Number = 8
	indexFiles          protowire.Number = 10
	indexCoveringFields protowire.Number = 11
	uuidBytes           protowire.Number = 1
	anyTypeURL          protowire.Number = 1
	anyValue            protowire.Number = 2
	indexFileBytes      protowire.Number = 2
)

// readIndexSection reads the section of a manifest file that lists the segments of its indices.
func readIndexSection(section []byte) ([]IndexSegment, error) {
	var segments []IndexSegment
	for f, err := range protoFields(section) {
		if err == nil && f.number == indexSectionIndices {
			var s IndexSegment
			s, err = readIndexSegment(f)
			segments = append(segments, s)
		}
		if err != nil {
			return nil, fmt.Errorf("in the index section: %w", err)
		}
	}
	return segments, nil
}

func readIndexSegment(field protoField) (IndexSegment, error) {
	var s IndexSegment
	message, err := field.content()
	if err != nil {
		return s, err
	}
	for f, err := range protoFields(message) {
		if err == nil {
			err = s.read(f)
		}
		if err != nil {
			return s, fmt.Errorf("in index %s: %w", quote(s.Name), err)
		}
	}
	return s, nil
}

func (s *IndexSegment) read(f protoField) (err error) {
	var v uint64
	switch f.number {
	case indexUUID:
		s.UUID, err = readUUID(f)
	case indexFields:
		err = appendInt32s(&s.Fields, f)
	case indexName:
		s.Name, err = f.text()
	case indexDatasetVersion:
		v, err = f.uint()
		s.DatasetVersion = VersionNumber(v)
	case indexFragmentBitmap:
		err = s.readBitmap(f)
	case indexDetails:
		err = s.readDetails(f)
	case indexVersion:
		v, err = f.uint()
		version := int32(v)
		s.Version = &version
	case indexCreated:
		v, err = f.uint()
		if v > maxMillis {
			return fmt.Errorf("the time of creation, %d ms, is out of range", v)
		}
		s.Created = time.UnixMilli(int64(v)).UTC()
	case indexFiles:
		s.Files++
		err = addInside(&s.Bytes, f, inside{number: indexFileBytes, unit: "bytes"})
	case indexCoveringFields:
		err = appendInt32s(&s.CoveringFields, f)
	}
	return err
}

// maxMillis is the end of the year 9999, after which times have no text form.
const maxMillis = 253402300799999

func (s *IndexSegment) readBitmap(f protoField) error {
	content, err := f.content()
	if err != nil || len(content) == 0 {
		return err
	}
	s.Fragments, err = ParseFragmentSet(content)
	return err
}

func (s *IndexSegment) readDetails(field protoField) error {
	message, err := field.content()
	if err != nil {
		return err
	}
	for f, err := range protoFields(message) {
		switch {
		case err != nil:
		case f.number == anyTypeURL:
			s.TypeURL, err = f.text()
		case f.number == anyValue:
			s.Details, err = f.content()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readUUID returns the text of a UUID that stands as sixteen bytes in a message of its own.
func readUUID(field protoField) (string, error) {
	message, err := field.content()
	if err != nil {
		return "", err
	}
	for f, err := range protoFields(message) {
		var id []byte
		if err == nil && f.number == uuidBytes {
			id, err = f.content()
		}
		if err != nil {
			return "", err
		}
		if len(id) == 16 {
			return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]), nil
		}
	}
	return "", fmt.Errorf("field %d holds no UUID", field.number)
}

// appendInt32s appends the numbers of a repeated field, which may stand one by one or packed in one.
func appendInt32s(to *[]int32, f protoField) error {
	if f.typ == protowire.VarintType {
		v, err := f.uint()
		*to = append(*to, int32(v))
		return err
	}
	packed, err := f.content()
	if err != nil {
		return err
	}
	for len(packed) > 0 {
		v, n := protowire.ConsumeVarint(packed)
		if n < 0 {
			return fmt.Errorf("field %d holds a malformed number", f.number)
		}
		*to = append(*to, int32(v))
		packed = packed[n:]
	}
	return nil
}
