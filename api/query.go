package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// QueryTableRequest asks for rows: the nearest to a vector, those that match a text, or those that match a filter. K is at most the
// number of rows wanted; LanceDB's remote SDK sends the largest int64 for all of them (client contract, fact 99). NProbes
// is ignored when MinimumNProbes or MaximumNProbes is there. VectorColumn may be absent when the table has only one.
type QueryTableRequest struct {
	Target
	Vector            QueryVector    `json:"vector" required:"true"`
	K                 int64          `json:"k" required:"true"`
	Branch            *string        `json:"branch,omitempty"`
	Version           *int64         `json:"version,omitempty"`
	VectorColumn      *string        `json:"vector_column,omitempty"`
	Columns           *QueryColumns  `json:"columns,omitempty"`
	Filter            *string        `json:"filter,omitempty"`
	Prefilter         *bool          `json:"prefilter,omitempty"`
	DistanceType      *string        `json:"distance_type,omitempty"`
	NProbes           *int64         `json:"nprobes,omitempty"`
	MinimumNProbes    *int64         `json:"minimum_nprobes,omitempty"`
	MaximumNProbes    *int64         `json:"maximum_nprobes,omitempty"`
	Ef                *int64         `json:"ef,omitempty"`
	RefineFactor      *int64         `json:"refine_factor,omitempty"`
	LowerBound        *float32       `json:"lower_bound,omitempty"`
	UpperBound        *float32       `json:"upper_bound,omitempty"`
	BypassVectorIndex *bool          `json:"bypass_vector_index,omitempty"`
	FastSearch        *bool          `json:"fast_search,omitempty"`
	WithRowID         *bool          `json:"with_row_id,omitempty"`
	Offset            *int64         `json:"offset,omitempty"`
	FullTextQuery     *FullTextQuery `json:"full_text_query,omitempty"`
}

// QueryTableResponse is an Arrow IPC file, which is the whole answer; Context can travel as headers only. Whoever
// receives it closes Data.
type QueryTableResponse struct {
	Data    io.ReadCloser     `json:"-"`
	Context map[string]string `json:"-"`
}

// QueryVector is what to be near to: one vector, several, or, when both are empty, no vector search.
type QueryVector struct {
	SingleVector []float32   `json:"single_vector,omitempty"`
	MultiVector  [][]float32 `json:"multi_vector,omitempty"`
}

// UnmarshalJSON reads the specification's object, null, and the bare list or list of lists of LanceDB's remote SDK (client
// contract, fact 99). It fails on anything else, saying what it takes. The data is valid JSON, as json.Unmarshal sees to.
func (v *QueryVector) UnmarshalJSON(data []byte) error {
	*v = QueryVector{}
	switch data = bytes.TrimSpace(data); data[0] {
	case '[':
		if err := checkNumbers(data); err != nil {
			return err
		}
		if inner := bytes.TrimSpace(data[1:]); inner[0] == '[' {
			return json.Unmarshal(data, &v.MultiVector)
		}
		return json.Unmarshal(data, &v.SingleVector)
	case '{', 'n':
		var object struct {
			Single json.RawMessage `json:"single_vector"`
			Multi  json.RawMessage `json:"multi_vector"`
		}
		if err := json.Unmarshal(data, &object); err != nil {
			return err
		}
		if err := errors.Join(checkNumbers(object.Single), checkNumbers(object.Multi)); err != nil {
			return err
		}
		if err := errors.Join(unmarshalList(object.Single, &v.SingleVector), unmarshalList(object.Multi, &v.MultiVector)); err != nil {
			return err
		}
		if len(v.SingleVector) > 0 && len(v.MultiVector) > 0 {
			return errors.New("vector has single_vector and multi_vector: give one of them")
		}
		return nil
	}
	return fmt.Errorf("vector is %s; it must be a list of numbers or an object with single_vector or multi_vector", data)
}

// unmarshalList reads a list that may be absent.
func unmarshalList(data json.RawMessage, list any) error {
	if len(data) == 0 {
		return nil
	}
	return json.Unmarshal(data, list)
}

