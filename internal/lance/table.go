package lance

import "time"

// TableID is the path of a table below the root: the names of its namespaces, then its own. A valid one is never empty.
type TableID []string

// Namespace returns the path of the namespace that holds the table.
func (id TableID) Namespace() NamespaceID {
	if len(id) == 0 {
		return nil
	}
	return NamespaceID(id[:len(id)-1])
}

// Name returns the table's own name, or "" for the empty path.
func (id TableID) Name() string { return leaf(id) }

// TableState tells how far a table's life has come.
type TableState int16

// The states of a table. A dropped table keeps its claim on its location until the purge is through; a deregistered one
// gives it back at once.
const (
	TableLive         TableState = 1
	TableDropped      TableState = 2
	TableDeregistered TableState = 3
)

// Table is one incarnation of a table.
type Table struct {
	ID        ObjectID
	Namespace ObjectID
	Path      TableID
	State     TableState
	// Location is the canonical URI of the table's directory, without a trailing slash ("file:///data/tables/0abc_t.lance").
	Location   string
	Properties map[string]string
	CreatedAt  time.Time
}
