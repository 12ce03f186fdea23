package lance

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Details are what a manifest says beside the counts in Manifest and beside its fragments, which VisitFragments reads.
type Details struct {
	Fields []SchemaField
	// SchemaMetadata belongs to the schema, TableMetadata to the table, and Config are the table's settings, three different things.
	SchemaMetadata map[string]string
	TableMetadata  map[string]string
	Config         map[string]string
	Tag            string // a name that old writers gave to the version; those of today are files
	NextRowID      uint64 // of tables with stable row ids
	BasePaths      []BasePath
	// Segments are those of all indices; Indices puts them together.
	Segments []IndexSegment
}

// BasePath is a place beside the table's own directory where files of a version lie, as those that a shallow clone shares.
type BasePath struct {
	ID          uint32
	Name        string // "" for none
	DatasetRoot bool   // the path is that of a dataset, with data and deletion files in their usual directories below it
	Path        string // a URI
}

// Fields of the messages of a manifest that only Details need.
const (
	manifestTag       protowire.Number = 8
	manifestNextRowID protowire.Number = 14
	manifestConfig    protowire.Number = 16
	manifestBasePaths protowire.Number = 18

	basePathID          protowire.Number = 1
	basePathName        protowire.Number = 2
	basePathDatasetRoot protowire.Number = 3
	basePathPath        protowire.Number = 4
)

// ReadDetails reads all of a manifest file, given whole, that is neither a count nor a fragment. It allocates nothing by sizes that the file
// claims. The error is a *CorruptError that says what is wrong.
func ReadDetails(data []byte) (Details, error) {
	message, at, err := manifestMessage(data)
	if err != nil {
		return Details{}, err
	}
	var d Details
	for f, err := range protoFields(message) {
		if err == nil {
			err = d.read(f)
		}
		if err != nil {
			return Details{}, corrupt("manifest", "%v", err)
		}
	}
	section, _, err := manifestSection(data[:at], message, manifestIndexSection)
	if err == nil {
		d.Segments, err = readIndexSection(section)
	}
	if err != nil {
		return Details{}, corrupt("manifest", "%v", err)
	}
	return d, nil
}

func (d *Details) read(f protoField) (err error) {
	switch f.number {
	case manifestFields:
		var field SchemaField
		field, err = readSchemaField(f)
		d.Fields = append(d.Fields, field)
	case manifestMetadata:
		err = addEntry(&d.SchemaMetadata, f)
	case manifestTag:
		d.Tag, err = f.text()
	case manifestNextRowID:
		d.NextRowID, err = f.uint()
	case manifestConfig:
		err = addEntry(&d.Config, f)
	case manifestBasePaths:
		var base BasePath
		base, err = readBasePath(f)
		d.BasePaths = append(d.BasePaths, base)
	case manifestTableMetadata:
		err = addEntry(&d.TableMetadata, f)
	}
	return err
}

func readBasePath(field protoField) (BasePath, error) {
	message, err := field.content()
	if err != nil {
		return BasePath{}, err
	}
	var b BasePath
	for f, err := range protoFields(message) {
		var v uint64
		switch {
		case err != nil:
		case f.number == basePathID:
			v, err = f.uint()
			b.ID = uint32(v)
		case f.number == basePathName:
			b.Name, err = f.text()
		case f.number == basePathDatasetRoot:
			v, err = f.uint()
			b.DatasetRoot = v != 0
		case f.number == basePathPath:
			b.Path, err = f.text()
		}
		if err != nil {
			return b, fmt.Errorf("in a base path: %w", err)
		}
	}
	return b, nil
}
