package api

import "encoding/json"

// InsertIntoTableRequest adds the rows of an Arrow stream to a table. Mode is Append (the default) or Overwrite, which removes all
// rows first; it is read in any case.
type InsertIntoTableRequest struct {
	Target
	ArrowStream
	Branch *string `json:"-" query:"branch"`
	Mode   *string `json:"-" query:"mode"`
}

// InsertIntoTableResponse tells what was inserted and in which version.
type InsertIntoTableResponse struct {
	TransactionID   *string           `json:"transaction_id,omitempty"`
	NumInsertedRows *int64            `json:"num_inserted_rows,omitempty"`
	Version         *int64            `json:"version,omitempty"`
	Context         map[string]string `json:"context,omitempty"`
}

// MergeInsertIntoTableRequest matches the rows of an Arrow stream with those of a table by the fields in On, of which there is at
// least one (the parameter repeats), and says what happens to rows that match and to rows that do not. The *Filt fields narrow a rule
// by an SQL condition. Timeout is a text such as 30s.
type MergeInsertIntoTableRequest struct {
	Target
	ArrowStream
	On                               []string `json:"-" query:"on"`
	Branch                           *string  `json:"-" query:"branch"`
	WhenMatchedUpdateAll             *bool    `json:"-" query:"when_matched_update_all"`
	WhenMatchedUpdateAllFilt         *string  `json:"-" query:"when_matched_update_all_filt"`
	WhenNotMatchedInsertAll          *bool    `json:"-" query:"when_not_matched_insert_all"`
	WhenNotMatchedBySourceDelete     *bool    `json:"-" query:"when_not_matched_by_source_delete"`
	WhenNotMatchedBySourceDeleteFilt *string  `json:"-" query:"when_not_matched_by_source_delete_filt"`
	Timeout                          *string  `json:"-" query:"timeout"`
	UseIndex                         *bool    `json:"-" query:"use_index"`
}

// MergeInsertIntoTableResponse counts what was done. NumAttempts and NumRows, of those inserted and updated, are read by LanceDB's remote SDK
// only (client contract, fact 103).
type MergeInsertIntoTableResponse struct {
	TransactionID   *string           `json:"transaction_id,omitempty"`
	NumUpdatedRows  *int64            `json:"num_updated_rows,omitempty"`
	NumInsertedRows *int64            `json:"num_inserted_rows,omitempty"`
	NumDeletedRows  *int64            `json:"num_deleted_rows,omitempty"`
	NumAttempts     *int64            `json:"num_attempts,omitempty"`
	NumRows         *int64            `json:"num_rows,omitempty"`
	Version         *int64            `json:"version,omitempty"`
	Context         map[string]string `json:"context,omitempty"`
}

// UpdateTableRequest sets columns of the rows that match Predicate, of all rows when it is absent. Each update is a pair of a field
// path and an SQL expression; the pair is a slice so that one of another length can be refused rather than cut.
type UpdateTableRequest struct {
	Target
	Updates    [][]string        `json:"updates" required:"true"`
	Predicate  *string           `json:"predicate,omitempty"`
	Branch     *string           `json:"branch,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
}

// UpdateTableResponse counts the changed rows twice: LanceDB's remote SDK reads RowsUpdated (client contract, fact 103).
type UpdateTableResponse struct {
	UpdatedRows   int64             `json:"updated_rows" required:"true"`
	RowsUpdated   *int64            `json:"rows_updated,omitempty"`
	Version       int64             `json:"version" required:"true"`
	TransactionID *string           `json:"transaction_id,omitempty"`
	Properties    map[string]string `json:"properties,omitempty"`
	Context       map[string]string `json:"context,omitempty"`
}

// DeleteFromTableRequest removes the rows that match an SQL condition.
type DeleteFromTableRequest struct {
	Target
	Predicate string  `json:"predicate" required:"true"`
	Branch    *string `json:"branch,omitempty"`
}

// DeleteFromTableResponse gives the new version. NumDeletedRows is read by LanceDB's remote SDK only (client contract, fact 103).
type DeleteFromTableResponse struct {
	TransactionID  *string           `json:"transaction_id,omitempty"`
	NumDeletedRows *int64            `json:"num_deleted_rows,omitempty"`
	Version        *int64            `json:"version,omitempty"`
	Context        map[string]string `json:"context,omitempty"`
}

// CountTableRowsRequest asks how many rows of a version match an SQL condition, by default how many there are in the latest.
type CountTableRowsRequest struct {
	Target
	Version   *int64  `json:"version,omitempty"`
	Predicate *string `json:"predicate,omitempty"`
	Branch    *string `json:"branch,omitempty"`
}

// CountTableRowsResponse is a bare number on the wire (client contract, fact 10). Its Context can travel as headers only.
type CountTableRowsResponse struct {
	Count   int64             `json:"count"`
	Context map[string]string `json:"context,omitempty"`
}

// MarshalJSON writes the count alone. It never fails.
func (r CountTableRowsResponse) MarshalJSON() ([]byte, error) { return json.Marshal(r.Count) }

// UnmarshalJSON reads a bare number, and fails on anything else.
func (r *CountTableRowsResponse) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &r.Count)
}
