package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/lancerest/lancerest/api"
)

// shape is what a JSON value must hold: encoding/json does not tell an absent field from a zero one.
type shape struct {
	required []string
	fields   map[string]*shape // those that need a look inside
	element  *shape            // of a list
	strings  bool              // a map whose values are strings: null is none
}

// shapeOf returns the shape of a type, nil where nothing in it is required. seen ends the recursion of types that hold themselves.
func shapeOf(t reflect.Type, seen map[reflect.Type]*shape) *shape {
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem(), seen)
	case reflect.Slice:
		if element := shapeOf(t.Elem(), seen); element != nil {
			return &shape{element: element}
		}
		return nil
	case reflect.Map:
		if t.Elem().Kind() == reflect.String {
			return &shape{strings: true}
		}
		return nil
	case reflect.Struct:
	default:
		return nil
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil // it has a form of its own, and checks that
	}
	if s, ok := seen[t]; ok {
		return s
	}
	s := &shape{fields: map[string]*shape{}}
	seen[t] = s
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || f.Anonymous {
			continue
		}
		if f.Tag.Get("required") == "true" {
			s.required = append(s.required, name)
		}
		if inner := shapeOf(f.Type, seen); inner != nil {
			s.fields[name] = inner
		}
	}
	if len(s.required) == 0 && len(s.fields) == 0 {
		seen[t] = nil
		return nil
	}
	return s
}

// check reports the first required field that a JSON value lacks, or holds null for; at is where the value stands, "" for the whole
// body. What is not of the right kind is left to the decoder, which says so.
func (s *shape) check(value json.RawMessage, at string) error {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || string(value) == "null" {
		return nil
	}
	if s.element != nil {
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			return nil
		}
		for i, element := range list {
			if string(element) == "null" {
				return api.Errorf(api.CodeInvalidInput, "%s[%d] is null: leave it out, or give an object", at, i)
			}
			if err := s.element.check(element, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(value, &object) != nil {
		return nil
	}
	if s.strings {
		for name, text := range object {
			if string(text) == "null" {
				return api.Errorf(api.CodeInvalidInput, "%q is null, and must be a string", join(at, name))
			}
		}
		return nil
	}
	for _, name := range s.required {
		if there := object[name]; len(there) == 0 || string(there) == "null" {
			return api.Errorf(api.CodeInvalidInput, "the required field %q is missing", join(at, name))
		}
	}
	for name, inner := range s.fields {
		if err := inner.check(object[name], join(at, name)); err != nil {
			return err
		}
	}
	return nil
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}
