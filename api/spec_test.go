package api_test

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
)

// facts is testdata/operations.json: what the specification says, in a compact form of our own. A schema maps field names to types.
type facts struct {
	Operations map[string]operationFacts
	Schemas    map[string]map[string]string
}

type operationFacts struct {
	Method, Path, Body, Returns string
	Query                       map[string]string
	Success                     int
}

// extras are fields that our structs have beyond the specification, each with the reason to have it.
func extras() map[string]string {
	return map[string]string{
		"RenameTableRequest.new_namespace":              "LanceDB's spelling of new_namespace_id (client contract, fact 85)",
		"UpdateTableResponse.rows_updated":              "LanceDB's spelling of updated_rows (client contract, fact 103)",
		"DeleteFromTableResponse.num_deleted_rows":      "read by LanceDB (client contract, fact 103)",
		"MergeInsertIntoTableResponse.num_rows":         "read by LanceDB's remote SDK",
		"MergeInsertIntoTableResponse.num_attempts":     "read by LanceDB (client contract, fact 103)",
		"CreateTableIndexRequest.metric_type":           "LanceDB's spelling of distance_type",
		"CreateTableIndexRequest.block_size":            "sent by LanceDB's remote SDK with full-text indices",
		"CreateTableIndexRequest.custom_stop_words":     "sent by LanceDB's remote SDK with full-text indices",
		"CreateTableIndexRequest.min_ngram_length":      "sent by LanceDB's remote SDK with full-text indices",
		"CreateTableIndexRequest.max_ngram_length":      "sent by LanceDB's remote SDK with full-text indices",
		"CreateTableIndexRequest.prefix_only":           "sent by LanceDB's remote SDK with full-text indices",
		"CreateTableIndexRequest.lance_tokenizer":       "sent by LanceDB's remote SDK with full-text indices",
		"CreateTableIndexRequest.index_operators":       "sent by LanceDB's remote SDK with full-text indices",
		"CreateTableIndexRequest.preserve_original":     "sent by LanceDB's remote SDK with full-text indices",
		"CreateTableIndexRequest.split_identifiers":     "sent by LanceDB's remote SDK with full-text indices",
		"CreateTableIndexRequest.split_on_numerics":     "sent by LanceDB's remote SDK with full-text indices",
		"RefreshMaterializedViewRequest.source_version": "LanceDB's spelling of src_version",
		"RefreshMaterializedViewRequest.full":           "sent by LanceDB's remote SDK",
	}
}

// schemaName is the specification's name of a struct: Go capitalises abbreviations, and the error is plain Error here.
func schemaName(typ reflect.Type) string {
	if typ == reflect.TypeFor[api.Error]() {
		return "ErrorResponse"
	}
	return strings.NewReplacer("JSON", "Json", "UDTF", "Udtf").Replace(typ.Name())
}

func TestOperationsEqualSpecification(t *testing.T) {
	t.Parallel()
	want := loadFacts(t).Operations
	got := map[string]operationFacts{}
	for _, op := range api.Operations() {
		got[op.Name] = operationFacts{
			Method: op.Method, Path: op.Path, Success: op.Success, Query: queryOf(t, op), Body: bodyOf(op), Returns: returnsOf(op),
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations differ from the specification (-specification +table):\n%s", diff)
	}
	if len(api.Operations()) != 54 {
		t.Errorf("the table has %d rows, want 54", len(api.Operations()))
	}
}

func TestStructsEqualSpecification(t *testing.T) {
	t.Parallel()
	want := loadFacts(t).Schemas
	got := map[string]map[string]string{}
	for _, typ := range structs() {
		got[schemaName(typ)] = fieldsOf(typ)
	}
	for extra := range extras() {
		schema, field, _ := strings.Cut(extra, ".")
		if _, ok := got[schema][field]; !ok {
			t.Errorf("%s is listed as an extra field, and there is no such field", extra)
		}
		if _, ok := want[schema][field]; ok {
			t.Errorf("%s is listed as an extra field, and the specification has it", extra)
		}
		delete(got[schema], field)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("structs differ from the specification (-specification +structs):\n%s", diff)
	}
}

// TestQueryFieldsAreInTable holds that a struct has no query field which an operation that uses the struct does not take.
func TestQueryFieldsAreInTable(t *testing.T) {
	t.Parallel()
	for _, op := range api.Operations() {
		var got []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(op.Request)) {
			if name := f.Tag.Get("query"); name != "" {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(op.Query))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: query fields of %T differ from the table (-table +struct):\n%s", op.Name, op.Request, diff)
		}
	}
}

// TestOptionalScalarsArePointers holds the rule of the package comment: what may be absent can be told from zero.
func TestOptionalScalarsArePointers(t *testing.T) {
	t.Parallel()
	plain := []string{
		"ErrorResponse.error", "ErrorResponse.detail", "ErrorResponse.instance", // an absent text and an empty one say the same
		"DescribeTableIndexStatsRequest.index_name", "DropTableIndexRequest.index_name", // the path always has it
		"CountTableRowsResponse.count", // is the whole answer
	}
	for _, typ := range structs() {
		for _, f := range leaves(typ) {
			name := schemaName(typ) + "." + wireName(f)
			scalar := !slices.Contains([]reflect.Kind{reflect.Slice, reflect.Map, reflect.Interface}, f.Type.Kind())
			required := f.Tag.Get("required") == "true"
			pointer := f.Type.Kind() == reflect.Pointer
			if scalar && required == pointer && !slices.Contains(plain, name) {
				t.Errorf("%s: required is %t and pointer is %t, want one of them", name, required, pointer)
			}
		}
	}
}

