package client

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"

	"github.com/lancerest/lancerest/api"
)

// taggedField is a field that travels outside the body.
type taggedField struct {
	name  string
	value reflect.Value
}

// taggedFields returns the fields of the request, a pointer to a struct, that have the tag; an absent field is left out.
func taggedFields(request any, tag string) []taggedField {
	var fields []taggedField
	value := reflect.ValueOf(request).Elem()
	for _, f := range reflect.VisibleFields(value.Type()) {
		name := f.Tag.Get(tag)
		if name == "" {
			continue
		}
		field := reflect.Indirect(value.FieldByIndex(f.Index))
		if field.IsValid() {
			fields = append(fields, taggedField{name, field})
		}
	}
	return fields
}

// queryOf returns the operation's parameters. A list repeats its parameter, a map is one JSON object, and an empty one of either
// is not sent (client contract, fact 9).
func queryOf(op api.Operation, request any) (url.Values, error) {
	query := url.Values{}
	for _, field := range taggedFields(request, "query") {
		if !slices.Contains(op.Query, field.name) {
			continue
		}
		switch field.value.Kind() {
		case reflect.Slice:
			query[field.name] = field.value.Interface().([]string)
		case reflect.Map:
			if field.value.Len() == 0 {
				continue
			}
			data, err := json.Marshal(field.value.Interface())
			if err != nil {
				return nil, fmt.Errorf("write the parameter %s: %w", field.name, err)
			}
			query.Set(field.name, string(data))
		default:
			query.Set(field.name, fmt.Sprint(field.value.Interface()))
		}
	}
	return query, nil
}
