package api

// CreateTableVersionEntry is one version of a BatchCreateTableVersions. Its id is a list and always given: the route has none.
type CreateTableVersionEntry struct {
	ID []string `json:"id" required:"true"`
	StagedVersion
}

// BatchCreateTableVersionsRequest asks to publish the versions of many tables as one, all or none (C5, C7).
type BatchCreateTableVersionsRequest struct {
	Caller
	Entries []CreateTableVersionEntry `json:"entries" required:"true"`
}

// BatchCreateTableVersionsResponse holds the published versions in the order of the entries. Versions must not be nil.
type BatchCreateTableVersionsResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Versions      []TableVersion    `json:"versions" required:"true"`
	Context       map[string]string `json:"context,omitempty"`
}

// CommitTableOperation is one step of a BatchCommitTables: exactly one field is set, and its id is given although the plain
// operation takes it from the path. Identity and context of the inner request are ignored; the outer ones hold.
type CommitTableOperation struct {
	DeclareTable        *DeclareTableRequest             `json:"declare_table,omitempty"`
	CreateTableVersion  *CreateTableVersionRequest       `json:"create_table_version,omitempty"`
	DeleteTableVersions *BatchDeleteTableVersionsRequest `json:"delete_table_versions,omitempty"`
	DeregisterTable     *DeregisterTableRequest          `json:"deregister_table,omitempty"`
}

// BatchCommitTablesRequest asks for several operations as one, all or none, each seeing the effect of those before it.
type BatchCommitTablesRequest struct {
	Caller
	Operations []CommitTableOperation `json:"operations" required:"true"`
}

// CommitTableResult is the answer to one step: the field of the same name as the step's is set.
type CommitTableResult struct {
	DeclareTable        *DeclareTableResponse             `json:"declare_table,omitempty"`
	CreateTableVersion  *CreateTableVersionResponse       `json:"create_table_version,omitempty"`
	DeleteTableVersions *BatchDeleteTableVersionsResponse `json:"delete_table_versions,omitempty"`
	DeregisterTable     *DeregisterTableResponse          `json:"deregister_table,omitempty"`
}

// BatchCommitTablesResponse holds one result a step, in order. Results must not be nil.
type BatchCommitTablesResponse struct {
	TransactionID *string             `json:"transaction_id,omitempty"`
	Results       []CommitTableResult `json:"results" required:"true"`
	Context       map[string]string   `json:"context,omitempty"`
}
