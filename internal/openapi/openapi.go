// Package openapi describes the server to people and tools: it builds the OpenAPI 3.1 document from the table of operations and
// the Go structs of package api, so that the document cannot say anything else than the code does. It serves nothing and knows no
// rule; docs/decisions/0003-openapi.md says why the document is built this way.
package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/swaggest/jsonschema-go"
	"github.com/swaggest/openapi-go/openapi31"

	"github.com/lancerest/lancerest/api"
)

// definitions is where the schemas are in the document.
const definitions = "#/components/schemas/"

// Document returns the document as JSON. The version is that of the server; status gives the HTTP status of an error code, which the
// HTTP layer owns. It fails only when a struct of package api cannot be described.
func Document(version string, status func(api.Code) int) ([]byte, error) {
	b := &builder{reflector: openapi31.NewReflector(), status: status}
	b.reflector.DefaultOptions = append(b.reflector.DefaultOptions,
		jsonschema.InterceptDefName(schemaName), jsonschema.InterceptNullability(removeNull), jsonschema.InterceptSchema(addFormat),
		jsonschema.DefinitionsPrefix(definitions), jsonschema.CollectDefinitions(b.define), jsonschema.RootRef,
	)
	spec := b.reflector.SpecEns()
	spec.Info = openapi31.Info{Title: "Lancerest", Version: version}
	spec.Info.WithDescription("A catalog server for Lance tables. It serves Lance Namespace REST 0.13.0.")
	declareSecurity(spec)
	for _, op := range api.Operations() {
		described, err := b.operation(op)
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", op.Name, err)
		}
		if err := spec.AddOperation(op.Method, op.Path, described); err != nil {
			return nil, fmt.Errorf("describe %s: %w", op.Name, err)
		}
	}
	if b.err != nil {
		return nil, b.err
	}
	return json.Marshal(spec)
}

// declareSecurity states the two ways to say who calls, either of which is optional: a server may be open.
func declareSecurity(spec *openapi31.Spec) {
	key := openapi31.SecurityScheme{APIKey: &openapi31.SecuritySchemeAPIKey{Name: "x-api-key", In: openapi31.SecuritySchemeAPIKeyInHeader}}
	bearer := openapi31.SecurityScheme{HTTPBearer: &openapi31.SecuritySchemeHTTPBearer{Scheme: "bearer"}}
	spec.ComponentsEns().WithSecuritySchemesItem("apiKey", openapi31.SecuritySchemeOrReference{SecurityScheme: &key})
	spec.ComponentsEns().WithSecuritySchemesItem("bearer", openapi31.SecuritySchemeOrReference{SecurityScheme: &bearer})
	spec.Security = []map[string][]string{{}, {"apiKey": {}}, {"bearer": {}}}
}

// schemaName is the specification's name of a struct: Go capitalises abbreviations, and the error is plain Error in package api.
func schemaName(t reflect.Type, _ string) string {
	if t == reflect.TypeFor[api.Error]() {
		return "ErrorResponse"
	}
	return strings.NewReplacer("JSON", "Json", "UDTF", "Udtf").Replace(t.Name())
}

// removeNull undoes the reflector's guess that a list or map which is always written may be null: package api rules that out.
func removeNull(params jsonschema.InterceptNullabilityParams) {
	if params.NullAdded {
		params.Schema.RemoveType(jsonschema.Null)
	}
}

// addFormat gives a pointer to a number the format that the reflector gives the number itself.
func addFormat(params jsonschema.InterceptSchemaParams) (stop bool, err error) {
	switch params.Value.Type() {
	case reflect.TypeFor[*int64]():
		params.Schema.WithFormat("int64")
	case reflect.TypeFor[*float32]():
		params.Schema.WithFormat("float")
	case reflect.TypeFor[*float64]():
		params.Schema.WithFormat("double")
	}
	return false, nil
}

// builder collects the parts of one document.
type builder struct {
	reflector *openapi31.Reflector
	status    func(api.Code) int
	err       error // the first failure inside a callback of the reflector, which cannot return it
}

// define puts a named schema into the document.
func (b *builder) define(name string, schema jsonschema.Schema) {
	described, err := schema.ToSchemaOrBool().ToSimpleMap()
	if err != nil {
		b.err = fmt.Errorf("describe the schema %s: %w", name, err)
		return
	}
	b.reflector.SpecEns().ComponentsEns().WithSchemasItem(name, described)
}

// schema describes a value's type: a named struct by reference, anything else in place.
func (b *builder) schema(value any) (map[string]any, error) {
	schema, err := b.reflector.Reflect(value)
	if err != nil {
		return nil, err
	}
	return schema.ToSchemaOrBool().ToSimpleMap()
}

