package lance

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"slices"
)

// schemaDigest makes the digest of what describes a version beside its numbers. Writers put the entries of maps in any order, another one
// at every write, so they are sorted first.
type schemaDigest struct {
	hash    hash.Hash
	entries [][]byte // of the maps of the manifest itself
	field   [][]byte // of the map of one field
}

// add takes over one field of a manifest's message.
func (d *schemaDigest) add(f protoField) error {
	switch f.number {
	case manifestFields:
		return d.addField(f)
	case manifestMetadata, manifestTableMetadata:
		d.entries = append(d.entries, f.raw)
	}
	return nil
}

// addField takes over a field of the schema.
func (d *schemaDigest) addField(f protoField) error {
	message, err := f.content()
	if err != nil {
		return err
	}
	d.field = d.field[:0]
	d.begin()
	for part, err := range protoFields(message) {
		switch {
		case err != nil:
			return err
		case part.number == schemaFieldMetadata:
			d.field = append(d.field, part.raw)
		default:
			d.hash.Write(part.raw)
		}
	}
	d.write(d.field)
	return nil
}

// begin separates what follows from what was before: no field of a message begins with a zero.
func (d *schemaDigest) begin() {
	if d.hash == nil {
		d.hash = sha256.New()
	}
	d.hash.Write([]byte{0})
}

func (d *schemaDigest) write(entries [][]byte) {
	slices.SortFunc(entries, bytes.Compare)
	for _, e := range entries {
		d.hash.Write(e)
	}
}

func (d *schemaDigest) sum() Digest {
	d.begin()
	d.write(d.entries)
	return Digest(d.hash.Sum(nil))
}
