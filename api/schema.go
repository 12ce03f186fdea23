package api

import "encoding/json"

// JSONArrowSchema is an Arrow schema in JSON. Fields must not be nil.
type JSONArrowSchema struct {
	Fields   []JSONArrowField  `json:"fields" required:"true"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// JSONArrowField is a column or a member of a nested type.
type JSONArrowField struct {
	Name     string            `json:"name" required:"true"`
	Nullable bool              `json:"nullable" required:"true"`
	Type     JSONArrowDataType `json:"type" required:"true"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// JSONArrowDataType is a type by name. Length is the size of a fixed-size type, and precision times 1000 plus scale of a decimal;
// Fields are the children of a nested one. The names that clients know depend on the client (client contract, fact 92).
type JSONArrowDataType struct {
	Type   string           `json:"type" required:"true"`
	Length *int64           `json:"length,omitempty"`
	Fields []JSONArrowField `json:"fields,omitempty"`
}

// UpdateTableSchemaMetadataRequest sets metadata of a table's schema. Its body is the bare map (client contract, fact 10), so that
// id, identity and context travel in the path and in headers.
type UpdateTableSchemaMetadataRequest struct {
	Target
	Metadata map[string]string `json:"metadata"`
	Branch   *string           `json:"-" query:"branch"`
}

// MarshalJSON writes the map alone, {} when it is nil. It never fails.
func (r UpdateTableSchemaMetadataRequest) MarshalJSON() ([]byte, error) {
	return marshalMap(r.Metadata)
}

// UnmarshalJSON reads a bare map of strings into Metadata, and fails on anything else.
func (r *UpdateTableSchemaMetadataRequest) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &r.Metadata)
}

// UpdateTableSchemaMetadataResponse is the schema's metadata after the change, on the wire the bare map; the other two fields cannot
// travel in the body.
type UpdateTableSchemaMetadataResponse struct {
	Metadata      map[string]string `json:"metadata"`
	TransactionID *string           `json:"transaction_id,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}

// MarshalJSON writes the map alone, {} when it is nil. It never fails.
func (r UpdateTableSchemaMetadataResponse) MarshalJSON() ([]byte, error) {
	return marshalMap(r.Metadata)
}

// UnmarshalJSON reads a bare map of strings into Metadata, and fails on anything else.
func (r *UpdateTableSchemaMetadataResponse) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &r.Metadata)
}

func marshalMap(m map[string]string) ([]byte, error) {
	if m == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(m)
}

// UpdateFieldMetadataRequest sets metadata of a table's fields.
type UpdateFieldMetadataRequest struct {
	Target
	Updates []UpdateFieldMetadataEntry `json:"updates" required:"true"`
	Branch  *string                    `json:"branch,omitempty"`
}

// UpdateFieldMetadataEntry is what changes of one field: entries are set, those that are null are removed, and with Replace all
// others go too.
type UpdateFieldMetadataEntry struct {
	Path     string             `json:"path" required:"true"`
	Metadata map[string]*string `json:"metadata" required:"true"`
	Replace  *bool              `json:"replace,omitempty"`
}

// UpdateFieldMetadataResponse is the version with the change, and the metadata of each changed field by its canonical path.
type UpdateFieldMetadataResponse struct {
	Version int64                        `json:"version" required:"true"`
	Fields  map[string]map[string]string `json:"fields,omitempty"`
	Context map[string]string            `json:"context,omitempty"`
}
