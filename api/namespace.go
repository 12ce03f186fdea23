package api

// CreateNamespaceRequest asks for a namespace below an existing parent. Mode is Create (the default), ExistOk or Overwrite, in any
// case and with or without underscores (client contract, fact 84).
type CreateNamespaceRequest struct {
	Target
	Mode       *string           `json:"mode,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
}

// CreateNamespaceResponse gives the properties that the namespace has now; they must not be nil.
type CreateNamespaceResponse struct {
	TransactionID *string           `json:"transaction_id,omitempty"`
	Properties    map[string]string `json:"properties"`
	Context       map[string]string `json:"context,omitempty"`
}

// ListNamespacesRequest asks for the direct children of a namespace.
type ListNamespacesRequest struct {
	Target
	Page
}

// ListNamespacesResponse holds names relative to the parent. Namespaces must not be nil.
type ListNamespacesResponse struct {
	Namespaces []string          `json:"namespaces" required:"true"`
	PageToken  *string           `json:"page_token,omitempty"`
	Context    map[string]string `json:"context,omitempty"`
}

// DescribeNamespaceRequest names the namespace to describe.
type DescribeNamespaceRequest struct {
	Target
}

// DescribeNamespaceResponse holds the namespace's properties. They must not be nil: null would say that properties are unsupported.
type DescribeNamespaceResponse struct {
	Properties map[string]string `json:"properties"`
	Context    map[string]string `json:"context,omitempty"`
}

// DropNamespaceRequest asks to remove a namespace. Mode is Fail (the default) or Skip, which makes a missing namespace a success;
// Behavior is Restrict (the default) or Cascade, which drops everything below it first. Both are read in any case.
type DropNamespaceRequest struct {
	Target
	Mode     *string `json:"mode,omitempty"`
	Behavior *string `json:"behavior,omitempty"`
}

// DropNamespaceResponse gives the properties of the dropped namespace. TransactionID is a list here and in no other answer; it is
// present when the drop goes on in the background.
type DropNamespaceResponse struct {
	Properties    map[string]string `json:"properties,omitempty"`
	TransactionID []string          `json:"transaction_id,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}

// NamespaceExistsRequest names the namespace that is asked about.
type NamespaceExistsRequest struct {
	Target
}

// NamespaceExistsResponse is never sent: yes is an empty 200, no is an error (client contract, fact 12).
type NamespaceExistsResponse struct {
	Context map[string]string `json:"context,omitempty"`
}
