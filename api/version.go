package api

// ManifestNamingScheme says how manifests are named: by the number (V1) or so that the newest sorts first (V2, the default).
type ManifestNamingScheme string

// The naming schemes (client contract, fact 43).
const (
	NamingV1 ManifestNamingScheme = "V1"
	NamingV2 ManifestNamingScheme = "V2"
)

// TableVersion is one version as answers show it. ManifestPath is relative to the root of the store, raw (client contract, fact 42).
// Metadata is what the creator gave; it must not be nil.
type TableVersion struct {
	Version         int64             `json:"version" required:"true"`
	ManifestPath    string            `json:"manifest_path" required:"true"`
	ManifestSize    *int64            `json:"manifest_size,omitempty"`
	ETag            *string           `json:"e_tag,omitempty"`
	TimestampMillis *int64            `json:"timestamp_millis,omitempty"`
	Metadata        map[string]string `json:"metadata"`
}

// StagedVersion is a version that a client has written under a temporary name and asks to have published as number Version of a
// chain (C2). Version is negative for a detached commit (client contract, fact 63). It is the shared part of CreateTableVersion and of
// the entries of BatchCreateTableVersions. Branch is main when absent.
type StagedVersion struct {
	Version      int64                 `json:"version" required:"true"`
	ManifestPath string                `json:"manifest_path" required:"true"`
	ManifestSize *int64                `json:"manifest_size,omitempty"`
	ETag         *string               `json:"e_tag,omitempty"`
	Metadata     map[string]string     `json:"metadata,omitempty"`
	NamingScheme *ManifestNamingScheme `json:"naming_scheme,omitempty"`
	Branch       *string               `json:"branch,omitempty"`
}

// ListTableVersionsRequest asks for the versions of a chain, newest first when Descending. The operation has no body; older
// clients send null (client contract, fact 7).
type ListTableVersionsRequest struct {
	Target
	Page
	Branch     *string `json:"-" query:"branch"`
	Descending *bool   `json:"-" query:"descending"`
}

// ListTableVersionsResponse holds the versions. Clients take the first of a descending list as the latest (client contract, fact
// 41), and Versions must not be nil: it is empty for a declared table (fact 34).
type ListTableVersionsResponse struct {
	Versions  []TableVersion    `json:"versions" required:"true"`
	PageToken *string           `json:"page_token,omitempty"`
	Context   map[string]string `json:"context,omitempty"`
}

// CreateTableVersionRequest asks to publish one staged version.
type CreateTableVersionRequest struct {
	Target
	StagedVersion
}

// CreateTableVersionResponse tells where the version was published. The specification lets Version be absent, but the writer then
// takes the commit for failed (client contract, fact 53).
type CreateTableVersionResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Version       *TableVersion     `json:"version,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}

// DescribeTableVersionRequest names a version of a chain, the latest when Version is absent.
type DescribeTableVersionRequest struct {
	Target
	Version *int64  `json:"version,omitempty"`
	Branch  *string `json:"branch,omitempty"`
}

// DescribeTableVersionResponse holds the version.
type DescribeTableVersionResponse struct {
	Version TableVersion      `json:"version" required:"true"`
	Context map[string]string `json:"context,omitempty"`
}

// VersionRange is the versions from StartVersion up to but not including EndVersion; an end of -1 is through the latest.
type VersionRange struct {
	StartVersion int64 `json:"start_version" required:"true"`
	EndVersion   int64 `json:"end_version" required:"true"`
}

// BatchDeleteTableVersionsRequest asks to remove ranges of versions of one chain; versions that are not there are passed over.
type BatchDeleteTableVersionsRequest struct {
	Target
	Ranges []VersionRange `json:"ranges" required:"true"`
	Branch *string        `json:"branch,omitempty"`
}

// BatchDeleteTableVersionsResponse counts what was removed.
type BatchDeleteTableVersionsResponse struct {
	DeletedCount  *int64            `json:"deleted_count,omitempty"`
	TransactionID *string           `json:"transaction_id,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}

// RestoreTableRequest asks for a new version with the content of an old one.
type RestoreTableRequest struct {
	Target
	Version int64   `json:"version" required:"true"`
	Branch  *string `json:"branch,omitempty"`
}

// RestoreTableResponse does not give the number of the new version; the specification has no field for it.
type RestoreTableResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}
