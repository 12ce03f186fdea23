package api

// BranchContents is a branch as its file in storage has it, in camel case. CreateAt is in seconds since 1970; ParentBranch is main
// when absent.
type BranchContents struct {
	ParentBranch  *string           `json:"parentBranch,omitempty"`
	ParentVersion int64             `json:"parentVersion" required:"true"`
	CreateAt      int64             `json:"createAt" required:"true"`
	ManifestSize  int64             `json:"manifestSize" required:"true"`
	Metadata      map[string]string `json:"metadata,omitempty"`
}

// ListTableBranchesRequest asks for the branches of a table. The operation has no body.
type ListTableBranchesRequest struct {
	Target
	Page
}

// ListTableBranchesResponse holds the branches by name, without main. Branches must not be nil.
type ListTableBranchesResponse struct {
	Branches  map[string]BranchContents `json:"branches" required:"true"`
	PageToken *string                   `json:"page_token,omitempty"`
	Context   map[string]string         `json:"context,omitempty"`
}

// CreateTableBranchRequest asks for a branch that starts at a version of another, by default at the latest of main.
type CreateTableBranchRequest struct {
	Target
	Name        string  `json:"name" required:"true"`
	FromBranch  *string `json:"from_branch,omitempty"`
	FromVersion *int64  `json:"from_version,omitempty"`
}

// CreateTableBranchResponse has nothing to say beyond success.
type CreateTableBranchResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}

// DeleteTableBranchRequest asks to remove a branch.
type DeleteTableBranchRequest struct {
	Target
	Name string `json:"name" required:"true"`
}

// DeleteTableBranchResponse has nothing to say beyond success.
type DeleteTableBranchResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}
