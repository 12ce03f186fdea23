package api

import "encoding/json"

// AlterTableAddColumnsRequest adds columns to a table.
type AlterTableAddColumnsRequest struct {
	Target
	NewColumns []AddColumnsEntry `json:"new_columns" required:"true"`
	Branch     *string           `json:"branch,omitempty"`
	// ArrowSchema is an Arrow IPC stream that is the whole body instead, as LanceDB's remote SDK sends it: columns of these names and
	// types are added, with nulls in all rows.
	ArrowSchema []byte `json:"-"`
}

// AddColumnsEntry is one new column with exactly one source of values: Expression is SQL that is evaluated once, Computed is SQL that a
// backfill evaluates, VirtualColumn is a function that runs elsewhere.
type AddColumnsEntry struct {
	Name          string                 `json:"name" required:"true"`
	Expression    *string                `json:"expression,omitempty"`
	Computed      *string                `json:"computed,omitempty"`
	VirtualColumn *AddVirtualColumnEntry `json:"virtual_column,omitempty"`
}

// AddVirtualColumnEntry describes a function whose results are columns: its container image and its base64 code.
type AddVirtualColumnEntry struct {
	InputColumns     []string                      `json:"input_columns" required:"true"`
	Outputs          []AddVirtualColumnOutputEntry `json:"outputs" required:"true"`
	Image            string                        `json:"image" required:"true"`
	UDF              string                        `json:"udf" required:"true"`
	UDFName          string                        `json:"udf_name" required:"true"`
	UDFVersion       string                        `json:"udf_version" required:"true"`
	UDFBackend       *string                       `json:"udf_backend,omitempty"`
	AutoBackfill     *bool                         `json:"auto_backfill,omitempty"`
	Manifest         *string                       `json:"manifest,omitempty"`
	ManifestChecksum *string                       `json:"manifest_checksum,omitempty"`
	FieldMetadata    map[string]string             `json:"field_metadata,omitempty"`
}

// AddVirtualColumnOutputEntry binds one member of the function's result to a column. DataType is passed on as it came.
type AddVirtualColumnOutputEntry struct {
	Column      string            `json:"column" required:"true"`
	StructField string            `json:"struct_field" required:"true"`
	DataType    json.RawMessage   `json:"data_type" required:"true"`
	Nullable    bool              `json:"nullable" required:"true"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// AlterTableAddColumnsResponse is the version in which the columns are there.
type AlterTableAddColumnsResponse struct {
	Version int64             `json:"version" required:"true"`
	Context map[string]string `json:"context,omitempty"`
}

// AlterTableAlterColumnsRequest changes columns of a table.
type AlterTableAlterColumnsRequest struct {
	Target
	Alterations []AlterColumnsEntry `json:"alterations" required:"true"`
	Branch      *string             `json:"branch,omitempty"`
}

// AlterColumnsEntry is what changes of one column. DataType is raw because it is an object in the specification and a type's name
// with the reference server; both are taken.
type AlterColumnsEntry struct {
	Path          string                   `json:"path" required:"true"`
	DataType      json.RawMessage          `json:"data_type,omitempty"`
	Rename        *string                  `json:"rename,omitempty"`
	Nullable      *bool                    `json:"nullable,omitempty"`
	VirtualColumn *AlterVirtualColumnEntry `json:"virtual_column,omitempty"`
}

// AlterVirtualColumnEntry is what changes of the function behind a column.
type AlterVirtualColumnEntry struct {
	InputColumns     []string          `json:"input_columns,omitempty"`
	Image            *string           `json:"image,omitempty"`
	UDF              *string           `json:"udf,omitempty"`
	UDFName          *string           `json:"udf_name,omitempty"`
	UDFVersion       *string           `json:"udf_version,omitempty"`
	UDFBackend       *string           `json:"udf_backend,omitempty"`
	AutoBackfill     *bool             `json:"auto_backfill,omitempty"`
	Manifest         *string           `json:"manifest,omitempty"`
	ManifestChecksum *string           `json:"manifest_checksum,omitempty"`
	FieldMetadata    map[string]string `json:"field_metadata,omitempty"`
}

// AlterTableAlterColumnsResponse is the version in which the columns are changed.
type AlterTableAlterColumnsResponse struct {
	Version int64             `json:"version" required:"true"`
	Context map[string]string `json:"context,omitempty"`
}

// AlterTableDropColumnsRequest removes columns, named by field paths.
type AlterTableDropColumnsRequest struct {
	Target
	Columns []string `json:"columns" required:"true"`
	Branch  *string  `json:"branch,omitempty"`
}

// AlterTableDropColumnsResponse is the version in which the columns are gone.
type AlterTableDropColumnsResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Version       int64             `json:"version" required:"true"`
	Context       map[string]string `json:"context,omitempty"`
}

// AlterTableBackfillColumnsRequest computes the values of a computed or virtual column, for rows that match Where or for all. The
// rest tunes the job.
type AlterTableBackfillColumnsRequest struct {
	Target
	Column                              string   `json:"column" required:"true"`
	Where                               *string  `json:"where,omitempty"`
	Branch                              *string  `json:"branch,omitempty"`
	Concurrency                         *int64   `json:"concurrency,omitempty"`
	IntraApplierConcurrency             *int64   `json:"intra_applier_concurrency,omitempty"`
	MinCheckpointSize                   *int64   `json:"min_checkpoint_size,omitempty"`
	MaxCheckpointSize                   *int64   `json:"max_checkpoint_size,omitempty"`
	BatchCheckpointFlushIntervalSeconds *float64 `json:"batch_checkpoint_flush_interval_seconds,omitempty"`
	ReadVersion                         *int64   `json:"read_version,omitempty"`
	TaskSize                            *int64   `json:"task_size,omitempty"`
	NumFrags                            *int64   `json:"num_frags,omitempty"`
	CheckpointSize                      *int64   `json:"checkpoint_size,omitempty"`
	CommitGranularity                   *int64   `json:"commit_granularity,omitempty"`
	Cluster                             *string  `json:"cluster,omitempty"`
	Manifest                            *string  `json:"manifest,omitempty"`
}

// AlterTableBackfillColumnsResponse names the job; it is answered with status 202.
type AlterTableBackfillColumnsResponse struct {
	JobID   string            `json:"job_id" required:"true"`
	Context map[string]string `json:"context,omitempty"`
}