func loadFacts(t *testing.T) facts {
	t.Helper()
	data, err := os.ReadFile("testdata/operations.json")
	if err != nil {
		t.Fatal(err)
	}
	var f facts
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Operations) != 54 {
		t.Fatalf("testdata/operations.json has %d operations, want 54", len(f.Operations))
	}
	return f
}

// queryOf gives the types of the parameters that the table lists, as the request struct has them. Maps travel as text.
func queryOf(t *testing.T, op api.Operation) map[string]string {
	t.Helper()
	types := map[string]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(op.Request)) {
		if name := f.Tag.Get("query"); name != "" {
			types[name] = typeOf(f.Type)
		}
	}
	got := map[string]string{}
	for _, name := range op.Query {
		switch typ := types[name]; typ {
		case "":
			t.Errorf("%s: %T has no field for the query parameter %s", op.Name, op.Request, name)
		case "{string}":
			got[name] = "string"
		case "[string]":
			got[name] = typ + "*" // the one list in a query, on, is required
		default:
			got[name] = typ
		}
	}
	return got
}

func bodyOf(op api.Operation) string {
	switch op.Body {
	case api.NoBody:
		return "none"
	case api.ArrowBody:
		return "stream"
	case api.OptionalJSONBody:
		return reflect.TypeOf(op.Request).Name() + "?"
	}
	if _, bare := op.Request.(api.UpdateTableSchemaMetadataRequest); bare {
		return "{string}"
	}
	return reflect.TypeOf(op.Request).Name()
}

func returnsOf(op api.Operation) string {
	switch op.Returns {
	case api.ReturnsNothing:
		return "none"
	case api.ReturnsArrow:
		return "file"
	}
	switch op.Response.(type) {
	case api.UpdateTableSchemaMetadataResponse:
		return "{string}"
	case api.CountTableRowsResponse:
		return "integer"
	case api.ExplainTableQueryPlanResponse, api.AnalyzeTableQueryPlanResponse:
		return "string"
	}
	return reflect.TypeOf(op.Response).Name()
}

// structs returns every struct that an operation carries, at any depth, and Error.
func structs() []reflect.Type {
	seen := map[reflect.Type]bool{}
	visit(reflect.TypeFor[api.Error](), seen)
	for _, op := range api.Operations() {
		visit(reflect.TypeOf(op.Request), seen)
		visit(reflect.TypeOf(op.Response), seen)
	}
	return slices.Collect(maps.Keys(seen))
}

func visit(typ reflect.Type, seen map[reflect.Type]bool) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		visit(typ.Elem(), seen)
	case reflect.Struct:
		if seen[typ] || typ == reflect.TypeFor[time.Time]() {
			return
		}
		seen[typ] = true
		for _, f := range leaves(typ) {
			visit(f.Type, seen)
		}
	}
}

// leaves are the fields of a struct with those of embedded structs in place of these.
func leaves(typ reflect.Type) []reflect.StructField {
	var fields []reflect.StructField
	for _, f := range reflect.VisibleFields(typ) {
		if !f.Anonymous {
			fields = append(fields, f)
		}
	}
	return fields
}

// fieldsOf gives a struct's fields by wire name, each with its type and * when required. A field that travels nowhere is left
// out, but for the Arrow file of a query, which the specification has as data.
func fieldsOf(typ reflect.Type) map[string]string {
	fields := map[string]string{}
	for _, f := range leaves(typ) {
		name := wireName(f)
		if name == "" {
			continue
		}
		fields[name] = typeOf(f.Type)
		if f.Tag.Get("required") == "true" {
			fields[name] += "*"
		}
	}
	return fields
}

func wireName(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
		return name
	}
	if name := f.Tag.Get("query"); name != "" {
		return name
	}
	if name := f.Tag.Get("path"); name != "" {
		return name
	}
	if f.Name == "Context" || (f.Name == "Data" && f.Type.Kind() == reflect.Interface && f.Type.NumMethod() == 2) {
		return strings.ToLower(f.Name)
	}
	return ""
}

// typeOf writes a Go type in the notation of the facts.
func typeOf(typ reflect.Type) string {
	switch typ {
	case reflect.TypeFor[time.Time]():
		return "time"
	case reflect.TypeFor[json.RawMessage]():
		return "object"
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return typeOf(typ.Elem())
	case reflect.Slice:
		return "[" + typeOf(typ.Elem()) + "]"
	case reflect.Map:
		return "{" + typeOf(typ.Elem()) + "}"
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int64, reflect.Int:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Interface:
		return "binary"
	}
	return schemaName(typ)
}
