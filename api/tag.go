package api

// TagContents is a tag as its file in storage has it, in camel case. Branch is the branch of the version, main when absent.
type TagContents struct {
	Branch       *string `json:"branch,omitempty"`
	Version      int64   `json:"version" required:"true"`
	ManifestSize int64   `json:"manifestSize" required:"true"`
}

// ListTableTagsRequest asks for the tags of a table. The operation has no body.
type ListTableTagsRequest struct {
	Target
	Page
}

// ListTableTagsResponse holds the tags by name. Tags must not be nil. LanceDB's remote SDK wants this map without the object
// around it (client contract, fact 101).
type ListTableTagsResponse struct {
	Tags      map[string]TagContents `json:"tags" required:"true"`
	PageToken *string                `json:"page_token,omitempty"`
	Context   map[string]string      `json:"context,omitempty"`
}

// GetTableTagVersionRequest names a tag.
type GetTableTagVersionRequest struct {
	Target
	Tag string `json:"tag" required:"true"`
}

// GetTableTagVersionResponse is the version that the tag points to, of main when Branch is absent.
type GetTableTagVersionResponse struct {
	Version int64             `json:"version" required:"true"`
	Branch  *string           `json:"branch,omitempty"`
	Context map[string]string `json:"context,omitempty"`
}

// CreateTableTagRequest asks for a new tag on a version of a branch, of main when Branch is absent.
type CreateTableTagRequest struct {
	Target
	Tag     string  `json:"tag" required:"true"`
	Version int64   `json:"version" required:"true"`
	Branch  *string `json:"branch,omitempty"`
}

// CreateTableTagResponse has nothing to say beyond success.
type CreateTableTagResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}

// UpdateTableTagRequest asks to move a tag to another version.
type UpdateTableTagRequest struct {
	Target
	Tag     string  `json:"tag" required:"true"`
	Version int64   `json:"version" required:"true"`
	Branch  *string `json:"branch,omitempty"`
}

// UpdateTableTagResponse has nothing to say beyond success.
type UpdateTableTagResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}

// DeleteTableTagRequest asks to remove a tag.
type DeleteTableTagRequest struct {
	Target
	Tag string `json:"tag" required:"true"`
}

// DeleteTableTagResponse has nothing to say beyond success.
type DeleteTableTagResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}
