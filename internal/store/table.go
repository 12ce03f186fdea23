package store

import "github.com/lancerest/lancerest/internal/lance"

// TablePage says which part of a list of tables to return. Names sort bytewise.
type TablePage struct {
	// After is the key after which to begin: the namespace's ObjectID (only for ListAllTables) and the table's name.
	AfterNamespace lance.ObjectID
	AfterName      string
	Limit          int
	// WithoutDeclared leaves out tables that have no version yet.
	WithoutDeclared bool
}

// TableReader looks at tables.
type TableReader interface {
	// Tables returns the live tables at the given paths, in order; where there is none, a zero Table stands in its place.
	Tables(ids []lance.TableID) ([]lance.Table, error)
	// TableByID returns the incarnation, whatever its state; Path is set only while it is live. ErrNotFound if the row is gone.
	TableByID(id lance.ObjectID) (lance.Table, error)
	// Claimed returns a location claimed by a live or dropped table that equals, contains or lies inside the given one, "" if there is none.
	Claimed(location string) (string, error)
	// ListTables returns one page of the live tables directly in a namespace, by name.
	ListTables(namespace lance.ObjectID, page TablePage) ([]lance.Table, error)
	// TableNames returns the names of the same tables as ListTables, for a page of names at the cost of the names alone.
	TableNames(namespace lance.ObjectID, page TablePage) ([]string, error)
	// ListAllTables returns one page of all live tables, ordered by namespace's ObjectID, then by name, with full Paths.
	ListAllTables(page TablePage) ([]lance.Table, error)
}

// TableWriter changes tables.
type TableWriter interface {
	// InsertTable adds a live table under t.Namespace, which is at t.Path.Namespace(), with t.ID from NewID, named t.Path.Name(). ErrExists if a live namespace
	// or table has the name there; ErrLocationTaken if the location overlaps a claimed one, or is or contains a namespace's; ErrNotFound if the namespace is gone.
	InsertTable(t lance.Table) error
	// RenameTable moves a live table to another name, another namespace or both; nothing else of it changes. ErrExists if
	// the name is taken there; ErrNotFound if the table is no longer live or the namespace is gone.
	RenameTable(id lance.ObjectID, namespace lance.ObjectID, name string) error
	// EndTable moves a live table to TableDropped or TableDeregistered and frees its name; the latter frees its location too.
	// ErrNotFound if it is no longer live.
	EndTable(id lance.ObjectID, state lance.TableState) error
	// ForgetTable removes up to limit rows of a table that is no longer live: its versions and aborted contents, then itself. It
	// reports whether everything is gone. ErrExists if the table is live: then nothing was removed.
	ForgetTable(id lance.ObjectID, limit int) (bool, error)
}
