package api_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
)

func ptr[T any](v T) *T { return &v }

func TestQueryTakesBothClients(t *testing.T) {
	t.Parallel()
	single := api.QueryVector{SingleVector: []float32{1, 2}}
	multi := api.QueryVector{MultiVector: [][]float32{{1}, {2}}}
	names := &api.QueryColumns{ColumnNames: []string{"a"}}
	text := &api.FullTextQuery{StringQuery: &api.StringFtsQuery{Query: "w", Columns: []string{}}}
	tree := &api.FullTextQuery{StructuredQuery: &api.StructuredFtsQuery{Query: api.FtsQuery{Match: &api.MatchQuery{Terms: "w"}}}}
	for name, test := range map[string]struct {
		body string
		want api.QueryTableRequest
	}{
		"vector object":        {`{"vector":{"single_vector":[1,2]},"k":3}`, api.QueryTableRequest{Vector: single, K: 3}},
		"vector object multi":  {`{"vector":{"multi_vector":[[1],[2]]}}`, api.QueryTableRequest{Vector: multi}},
		"vector list":          {`{"vector": [1, 2]}`, api.QueryTableRequest{Vector: single}},
		"vector list of lists": {`{"vector":[ [1],[2] ]}`, api.QueryTableRequest{Vector: multi}},
		"vector empty":         {`{"vector":{}}`, api.QueryTableRequest{}},
		"vector empty list":    {`{"vector":[]}`, api.QueryTableRequest{Vector: api.QueryVector{SingleVector: []float32{}}}},
		"vector null":          {`{"vector":null}`, api.QueryTableRequest{}},
		"all rows":             {`{"k":9223372036854775807}`, api.QueryTableRequest{K: 1<<63 - 1}},
		"null numbers":         {`{"k":1,"nprobes":null,"version":null,"ef":null,"lower_bound":null}`, api.QueryTableRequest{K: 1}},
		"columns object":       {`{"columns":{"column_names":["a"]}}`, api.QueryTableRequest{Columns: names}},
		"columns list":         {`{"columns":["a"]}`, api.QueryTableRequest{Columns: names}},
		"columns aliases": {
			`{"columns":{"column_aliases":{"x":"a"}}}`,
			api.QueryTableRequest{Columns: &api.QueryColumns{ColumnAliases: map[string]string{"x": "a"}}},
		},
		"columns bare aliases": {
			`{"columns":{"column_names":"a","y":"b"}}`,
			api.QueryTableRequest{Columns: &api.QueryColumns{ColumnAliases: map[string]string{"column_names": "a", "y": "b"}}},
		},
		"text object":    {`{"full_text_query":{"string_query":{"query":"w","columns":[]}}}`, api.QueryTableRequest{FullTextQuery: text}},
		"text bare":      {`{"full_text_query":{"columns":[],"query":"w"}}`, api.QueryTableRequest{FullTextQuery: text}},
		"text tree":      {`{"full_text_query":{"structured_query":{"query":{"match":{"terms":"w"}}}}}`, api.QueryTableRequest{FullTextQuery: tree}},
		"text bare tree": {`{"full_text_query":{"query":{"match":{"terms":"w"}}}}`, api.QueryTableRequest{FullTextQuery: tree}},
		"text of LanceDB for several columns": {
			`{"full_text_query":{"query":{"multi_match":{"query":"w","columns":["a","b"],"boost":[1,2]}}}}`,
			api.QueryTableRequest{FullTextQuery: &api.FullTextQuery{StructuredQuery: &api.StructuredFtsQuery{Query: api.FtsQuery{MultiMatch: &api.MultiMatchQuery{
				MatchQueries: []api.MatchQuery{{Terms: "w", Column: ptr("a"), Boost: ptr(float32(1))}, {Terms: "w", Column: ptr("b"), Boost: ptr(float32(2))}},
			}}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got api.QueryTableRequest
			if err := json.Unmarshal([]byte(test.body), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.body, diff)
			}
		})
	}
}

func TestQueryRefuses(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"vector":"[1,2]"}`, `{"vector":7}`, `{"vector":["a"]}`, `{"vector":[[1],2]}`, `{"columns":"a"}`, `{"columns":[1]}`,
		`{"columns":{"x":1}}`, `{"full_text_query":"w"}`, `{"full_text_query":[]}`, `{"k":"3"}`, `{"k":1.5}`, `{"k":9223372036854775808}`,
		`{"full_text_query":{"query":{"multi_match":{"query":"w","columns":["a","b"],"boost":[1]}}}}`,
	} {
		if err := json.Unmarshal([]byte(body), new(api.QueryTableRequest)); err == nil {
			t.Errorf("%s was taken, want an error", body)
		}
	}
}

// FuzzQuery holds that any body is either refused or read into a request that is written and read again unchanged.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		`{"vector":{"single_vector":[1,2.5]},"k":3,"columns":{"column_names":["a"]},"filter":"x > 1"}`,
		`{"vector":[[1],[2]],"k":1,"columns":{"a":"b"},"full_text_query":{"columns":[],"query":"w"}}`,
		`{"vector":[],"full_text_query":{"query":{"boolean":{"must":[],"must_not":[],"should":[{"phrase":{"terms":"w"}}]}}}}`,
		`{"vector":null,"columns":null,"full_text_query":null}`, `{"vector":true}`, `null`, `[`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var first, second api.QueryTableRequest
		if json.Unmarshal(body, &first) != nil {
			return
		}
		once, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("write what was read from %q: %v", body, err)
		}
		if err := json.Unmarshal(once, &second); err != nil {
			t.Fatalf("read %s again: %v", once, err)
		}
		twice, err := json.Marshal(second)
		if err != nil || string(once) != string(twice) {
			t.Errorf("%q was written as %s, then as %s (%v)", body, once, twice, err)
		}
	})
}
