package lance

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// SchemaField is one node of a table's schema as the manifest has it: a list of all columns and of what is inside them, parents before
// their children.
type SchemaField struct {
	ID       int32
	Parent   int32 // -1 for a column of the table itself
	Name     string
	Nullable bool
	// LogicalType is Lance's own name of the type, "fixed_size_list:float:768"; package schema reads it.
	LogicalType string
	// Encoding is how files of the format 0.1 hold the field. Newer ones choose by themselves, whatever it says.
	Encoding int32
	// Extension is the Arrow extension type in a field of its own, as old writers put it; new ones put it into Metadata.
	Extension string
	Metadata  map[string]string
	// Dictionary says where files of the format 0.1 have the values of a dictionary, nil in all newer ones.
	Dictionary *SchemaDictionary
	// PrimaryKey says that the field is part of the key that the table is said to have, and nobody enforces. Keys stand in the order
	// of KeyPosition, which counts from 1, or of the fields' ids where that is 0.
	PrimaryKey  bool
	KeyPosition uint32
}

// SchemaDictionary is a place in the manifest file.
type SchemaDictionary struct {
	Offset int64
	Length int64
}

// Fields of a field of the schema.
const (
	schemaFieldName        protowire.Number = 2
	schemaFieldID          protowire.Number = 3
	schemaFieldParent      protowire.Number = 4
	schemaFieldType        protowire.Number = 5
	schemaFieldNullable    protowire.Number = 6
	schemaFieldEncoding    protowire.Number = 7
	schemaFieldDictionary  protowire.Number = 8
	schemaFieldExtension   protowire.Number = 9
	schemaFieldMetadata    protowire.Number = 10
	schemaFieldKey         protowire.Number = 12
	schemaFieldKeyPosition protowire.Number = 13
	dictionaryOffset       protowire.Number = 1
	dictionaryLength       protowire.Number = 2
)

// readSchemaField reads one field of the schema.
func readSchemaField(f protoField) (SchemaField, error) {
	message, err := f.content()
	if err != nil {
		return SchemaField{}, err
	}
	var field SchemaField
	for part, err := range protoFields(message) {
		if err == nil {
			err = field.read(part)
		}
		if err != nil {
			return field, fmt.Errorf("in field %s of the schema: %w", quote(field.Name), err)
		}
	}
	return field, nil
}

func (s *SchemaField) read(part protoField) (err error) {
	var v uint64
	switch part.number {
	case schemaFieldName:
		s.Name, err = part.text()
	case schemaFieldID:
		v, err = part.uint()
		s.ID = int32(v)
	case schemaFieldParent:
		v, err = part.uint()
		s.Parent = int32(v)
	case schemaFieldType:
		s.LogicalType, err = part.text()
	case schemaFieldNullable:
		v, err = part.uint()
		s.Nullable = v != 0
	case schemaFieldEncoding:
		v, err = part.uint()
		s.Encoding = int32(v)
	case schemaFieldDictionary:
		s.Dictionary, err = readSchemaDictionary(part)
	case schemaFieldExtension:
		s.Extension, err = part.text()
	case schemaFieldMetadata:
		err = addEntry(&s.Metadata, part)
	case schemaFieldKey:
		v, err = part.uint()
		s.PrimaryKey = s.PrimaryKey || v != 0
	case schemaFieldKeyPosition:
		v, err = part.uint()
		s.KeyPosition = uint32(v)
		s.PrimaryKey = s.PrimaryKey || v != 0
	}
	return err
}

func readSchemaDictionary(f protoField) (*SchemaDictionary, error) {
	message, err := f.content()
	if err != nil {
		return nil, err
	}
	d := &SchemaDictionary{}
	for part, err := range protoFields(message) {
		var v uint64
		switch {
		case err != nil:
		case part.number == dictionaryOffset:
			v, err = part.uint()
			d.Offset = int64(v)
		case part.number == dictionaryLength:
			v, err = part.uint()
			d.Length = int64(v)
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// addEntry adds one entry of a protobuf map to a map. Lance has values of bytes where readers see text: what is not UTF-8 becomes U+FFFD.
func addEntry(to *map[string]string, f protoField) error {
	message, err := f.content()
	if err != nil {
		return err
	}
	var key, value string
	for part, err := range protoFields(message) {
		switch {
		case err != nil:
		case part.number == 1:
			key, err = part.text()
		case part.number == 2:
			var content []byte
			content, err = part.content()
			value = strings.ToValidUTF8(string(content), "\uFFFD")
		}
		if err != nil {
			return fmt.Errorf("in an entry of field %d: %w", f.number, err)
		}
	}
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[key] = value
	return nil
}