func (b *builder) operation(op api.Operation) (openapi31.Operation, error) {
	var described openapi31.Operation
	described.WithID(op.Name).WithTags(strings.Split(op.Path, "/")[2])
	if err := b.parameters(&described, op); err != nil {
		return described, err
	}
	if err := b.requestBody(&described, op); err != nil {
		return described, err
	}
	if err := b.success(&described, op); err != nil {
		return described, err
	}
	return described, b.failures(&described, op)
}

// parameters describes path and query, delimiter included, which is no field of the structs.
func (b *builder) parameters(described *openapi31.Operation, op api.Operation) error {
	text := map[string]any{"type": "string"}
	for _, segment := range strings.Split(op.Path, "/") {
		if name, isParameter := strings.CutPrefix(segment, "{"); isParameter {
			p := openapi31.Parameter{Name: strings.TrimSuffix(name, "}"), In: openapi31.ParameterInPath, Schema: text}
			addParameter(described, *p.WithRequired(true))
		}
	}
	delimiter := openapi31.Parameter{Name: "delimiter", In: openapi31.ParameterInQuery, Schema: map[string]any{"type": "string", "default": "$"}}
	addParameter(described, *delimiter.WithDescription("What joins the names of an id; alone it is the root namespace."))
	for _, field := range reflect.VisibleFields(reflect.TypeOf(op.Request)) {
		name := field.Tag.Get("query")
		if name == "" {
			continue
		}
		schema, err := b.schema(reflect.Zero(bareType(field.Type)).Interface())
		if err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
		p := openapi31.Parameter{Name: name, In: openapi31.ParameterInQuery, Schema: schema}
		switch field.Type.Kind() {
		case reflect.Map: // is one JSON object in the query
			p.Schema = nil
			p.WithContentItem(api.JSONType, openapi31.MediaType{Schema: schema})
		case reflect.Slice: // repeats, and at least once
			p.WithStyle(openapi31.ParameterStyleForm).WithExplode(true).WithRequired(true)
		}
		addParameter(described, p)
	}
	return nil
}

func addParameter(described *openapi31.Operation, p openapi31.Parameter) {
	described.Parameters = append(described.Parameters, openapi31.ParameterOrReference{Parameter: &p})
}

func bareType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func (b *builder) requestBody(described *openapi31.Operation, op api.Operation) error {
	var body openapi31.RequestBody
	switch op.Body {
	case api.NoBody:
		return nil
	case api.ArrowBody:
		body.WithContentItem(api.ArrowStreamType, openapi31.MediaType{})
	default:
		schema, err := b.schema(onTheWire(op.Request))
		if err != nil {
			return fmt.Errorf("request: %w", err)
		}
		body.WithContentItem(api.JSONType, openapi31.MediaType{Schema: schema})
	}
	body.WithRequired(op.Body != api.OptionalJSONBody)
	described.WithRequestBody(openapi31.RequestBodyOrReference{RequestBody: &body})
	return nil
}

func (b *builder) success(described *openapi31.Operation, op api.Operation) error {
	response := openapi31.Response{Description: "Success."}
	switch op.Returns {
	case api.ReturnsArrow:
		response.WithContentItem(api.ArrowFileType, openapi31.MediaType{})
	case api.ReturnsJSON:
		schema, err := b.schema(onTheWire(op.Response))
		if err != nil {
			return fmt.Errorf("response: %w", err)
		}
		response.WithContentItem(api.JSONType, openapi31.MediaType{Schema: schema})
	}
	addResponse(described, op.Success, response)
	return nil
}

// failures describes the error statuses, each with the codes that it may have.
func (b *builder) failures(described *openapi31.Operation, op api.Operation) error {
	codes := map[int][]string{}
	for _, code := range op.Codes {
		codes[b.status(code)] = append(codes[b.status(code)], fmt.Sprintf("%d %s", int(code), code))
	}
	schema, err := b.schema(api.Error{})
	if err != nil {
		return fmt.Errorf("errors: %w", err)
	}
	for status, names := range codes {
		response := openapi31.Response{Description: "Error code " + strings.Join(names, ", ") + "."}
		response.WithContentItem(api.JSONType, openapi31.MediaType{Schema: schema})
		addResponse(described, status, response)
	}
	return nil
}

func addResponse(described *openapi31.Operation, status int, response openapi31.Response) {
	described.ResponsesEns().WithMapOfResponseOrReferenceValuesItem(
		strconv.Itoa(status), openapi31.ResponseOrReference{Response: &response},
	)
}

// onTheWire returns a value of the form that travels, which is another than the struct for the bare bodies.
func onTheWire(value any) any {
	switch value.(type) {
	case api.UpdateTableSchemaMetadataRequest, api.UpdateTableSchemaMetadataResponse:
		return map[string]string{}
	case api.CountTableRowsResponse:
		return int64(0)
	case api.ExplainTableQueryPlanResponse, api.AnalyzeTableQueryPlanResponse:
		return ""
	}
	return value
}