// checkNumbers refuses null in a list of numbers, or of such lists: package json would take it for 0.
func checkNumbers(list []byte) error {
	if len(list) > 4 && bytes.Contains(list, []byte("null")) { // the list itself may be null
		return errors.New("vector has null where a number belongs")
	}
	return nil
}

// QueryColumns is which columns to return: by name, or as new names for field paths.
type QueryColumns struct {
	ColumnNames   []string          `json:"column_names,omitempty"`
	ColumnAliases map[string]string `json:"column_aliases,omitempty"`
}

// UnmarshalJSON reads the specification's object, and the bare list or bare object of aliases of LanceDB's remote SDK (client
// contract, fact 99). An object with only the specification's two names in it is taken for the former when it can be.
func (c *QueryColumns) UnmarshalJSON(data []byte) error {
	*c = QueryColumns{}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return json.Unmarshal(data, &c.ColumnNames)
	}
	type object QueryColumns
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if strict.Decode((*object)(c)) == nil {
		return nil
	}
	*c = QueryColumns{}
	if err := json.Unmarshal(data, &c.ColumnAliases); err != nil {
		return fmt.Errorf("columns must be a list of names or an object with column_names or column_aliases: %w", err)
	}
	return nil
}

// FullTextQuery is what to search texts for: exactly one field is set.
type FullTextQuery struct {
	StringQuery     *StringFtsQuery     `json:"string_query,omitempty"`
	StructuredQuery *StructuredFtsQuery `json:"structured_query,omitempty"`
}

// UnmarshalJSON reads the specification's object, and the unwrapped query of LanceDB's remote SDK, whose member query is a text or a
// tree (client contract, fact 99).
func (q *FullTextQuery) UnmarshalJSON(data []byte) error {
	*q = FullTextQuery{}
	var bare struct {
		Query json.RawMessage `json:"query"`
	}
	if err := json.Unmarshal(data, &bare); err != nil {
		return fmt.Errorf("full_text_query must be an object with string_query or structured_query: %w", err)
	}
	switch {
	case len(bare.Query) > 0 && bare.Query[0] == '"':
		return json.Unmarshal(data, &q.StringQuery)
	case len(bare.Query) > 0 && bare.Query[0] == '{':
		return json.Unmarshal(data, &q.StructuredQuery)
	}
	type object FullTextQuery
	return json.Unmarshal(data, (*object)(q))
}

// StringFtsQuery searches for the words of a text, in all indexed columns when Columns is empty.
type StringFtsQuery struct {
	Query   string   `json:"query" required:"true"`
	Columns []string `json:"columns,omitempty"`
}

// StructuredFtsQuery searches by a tree of conditions.
type StructuredFtsQuery struct {
	Query FtsQuery `json:"query" required:"true"`
}

// FtsQuery is a node of the tree: exactly one field is set.
type FtsQuery struct {
	Match      *MatchQuery      `json:"match,omitempty"`
	Phrase     *PhraseQuery     `json:"phrase,omitempty"`
	Boost      *BoostQuery      `json:"boost,omitempty"`
	MultiMatch *MultiMatchQuery `json:"multi_match,omitempty"`
	Boolean    *BooleanQuery    `json:"boolean,omitempty"`
}

// Operator says whether any (Or, the default) or all (And) words must be found. It is read in any case.
type Operator string

// The operators.
const (
	OperatorAnd Operator = "And"
	OperatorOr  Operator = "Or"
)

// MatchQuery finds words, perhaps misspelt.
type MatchQuery struct {
	Terms         string    `json:"terms" required:"true"`
	Column        *string   `json:"column,omitempty"`
	Boost         *float32  `json:"boost,omitempty"`
	Fuzziness     *int64    `json:"fuzziness,omitempty"`
	MaxExpansions *int64    `json:"max_expansions,omitempty"`
	Operator      *Operator `json:"operator,omitempty"`
	PrefixLength  *int64    `json:"prefix_length,omitempty"`
}

