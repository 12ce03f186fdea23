package lance

import "time"

// ObjectID identifies one incarnation of a namespace or a table inside a catalog. It is never reused: dropping a table and
// declaring its name again gives another ObjectID and another directory (C1).
type ObjectID int64

// RootID is the ObjectID of the root namespace, which always exists.
const RootID ObjectID = 0

// NamespaceID is the path of a namespace below the root: its names from the outermost on. The empty path is the root.
type NamespaceID []string

// Namespace is a named set of tables and of further namespaces.
type Namespace struct {
	ID     ObjectID
	Parent ObjectID
	Path   NamespaceID
	// Location is where new tables of the namespace go, in canonical form; "" is wherever the catalog puts them.
	Location   string
	Properties map[string]string
	CreatedAt  time.Time
}

// Name returns the namespace's own name, the last of its path, or "" for the root.
func (n Namespace) Name() string { return leaf(n.Path) }
