package api_test

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
)

func TestWireForms(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"count is a number":             {api.CountTableRowsResponse{Count: 7}, `7`},
		"plan is a string":              {api.ExplainTableQueryPlanResponse{Plan: `a "b"`}, `"a \"b\""`},
		"analysis is a string":          {&api.AnalyzeTableQueryPlanResponse{Analysis: "a"}, `"a"`},
		"schema metadata is a map":      {api.UpdateTableSchemaMetadataResponse{Metadata: map[string]string{"k": "v"}}, `{"k":"v"}`},
		"no schema metadata is a map":   {&api.UpdateTableSchemaMetadataRequest{Target: api.At("t")}, `{}`},
		"stream bodies leave no trace":  {api.InsertIntoTableRequest{Mode: new("append")}, `{}`},
		"move to the root is written":   {api.RenameTableRequest{NewTableName: "n", NewNamespaceID: &[]string{}}, `{"new_table_name":"n","new_namespace_id":[]}`},
		"empty properties are written":  {api.DescribeNamespaceResponse{Properties: map[string]string{}}, `{"properties":{}}`},
		"required zeros are written":    {api.VersionRange{EndVersion: -1}, `{"start_version":0,"end_version":-1}`},
		"id, identity and context":      {api.DescribeNamespaceRequest{Target: api.Target{ID: []string{"a"}, Caller: api.Caller{Identity: &api.Identity{APIKey: new("k")}, Context: map[string]string{"c": "d"}}}}, `{"id":["a"],"identity":{"api_key":"k"},"context":{"c":"d"}}`},
		"cause of an error is not sent": {api.Errorf(api.CodeInternal, "sorry").Because(io.ErrUnexpectedEOF), `{"error":"sorry","code":18}`},
		"code zero is sent":             {&api.Error{}, `{"code":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(test.value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("%#v (-want +got):\n%s", test.value, diff)
			}
		})
	}
}

func TestBareBodiesAreRead(t *testing.T) {
	t.Parallel()
	request := api.UpdateTableSchemaMetadataRequest{Target: api.At("t"), Branch: new("b")}
	if err := json.Unmarshal([]byte(`{"k":"v"}`), &request); err != nil {
		t.Fatal(err)
	}
	want := api.UpdateTableSchemaMetadataRequest{Target: api.At("t"), Branch: new("b"), Metadata: map[string]string{"k": "v"}}
	if diff := cmp.Diff(want, request); diff != "" {
		t.Errorf("the bare map was not added to the request (-want +got):\n%s", diff)
	}
	for _, test := range []struct {
		body string
		into any
	}{
		{`{"k":1}`, new(api.UpdateTableSchemaMetadataRequest)}, {`"3"`, new(api.CountTableRowsResponse)},
		{`{"plan":"p"}`, new(api.ExplainTableQueryPlanResponse)}, {`3`, new(api.AnalyzeTableQueryPlanResponse)},
	} {
		if err := json.Unmarshal([]byte(test.body), test.into); err == nil {
			t.Errorf("%T took %s, want an error", test.into, test.body)
		}
	}
}

func TestRenameDestination(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		body  string
		want  []string
		given bool
	}{
		{`{"new_table_name":"n"}`, nil, false},
		{`{"new_table_name":"n","new_namespace_id":null}`, nil, false},
		{`{"new_table_name":"n","new_namespace_id":[]}`, []string{}, true},
		{`{"new_table_name":"n","new_namespace":[]}`, []string{}, true},
		{`{"new_table_name":"n","new_namespace":["a","b"]}`, []string{"a", "b"}, true},
		{`{"new_table_name":"n","new_namespace_id":["a"],"new_namespace":["b"]}`, []string{"a"}, true},
	} {
		var r api.RenameTableRequest
		if err := json.Unmarshal([]byte(test.body), &r); err != nil {
			t.Fatal(err)
		}
		got, given := r.Destination()
		if diff := cmp.Diff(test.want, got); diff != "" || given != test.given {
			t.Errorf("Destination of %s is %q, %t, want %q, %t", test.body, got, given, test.want, test.given)
		}
	}
}