// PhraseQuery finds words in order, with at most Slop others between them.
type PhraseQuery struct {
	Terms  string  `json:"terms" required:"true"`
	Column *string `json:"column,omitempty"`
	Slop   *int64  `json:"slop,omitempty"`
}

// BoostQuery finds what matches Positive and puts what matches Negative further down.
type BoostQuery struct {
	Positive      FtsQuery `json:"positive" required:"true"`
	Negative      FtsQuery `json:"negative" required:"true"`
	NegativeBoost *float32 `json:"negative_boost,omitempty"`
}

// MultiMatchQuery finds what matches any of several queries.
type MultiMatchQuery struct {
	MatchQueries []MatchQuery `json:"match_queries" required:"true"`
}

// UnmarshalJSON reads the specification's object, and that of LanceDB's SDK: one text as query, the columns, and for each perhaps a boost.
// It fails on anything else.
func (q *MultiMatchQuery) UnmarshalJSON(data []byte) error {
	var sdk struct {
		MatchQueries []MatchQuery `json:"match_queries"`
		Query        string       `json:"query"`
		Columns      []string     `json:"columns"`
		Boost        []float32    `json:"boost"`
	}
	if err := json.Unmarshal(data, &sdk); err != nil {
		return err
	}
	if len(sdk.Boost) > 0 && len(sdk.Boost) != len(sdk.Columns) {
		return fmt.Errorf("multi_match has %d columns and %d boosts: give one for each, or none", len(sdk.Columns), len(sdk.Boost))
	}
	q.MatchQueries = sdk.MatchQueries
	for i, column := range sdk.Columns {
		m := MatchQuery{Terms: sdk.Query, Column: &column}
		if len(sdk.Boost) > 0 {
			m.Boost = &sdk.Boost[i]
		}
		q.MatchQueries = append(q.MatchQueries, m)
	}
	return nil
}

// BooleanQuery joins queries. The three lists are required and may be empty.
type BooleanQuery struct {
	Must    []FtsQuery `json:"must" required:"true"`
	MustNot []FtsQuery `json:"must_not" required:"true"`
	Should  []FtsQuery `json:"should" required:"true"`
}

// ExplainTableQueryPlanRequest asks how a query would be run.
type ExplainTableQueryPlanRequest struct {
	Target
	Query   QueryTableRequest `json:"query" required:"true"`
	Verbose *bool             `json:"verbose,omitempty"`
	Branch  *string           `json:"branch,omitempty"`
}

// ExplainTableQueryPlanResponse is a bare string on the wire (client contract, fact 10). Its Context can travel as headers only.
type ExplainTableQueryPlanResponse struct {
	Plan    string            `json:"plan" required:"true"`
	Context map[string]string `json:"context,omitempty"`
}

// MarshalJSON writes the plan alone. It never fails.
func (r ExplainTableQueryPlanResponse) MarshalJSON() ([]byte, error) { return json.Marshal(r.Plan) }

// UnmarshalJSON reads a bare string, and fails on anything else.
func (r *ExplainTableQueryPlanResponse) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &r.Plan)
}

// AnalyzeTableQueryPlanRequest asks to run a query and to tell how it went. It has the fields of the query itself.
type AnalyzeTableQueryPlanRequest struct {
	QueryTableRequest
}

// AnalyzeTableQueryPlanResponse is a bare string on the wire (client contract, fact 10). Its Context can travel as headers only.
type AnalyzeTableQueryPlanResponse struct {
	Analysis string            `json:"analysis" required:"true"`
	Context  map[string]string `json:"context,omitempty"`
}

// MarshalJSON writes the analysis alone. It never fails.
func (r AnalyzeTableQueryPlanResponse) MarshalJSON() ([]byte, error) { return json.Marshal(r.Analysis) }

// UnmarshalJSON reads a bare string, and fails on anything else.
func (r *AnalyzeTableQueryPlanResponse) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &r.Analysis)
}
