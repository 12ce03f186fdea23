package api

import "io"

// Identity is who calls, as a body may say it. The headers x-api-key and Authorization win over it (client contract, fact 113).
// Its values are secrets and must never be logged.
type Identity struct {
	APIKey    *string `json:"api_key,omitempty"`
	AuthToken *string `json:"auth_token,omitempty"`
}

// Caller is the part that every request has: who calls, and free text that travels with the call. Context entries named
// header.<name> are also sent as HTTP headers.
type Caller struct {
	Identity *Identity         `json:"identity,omitempty"`
	Context  map[string]string `json:"context,omitempty"`
}

// AsCaller returns the embedded Caller, so that code which serves all operations reaches it through an interface.
func (c *Caller) AsCaller() *Caller { return c }

// Target is the part of every request that acts on one object: its id from just below the root, the empty list being the root
// namespace. An absent id in a body means the one in the path.
type Target struct {
	ID []string `json:"id,omitempty"`
	Caller
}

// AsTarget returns the embedded Target, so that code which serves all operations reaches it through an interface.
func (t *Target) AsTarget() *Target { return t }

// At returns the Target with the given id and no identity or context; At() is the root namespace.
func At(id ...string) Target { return Target{ID: id} }

// Page asks for a part of a list, in the query. Limit is the largest number of items wanted; the server may return fewer.
// PageToken is the token of the previous answer, absent or empty for the first page. An answer without a token is the last.
type Page struct {
	PageToken *string `json:"-" query:"page_token"`
	Limit     *int64  `json:"-" query:"limit"`
}

// ArrowStream is the body of the operations that send rows: an Arrow IPC stream of any length, sent as
// application/vnd.apache.arrow.stream, and the only part of such a request that is in the body (client contract, fact 9).
// Whoever handles the request reads it once and does not close it.
type ArrowStream struct {
	Data io.Reader `json:"-"`
}

// AsArrowStream returns the embedded ArrowStream, so that code which serves all operations reaches it through an interface.
func (s *ArrowStream) AsArrowStream() *ArrowStream { return s }
