package api

import "encoding/json"

// CreateMaterializedViewRequest asks for a view of kind query, udtf or chunker. SourceQuery is stored as it came, OutputSchema is a
// base64 Arrow schema, and UDTFSpec is there for every kind but query. WithNoData (default true) false starts a refresh at once.
type CreateMaterializedViewRequest struct {
	Target
	Kind         string                     `json:"kind" required:"true"`
	SourceQuery  string                     `json:"source_query" required:"true"`
	OutputSchema string                     `json:"output_schema" required:"true"`
	UDTFSpec     *MaterializedViewUDTFEntry `json:"udtf_spec,omitempty"`
	WithNoData   *bool                      `json:"with_no_data,omitempty"`
	AutoRefresh  *bool                      `json:"auto_refresh,omitempty"`
}

// MaterializedViewUDTFEntry is the table function behind a view: its base64 code with the digest of it, and how to run it.
type MaterializedViewUDTFEntry struct {
	Kind                     string          `json:"kind" required:"true"`
	UDTF                     string          `json:"udtf" required:"true"`
	UDTFSha                  string          `json:"udtf_sha" required:"true"`
	UDTFName                 string          `json:"udtf_name" required:"true"`
	UDTFVersion              string          `json:"udtf_version" required:"true"`
	InputColumns             []string        `json:"input_columns,omitempty"`
	PartitionBy              *string         `json:"partition_by,omitempty"`
	PartitionByIndexedColumn *string         `json:"partition_by_indexed_column,omitempty"`
	NumCPUs                  *float64        `json:"num_cpus,omitempty"`
	NumGPUs                  *float64        `json:"num_gpus,omitempty"`
	Memory                   *int64          `json:"memory,omitempty"`
	ErrorHandling            json.RawMessage `json:"error_handling,omitempty"`
	Batch                    *bool           `json:"batch,omitempty"`
	Manifest                 *string         `json:"manifest,omitempty"`
	ManifestChecksum         *string         `json:"manifest_checksum,omitempty"`
}

// CreateMaterializedViewResponse is the version that made the view, and the refresh's job if one was started; it is answered with
// status 201.
type CreateMaterializedViewResponse struct {
	Version int64             `json:"version" required:"true"`
	JobID   *string           `json:"job_id,omitempty"`
	Context map[string]string `json:"context,omitempty"`
}

// RefreshMaterializedViewRequest asks to bring a view up to date. All of it tunes the job, and the body may be absent.
type RefreshMaterializedViewRequest struct {
	Target
	SrcVersion              *int64  `json:"src_version,omitempty"`
	MaxRowsPerFragment      *int64  `json:"max_rows_per_fragment,omitempty"`
	Concurrency             *int64  `json:"concurrency,omitempty"`
	IntraApplierConcurrency *int64  `json:"intra_applier_concurrency,omitempty"`
	SourceTaskSize          *int64  `json:"source_task_size,omitempty"`
	OutputLimit             *int64  `json:"output_limit,omitempty"`
	Cluster                 *string `json:"cluster,omitempty"`
	Manifest                *string `json:"manifest,omitempty"`

	// The rest is LanceDB's: its name of SrcVersion, and whether the view is to be made anew from the whole source.
	SourceVersion *int64 `json:"source_version,omitempty"`
	Full          *bool  `json:"full,omitempty"`
}

// RefreshMaterializedViewResponse names the job; it is answered with status 202.
type RefreshMaterializedViewResponse struct {
	JobID   string            `json:"job_id" required:"true"`
	Context map[string]string `json:"context,omitempty"`
}
