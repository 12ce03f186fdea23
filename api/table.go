package api

// ListTablesRequest asks for the tables directly in a namespace, or, sent to ListAllTables (which has no id), for all tables.
// IncludeDeclared (default true) also lists tables that have a name and a location but no data yet.
type ListTablesRequest struct {
	Target
	Page
	IncludeDeclared *bool `json:"-" query:"include_declared"`
}

// ListTablesResponse holds bare names from ListTables and joined ids from ListAllTables. Tables must not be nil.
type ListTablesResponse struct {
	Tables    []string          `json:"tables" required:"true"`
	PageToken *string           `json:"page_token,omitempty"`
	Context   map[string]string `json:"context,omitempty"`
}

// RegisterTableRequest gives a name to an existing Lance table. Mode is Create (the default) or Overwrite, in any case.
type RegisterTableRequest struct {
	Target
	Location   string            `json:"location" required:"true"`
	Mode       *string           `json:"mode,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
}

// RegisterTableResponse tells what was registered.
type RegisterTableResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Location      *string           `json:"location,omitempty"`
	Properties    map[string]string `json:"properties"`
	Context       map[string]string `json:"context,omitempty"`
}

// DescribeTableRequest names a table and how much to say of it. Tag excludes Version and Branch. WithTableURI,
// LoadDetailedMetadata and CheckDeclared are sent in the query and in the body (client contract, fact 8); the query wins.
// VendCredentials true asks for credentials in the storage options, false refuses them, and nil leaves it to the server.
type DescribeTableRequest struct {
	Target
	Version              *int64  `json:"version,omitempty"`
	Tag                  *string `json:"tag,omitempty"`
	Branch               *string `json:"branch,omitempty"`
	WithTableURI         *bool   `json:"with_table_uri,omitempty" query:"with_table_uri"`
	LoadDetailedMetadata *bool   `json:"load_detailed_metadata,omitempty" query:"load_detailed_metadata"`
	CheckDeclared        *bool   `json:"check_declared,omitempty" query:"check_declared"`
	VendCredentials      *bool   `json:"vend_credentials,omitempty"`
}

// DescribeTableResponse always has a Location, without which clients fail (client contract, fact 31), and Properties that are not
// nil. Table, Namespace, Version, Schema, Stats and Metadata need the detailed form, IsOnlyDeclared that or CheckDeclared, and
// TableURI needs WithTableURI. ManagedVersioning true makes clients commit through CreateTableVersion (fact 32).
type DescribeTableResponse struct {
	Table             *string           `json:"table,omitempty"`
	Namespace         []string          `json:"namespace,omitempty"`
	Version           *int64            `json:"version,omitempty"`
	Location          *string           `json:"location,omitempty"`
	TableURI          *string           `json:"table_uri,omitempty"`
	Schema            *JSONArrowSchema  `json:"schema,omitempty"`
	StorageOptions    map[string]string `json:"storage_options,omitempty"`
	Stats             *TableBasicStats  `json:"stats,omitempty"`
	Metadata          map[string]string `json:"metadata,omitempty"`
	Properties        map[string]string `json:"properties"`
	ManagedVersioning *bool             `json:"managed_versioning,omitempty"`
	IsOnlyDeclared    *bool             `json:"is_only_declared,omitempty"`
	Context           map[string]string `json:"context,omitempty"`
}

// TableBasicStats are the numbers that a manifest holds by itself.
type TableBasicStats struct {
	NumDeletedRows int64 `json:"num_deleted_rows" required:"true"`
	NumFragments   int64 `json:"num_fragments" required:"true"`
}

// TableExistsRequest names the table that is asked about, at its latest version or at the given one.
type TableExistsRequest struct {
	Target
	Version *int64 `json:"version,omitempty"`
}

// TableExistsResponse is never sent: yes is an empty 200, no is an error (client contract, fact 12).
type TableExistsResponse struct {
	Context map[string]string `json:"context,omitempty"`
}

// DropTableRequest names a table to remove together with its data. The operation has no body; older clients send one, which is
// ignored (client contract, fact 7).
type DropTableRequest struct {
	Target
}

// DropTableResponse tells what was dropped. TransactionID is present when the removal of the data goes on in the background.
type DropTableResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	ID            []string          `json:"id,omitempty"`
	Location      *string           `json:"location,omitempty"`
	Properties    map[string]string `json:"properties"`
	Context       map[string]string `json:"context,omitempty"`
}

// DeregisterTableRequest names a table whose name is to be removed and whose files stay.
type DeregisterTableRequest struct {
	Target
}

// DeregisterTableResponse tells what was deregistered, with the Location by which the table can be registered again.
type DeregisterTableResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	ID            []string          `json:"id,omitempty"`
	Location      *string           `json:"location,omitempty"`
	Properties    map[string]string `json:"properties"`
	Context       map[string]string `json:"context,omitempty"`
}

// DeclareTableRequest reserves a name and a location, by default one that the server picks, for a table that is yet to be written.
type DeclareTableRequest struct {
	Target
	Location        *string           `json:"location,omitempty"`
	VendCredentials *bool             `json:"vend_credentials,omitempty"`
	Properties      map[string]string `json:"properties,omitempty"`
}

// DeclareTableResponse always has a Location and ManagedVersioning, which writers rely on (client contract, facts 31 and 32), and
// Properties that are not nil.
type DeclareTableResponse struct {
	TransactionID     *string           `json:"transaction_id,omitempty"`
	Location          *string           `json:"location,omitempty"`
	StorageOptions    map[string]string `json:"storage_options,omitempty"`
	Properties        map[string]string `json:"properties"`
	ManagedVersioning *bool             `json:"managed_versioning,omitempty"`
	Context           map[string]string `json:"context,omitempty"`
}

// RenameTableRequest gives a table another name and, when NewNamespaceID or NewNamespace is present, another parent. The two are the
// spellings of the namespace clients and of LanceDB's remote SDK (client contract, fact 85). Both are pointers because the empty
// list, the root, is not the same as absent, the present parent.
type RenameTableRequest struct {
	Target
	NewTableName   string    `json:"new_table_name" required:"true"`
	NewNamespaceID *[]string `json:"new_namespace_id,omitempty"`
	NewNamespace   *[]string `json:"new_namespace,omitempty"`
}

// Destination returns the parent that the request asks for, and false when it asks for none, so that the table stays where it is.
// NewNamespaceID, the specification's spelling, wins over NewNamespace.
func (r *RenameTableRequest) Destination() (namespace []string, given bool) {
	switch {
	case r.NewNamespaceID != nil:
		return *r.NewNamespaceID, true
	case r.NewNamespace != nil:
		return *r.NewNamespace, true
	}
	return nil, false
}

// RenameTableResponse has nothing to say beyond success.
type RenameTableResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}

// CreateTableRequest makes a table from an Arrow stream, whose schema becomes the table's; a stream without rows makes an empty
// table. Everything else is in the query, Properties and StorageOptions each as one JSON object (client contract, fact 9), so URLs
// can hold secrets. Mode is Create (the default), ExistOk or Overwrite, in any case.
type CreateTableRequest struct {
	Target
	ArrowStream
	Mode           *string           `json:"-" query:"mode"`
	Properties     map[string]string `json:"-" query:"properties"`
	StorageOptions map[string]string `json:"-" query:"storage_options"`
}

// CreateTableResponse tells where the new table is. Properties must not be nil.
type CreateTableResponse struct {
	TransactionID  *string           `json:"transaction_id,omitempty"`
	Location       *string           `json:"location,omitempty"`
	Version        *int64            `json:"version,omitempty"`
	StorageOptions map[string]string `json:"storage_options,omitempty"`
	Properties     map[string]string `json:"properties"`
	Context        map[string]string `json:"context,omitempty"`
}

// GetTableStatsRequest names a table, and a branch other than main, to measure.
type GetTableStatsRequest struct {
	Target
	Branch *string `json:"branch,omitempty"`
}

// GetTableStatsResponse sums up a table's latest version.
type GetTableStatsResponse struct {
	TotalBytes    int64             `json:"total_bytes" required:"true"`
	NumRows       int64             `json:"num_rows" required:"true"`
	NumIndices    int64             `json:"num_indices" required:"true"`
	FragmentStats FragmentStats     `json:"fragment_stats" required:"true"`
	Context       map[string]string `json:"context,omitempty"`
}

// FragmentStats counts a table's fragments; small ones are those that compaction would merge.
type FragmentStats struct {
	NumFragments      int64           `json:"num_fragments" required:"true"`
	NumSmallFragments int64           `json:"num_small_fragments" required:"true"`
	Lengths           FragmentSummary `json:"lengths" required:"true"`
}

// FragmentSummary is the distribution of rows over fragments, all zero for a table without any.
type FragmentSummary struct {
	Min  int64 `json:"min" required:"true"`
	Max  int64 `json:"max" required:"true"`
	Mean int64 `json:"mean" required:"true"`
	P25  int64 `json:"p25" required:"true"`
	P50  int64 `json:"p50" required:"true"`
	P75  int64 `json:"p75" required:"true"`
	P99  int64 `json:"p99" required:"true"`
}
