package api

import "time"

// CreateTableIndexRequest asks for an index on a column; CreateTableScalarIndex takes the same request and only scalar types.
// The first block after Branch is for vector indices, the last for full-text ones. The work may go on after the answer.
type CreateTableIndexRequest struct {
	Target
	Column    string  `json:"column" required:"true"`
	IndexType string  `json:"index_type" required:"true"`
	Name      *string `json:"name,omitempty"`
	Branch    *string `json:"branch,omitempty"`

	DistanceType        *string `json:"distance_type,omitempty"`
	NumPartitions       *int64  `json:"num_partitions,omitempty"`
	TargetPartitionSize *int64  `json:"target_partition_size,omitempty"`
	SampleRate          *int64  `json:"sample_rate,omitempty"`
	MaxIterations       *int64  `json:"max_iterations,omitempty"`
	NumSubVectors       *int64  `json:"num_sub_vectors,omitempty"`
	NumBits             *int64  `json:"num_bits,omitempty"`
	M                   *int64  `json:"m,omitempty"`
	EfConstruction      *int64  `json:"ef_construction,omitempty"`

	WithPosition    *bool   `json:"with_position,omitempty"`
	BaseTokenizer   *string `json:"base_tokenizer,omitempty"`
	Language        *string `json:"language,omitempty"`
	MaxTokenLength  *int64  `json:"max_token_length,omitempty"`
	LowerCase       *bool   `json:"lower_case,omitempty"`
	Stem            *bool   `json:"stem,omitempty"`
	RemoveStopWords *bool   `json:"remove_stop_words,omitempty"`
	ASCIIFolding    *bool   `json:"ascii_folding,omitempty"`

	// The rest is LanceDB's: its spelling of DistanceType, and what else its full-text indices can be told.
	MetricType       *string  `json:"metric_type,omitempty"`
	BlockSize        *int64   `json:"block_size,omitempty"`
	CustomStopWords  []string `json:"custom_stop_words,omitempty"`
	MinNgramLength   *int64   `json:"min_ngram_length,omitempty"`
	MaxNgramLength   *int64   `json:"max_ngram_length,omitempty"`
	PrefixOnly       *bool    `json:"prefix_only,omitempty"`
	LanceTokenizer   *string  `json:"lance_tokenizer,omitempty"`
	IndexOperators   *bool    `json:"index_operators,omitempty"`
	PreserveOriginal *bool    `json:"preserve_original,omitempty"`
	SplitIdentifiers *bool    `json:"split_identifiers,omitempty"`
	SplitOnNumerics  *bool    `json:"split_on_numerics,omitempty"`
}

// CreateTableIndexResponse has nothing to say beyond acceptance.
type CreateTableIndexResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}

// CreateTableScalarIndexResponse has nothing to say beyond acceptance.
type CreateTableScalarIndexResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}

// ListTableIndicesRequest asks for the indices of a version, by default the latest. Its page is asked for in the body, as in no other
// list.
type ListTableIndicesRequest struct {
	Target
	Version   *int64  `json:"version,omitempty"`
	Branch    *string `json:"branch,omitempty"`
	PageToken *string `json:"page_token,omitempty"`
	Limit     *int64  `json:"limit,omitempty"`
}

// ListTableIndicesResponse holds the indices. Indexes must not be nil.
type ListTableIndicesResponse struct {
	Indexes   []IndexContent    `json:"indexes" required:"true"`
	PageToken *string           `json:"page_token,omitempty"`
	Context   map[string]string `json:"context,omitempty"`
}

// IndexContent describes one index. Columns are canonical field paths and must not be nil. IndexDetails is JSON inside a string.
type IndexContent struct {
	IndexName        string     `json:"index_name" required:"true"`
	IndexUUID        string     `json:"index_uuid" required:"true"`
	Columns          []string   `json:"columns" required:"true"`
	Status           string     `json:"status" required:"true"`
	IndexType        *string    `json:"index_type,omitempty"`
	TypeURL          *string    `json:"type_url,omitempty"`
	NumIndexedRows   *int64     `json:"num_indexed_rows,omitempty"`
	NumUnindexedRows *int64     `json:"num_unindexed_rows,omitempty"`
	SizeBytes        *int64     `json:"size_bytes,omitempty"`
	NumSegments      *int64     `json:"num_segments,omitempty"`
	CreatedAt        *time.Time `json:"created_at,omitempty"`
	IndexVersion     *int64     `json:"index_version,omitempty"`
	IndexDetails     *string    `json:"index_details,omitempty"`
}

// DescribeTableIndexStatsRequest names an index in the path; a name in the body must be the same.
type DescribeTableIndexStatsRequest struct {
	Target
	IndexName string  `json:"index_name,omitempty" path:"index_name"`
	Version   *int64  `json:"version,omitempty"`
	Branch    *string `json:"branch,omitempty"`
}

// DescribeTableIndexStatsResponse sums up an index.
type DescribeTableIndexStatsResponse struct {
	DistanceType     *string           `json:"distance_type,omitempty"`
	IndexType        *string           `json:"index_type,omitempty"`
	NumIndexedRows   *int64            `json:"num_indexed_rows,omitempty"`
	NumUnindexedRows *int64            `json:"num_unindexed_rows,omitempty"`
	NumIndices       *int64            `json:"num_indices,omitempty"`
	Context          map[string]string `json:"context,omitempty"`
}

// DropTableIndexRequest names an index in the path and a branch in the query. The operation has no body.
type DropTableIndexRequest struct {
	Target
	IndexName string  `json:"-" path:"index_name"`
	Branch    *string `json:"-" query:"branch"`
}

// DropTableIndexResponse has nothing to say beyond success.
type DropTableIndexResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}
