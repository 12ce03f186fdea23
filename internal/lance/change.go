package lance

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Change is what a writer noted of the change that made a version: what the Lance library calls a transaction, of one table and one version. A
// Transaction is the catalog's, of any number of tables.
type Change struct {
	UUID        string
	ReadVersion VersionNumber // that the writer had read and changed
	Operation   string        // "Append", "CreateIndex" and so on; "Unknown" for one that is not known here
	Tag         string
	Properties  map[string]string // what the writer gave, its message among them
}

// transactionsDir is the directory of a chain that holds the files of its changes.
const transactionsDir = "_transactions"

// ChangeKey returns the key of the file of a change by its name, Manifest.TransactionFile. The error is an *InvalidError: the name is none
// of a file in that directory.
func ChangeKey(tableDir string, b Branch, name string) (string, error) {
	if name == "" || strings.ContainsAny(name, "/\\") || checkSegments(name) != "" {
		return "", invalid("transaction file", name, "is no name of a file")
	}
	return joinKey(ChainDir(tableDir, b), transactionsDir) + "/" + name, nil
}

// ReadChange reads the copy of the change that a manifest file holds, given whole. found is false where it holds none: a large one stands in a
// file of its own alone. The error is a *CorruptError.
func ReadChange(data []byte) (change Change, found bool, err error) {
	message, at, err := manifestMessage(data)
	if err != nil {
		return Change{}, false, err
	}
	section, found, err := transactionSection(data[:at], message)
	if err != nil {
		return Change{}, false, corrupt("manifest", "%v", err)
	}
	if !found || len(section) == 0 {
		return Change{}, false, nil
	}
	change, err = ParseChange(section)
	return change, err == nil, err
}

// ParseChange reads the file of a change, given whole. The error is a *CorruptError.
func ParseChange(data []byte) (Change, error) {
	c := Change{Operation: "Unknown"}
	for f, err := range protoFields(data) {
		if err == nil {
			err = c.read(f)
		}
		if err != nil {
			return Change{}, corrupt("transaction", "%v", err)
		}
	}
	return c, nil
}

func (c *Change) read(f protoField) (err error) {
	switch f.number {
	case transactionReadVersion:
		var v uint64
		v, err = f.uint()
		c.ReadVersion = VersionNumber(v)
	case transactionUUID:
		c.UUID, err = f.text()
	case transactionTag:
		c.Tag, err = f.text()
	case transactionProperties:
		err = addEntry(&c.Properties, f)
	default:
		if f.number >= operationAppend {
			c.Operation, err = operationName(f)
		}
	}
	return err
}

// Fields of the operation that creates and removes indices, and of operations that nothing else here tells apart.
const (
	operationConfig      protowire.Number = 110
	operationMemoryLog   protowire.Number = 112
	operationClone       protowire.Number = 113
	operationBases       protowire.Number = 114
	operationDataOverlay protowire.Number = 115
	newIndices           protowire.Number = 1
	removedIndices       protowire.Number = 2
)

// operationName returns the Lance library's name of an operation.
func operationName(f protoField) (string, error) {
	content, err := f.content()
	if err != nil {
		return "", err
	}
	switch f.number {
	case operationCreateIndex:
		return indexOperation(content)
	case operationAppend:
		return "Append", nil
	case operationDelete:
		return "Delete", nil
	case operationOverwrite:
		return "Overwrite", nil
	case operationRewrite:
		return "Rewrite", nil
	case operationMerge:
		return "Merge", nil
	case operationRestore:
		return "Restore", nil
	case operationReserve:
		return "ReserveFragments", nil
	case operationUpdate:
		return "Update", nil
	case operationProject:
		return "Project", nil
	case operationConfig:
		return "UpdateConfig", nil
	case operationReplaceData:
		return "DataReplacement", nil
	case operationMemoryLog:
		return "UpdateMemWalState", nil
	case operationClone:
		return "Clone", nil
	case operationBases:
		return "UpdateBases", nil
	case operationDataOverlay:
		return "DataOverlay", nil
	}
	return "Unknown", nil
}

// indexOperation tells whether indices were only removed.
func indexOperation(content []byte) (string, error) {
	created, removed := false, false
	for f, err := range protoFields(content) {
		if err != nil {
			return "", fmt.Errorf("in its operation: %w", err)
		}
		created = created || f.number == newIndices
		removed = removed || f.number == removedIndices
	}
	if removed && !created {
		return "DropIndex", nil
	}
	return "CreateIndex", nil
}
