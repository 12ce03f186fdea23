package lance

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fragment is what a manifest says of one of a version's fragments, the horizontal slices of a table.
type Fragment struct {
	ID           uint64
	PhysicalRows int64 // deleted ones included; 0 where the file does not tell
	DeletedRows  int64
	DataFiles    int
	DataBytes    int64 // of the data files whose sizes the manifest has
	// DeletionFile says that there is one. A file whose number of rows is not told makes DeletedRows too low.
	DeletionFile bool
	// RowsUnknown says that the numbers of rows are not told, as by old writers.
	RowsUnknown bool
	rowVersions bool
}

// Rows returns the number of rows that a reader sees.
func (f Fragment) Rows() int64 { return f.PhysicalRows - f.DeletedRows }

// VisitFragments calls visit for every fragment of a manifest file, given whole, in the order of the file, and returns the first error. It
// keeps nothing, and the Fragment is the same one at every call. An error that is not visit's is a *CorruptError.
func VisitFragments(data []byte, visit func(*Fragment) error) error {
	message, _, err := manifestMessage(data)
	if err != nil {
		return err
	}
	var fragment Fragment
	for f, err := range protoFields(message) {
		if err != nil {
			return corrupt("manifest", "%v", err)
		}
		if f.number != manifestFragments {
			continue
		}
		if err := fragment.read(f); err != nil {
			return corrupt("manifest", "%v", err)
		}
		if err := visit(&fragment); err != nil {
			return err
		}
	}
	return nil
}

// addFragment counts one fragment.
func (m *Manifest) addFragment(field protoField) error {
	var f Fragment
	if err := f.read(field); err != nil {
		return err
	}
	m.Fragments++
	m.DataFiles += f.DataFiles
	if f.DeletionFile {
		m.DeletionFiles++
	}
	m.RowVersions = m.RowVersions || f.rowVersions
	m.RowsUnknown = m.RowsUnknown || f.RowsUnknown
	if err := add(&m.DataBytes, uint64(f.DataBytes), "bytes"); err != nil {
		return err
	}
	if err := add(&m.DeletedRows, uint64(f.DeletedRows), "rows"); err != nil {
		return err
	}
	return add(&m.PhysicalRows, uint64(f.PhysicalRows), "rows")
}

// read takes over the message of a fragment.
func (f *Fragment) read(field protoField) error {
	*f = Fragment{}
	message, err := field.content()
	if err != nil {
		return err
	}
	for part, err := range protoFields(message) {
		if err == nil {
			err = f.readPart(part)
		}
		if err != nil {
			return fmt.Errorf("in a fragment: %w", err)
		}
	}
	f.RowsUnknown = f.PhysicalRows == 0 || f.DeletionFile && f.DeletedRows == 0
	if f.DeletedRows > f.PhysicalRows {
		return fmt.Errorf("fragment %d counts %d deleted rows of %d", f.ID, f.DeletedRows, f.PhysicalRows)
	}
	return nil
}

func (f *Fragment) readPart(part protoField) (err error) {
	switch part.number {
	case fragmentID:
		f.ID, err = part.uint()
	case fragmentDataFile:
		f.DataFiles++
		err = addInside(&f.DataBytes, part, inside{number: dataFileBytes, unit: "bytes"})
	case fragmentPhysicalRows:
		f.PhysicalRows = 0
		err = addUint(&f.PhysicalRows, part, "rows")
	case fragmentDeletionFile:
		f.DeletionFile = true
		err = addInside(&f.DeletedRows, part, inside{number: deletionFileDeletedRows, unit: "rows"})
	case fragmentUpdatedVersions, fragmentCreatedVersions, fragmentUpdatedColumn, fragmentCreatedColumn:
		f.rowVersions = true
	}
	return err
}

// inside names a number in a message, and what it counts.
type inside struct {
	number protowire.Number
	unit   string
}

// addInside adds to sum the number that the message in a field holds.
func addInside(sum *int64, field protoField, which inside) error {
	message, err := field.content()
	if err != nil {
		return err
	}
	for f, err := range protoFields(message) {
		if err == nil && f.number == which.number {
			err = addUint(sum, f, which.unit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addUint adds the number in a field to sum.
func addUint(sum *int64, f protoField, unit string) error {
	n, err := f.uint()
	if err != nil {
		return err
	}
	return add(sum, n, unit)
}

func add(sum *int64, n uint64, unit string) error {
	if n > uint64(math.MaxInt64-*sum) {
		return fmt.Errorf("a count of %d %s is out of range", n, unit)
	}
	*sum += int64(n)
	return nil
}
