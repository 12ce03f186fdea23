package openapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/openapi"
)

type document struct {
	OpenAPI    string
	Info       struct{ Title, Version string }
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	OperationID string
	Parameters  []struct {
		Name, In string
		Required bool
	}
	RequestBody *struct {
		Required bool
		Content  map[string]content
	}
	Responses map[string]struct{ Content map[string]content }
}

type content struct{ Schema *schema }

type schema struct {
	Ref        string `json:"$ref"`
	Type       any
	Format     string
	Properties map[string]schema
	Required   []string
}

// statusOf stands in for the table of the HTTP layer: any statuses do.
func statusOf(code api.Code) int { return 400 + int(code) }

func load(t *testing.T) ([]byte, document) {
	t.Helper()
	data, err := openapi.Document("1.2.3", statusOf)
	if err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatalf("the document is not JSON: %v", err)
	}
	return data, doc
}

func TestDocumentHasEveryOperation(t *testing.T) {
	t.Parallel()
	_, doc := load(t)
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") || doc.Info.Version != "1.2.3" {
		t.Errorf("document is OpenAPI %q of version %q, want 3.1 and 1.2.3", doc.OpenAPI, doc.Info.Version)
	}
	count := 0
	for _, path := range doc.Paths {
		count += len(path)
	}
	if count != 54 {
		t.Errorf("document has %d operations, want 54", count)
	}
	for _, op := range api.Operations() {
		described := doc.Paths[op.Path][strings.ToLower(op.Method)]
		if described.OperationID != op.Name {
			t.Errorf("%s %s is %q in the document, want %s", op.Method, op.Path, described.OperationID, op.Name)
			continue
		}
		checkParameters(t, op, described)
		checkBodies(t, op, described)
	}
}

func checkParameters(t *testing.T, op api.Operation, described operation) {
	t.Helper()
	var got, want []string
	for _, p := range described.Parameters {
		got = append(got, fmt.Sprintf("%s %s %t", p.In, p.Name, p.Required))
	}
	for _, name := range []string{"id", "index_name"} {
		if strings.Contains(op.Path, "{"+name+"}") {
			want = append(want, fmt.Sprintf("path %s true", name))
		}
	}
	for _, name := range append([]string{"delimiter"}, op.Query...) {
		want = append(want, fmt.Sprintf("query %s %t", name, name == "on"))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: parameters (-want +got):\n%s", op.Name, diff)
	}
}

func checkBodies(t *testing.T, op api.Operation, described operation) {
	t.Helper()
	if hasBody := described.RequestBody != nil; hasBody != (op.Body != api.NoBody) {
		t.Errorf("%s: document has a request body: %t", op.Name, hasBody)
	} else if hasBody && described.RequestBody.Required == (op.Body == api.OptionalJSONBody) {
		t.Errorf("%s: request body is required: %t", op.Name, described.RequestBody.Required)
	}
	success, ok := described.Responses[fmt.Sprint(op.Success)]
	if !ok {
		t.Errorf("%s: no response for status %d", op.Name, op.Success)
	}
	want := map[api.ReturnKind]string{api.ReturnsJSON: api.JSONType, api.ReturnsArrow: api.ArrowFileType}[op.Returns]
	if _, ok := success.Content[want]; ok != (want != "") {
		t.Errorf("%s: success has the content %v, want %q", op.Name, success.Content, want)
	}
	for _, code := range op.Codes {
		failure := described.Responses[fmt.Sprint(statusOf(code))].Content[api.JSONType]
		if failure.Schema == nil || failure.Schema.Ref != "#/components/schemas/ErrorResponse" {
			t.Errorf("%s: code %v has the schema %+v, want ErrorResponse", op.Name, code, failure.Schema)
		}
	}
	if len(described.Responses) != 1+len(op.Codes) {
		t.Errorf("%s: %d responses, want one for success and %d for errors", op.Name, len(described.Responses), len(op.Codes))
	}
}

// TestReferencesResolve walks the whole document: each $ref names a schema that is there, and each schema is referred to.
func TestReferencesResolve(t *testing.T) {
	t.Parallel()
	data, doc := load(t)
	var whole any
	if err := json.Unmarshal(data, &whole); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, item := range node {
				walk(item)
			}
		case map[string]any:
			if ref, ok := node["$ref"].(string); ok {
				used[strings.TrimPrefix(ref, "#/components/schemas/")] = true
			}
			for _, item := range node {
				walk(item)
			}
		}
	}
	walk(whole)
	for name := range used {
		if _, ok := doc.Components.Schemas[name]; !ok {
			t.Errorf("%s is referred to and not defined", name)
		}
	}
	for name := range doc.Components.Schemas {
		if !used[name] {
			t.Errorf("%s is defined and not referred to", name)
		}
	}
}

// TestDocumentIsStable holds that two builds are equal byte by byte, so that the document can be compared and cached.
func TestDocumentIsStable(t *testing.T) {
	t.Parallel()
	first, _ := load(t)
	second, _ := load(t)
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Errorf("two builds differ (-first +second):\n%s", diff)
	}
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	_, doc := load(t)
	for name, want := range map[string]schema{
		"VersionRange": {
			Type: "object", Required: []string{"start_version", "end_version"},
			Properties: map[string]schema{"start_version": {Type: "integer", Format: "int64"}, "end_version": {Type: "integer", Format: "int64"}},
		},
		"ListNamespacesResponse": {
			Type: "object", Required: []string{"namespaces"},
			Properties: map[string]schema{"namespaces": {Type: "array"}, "page_token": {Type: "string"}, "context": {Type: "object"}},
		},
		"CountTableRowsRequest": {
			Type: "object", Properties: map[string]schema{
				"id": {Type: "array"}, "identity": {Ref: "#/components/schemas/Identity"}, "context": {Type: "object"},
				"version": {Type: "integer", Format: "int64"}, "predicate": {Type: "string"}, "branch": {Type: "string"},
			},
		},
		"RenameTableRequest": {
			Type: "object", Required: []string{"new_table_name"},
			Properties: map[string]schema{
				"id": {Type: "array"}, "identity": {Ref: "#/components/schemas/Identity"}, "context": {Type: "object"},
				"new_table_name": {Type: "string"}, "new_namespace_id": {Type: "array"}, "new_namespace": {Type: "array"},
			},
		},
		"JsonArrowSchema": {
			Type: "object", Required: []string{"fields"}, Properties: map[string]schema{"fields": {Type: "array"}, "metadata": {Type: "object"}},
		},
	} {
		if diff := cmp.Diff(want, withoutNull(doc.Components.Schemas[name])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	count := doc.Paths["/v1/table/{id}/count_rows"]["post"].Responses["200"].Content[api.JSONType].Schema
	if count == nil || count.Type != "integer" {
		t.Errorf("CountTableRows answers %+v, want an integer", count)
	}
}

// withoutNull takes null out of the types of optional properties, where a client may write it.
func withoutNull(s schema) schema {
	for name, property := range s.Properties {
		types, several := property.Type.([]any)
		if several && len(types) == 2 && !slices.Contains(s.Required, name) {
			property.Type = types[0]
			if property.Type == "null" {
				property.Type = types[1]
			}
			s.Properties[name] = property
		}
	}
	return s
}
