// Package schema writes the schema of a table, as its manifest has it, in the two JSON forms that clients read. Both show Arrow types; they
// differ in the names of types and in what those names can say:
//
//   - The namespace specification's names are those of Arrow: float32, utf8, fixed_size_list. Its data types have a name, a length and
//     children, so they cannot tell the unit of a time or a duration, the zone of a timestamp, or the keys of a dictionary. A field whose type
//     loses something so has its full Lance name in its metadata, under LogicalTypeKey.
//   - LanceDB's remote SDK knows Lance's own names: float, string, timestamp:us:UTC.
//
// What does not live here: reading manifests (package lance), and who gets which form.
package schema

import (
	"fmt"
	"maps"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
)

// Form names one of the two JSON forms.
type Form int

// The forms.
const (
	FormNamespace Form = iota // of the namespace specification
	FormLance                 // of LanceDB's remote SDK
)

// LogicalTypeKey is the key of a field's metadata that holds Lance's name of its type where the specification's names lose something.
const LogicalTypeKey = "lance:logical_type"

// Keys and values of the metadata of fields that mark extension types.
const (
	extensionName     = "ARROW:extension:name"
	extensionMetadata = "ARROW:extension:metadata"
	blobKey           = "lance-encoding:blob"
	bfloat16Extension = "lance.bfloat16"
	jsonExtension     = "lance.json"
)

// maxDepth bounds how deep types may be nested.
const maxDepth = 100

// JSON returns a schema in a form. The fields stand as in a manifest: parents before their children. The error says what cannot be told: a
// logical type that is not known here, a list without an item, a parent that does not stand before its child, types nested too deep.
func JSON(fields []lance.SchemaField, metadata map[string]string, form Form) (*api.JSONArrowSchema, error) {
	roots, err := tree(fields)
	if err != nil {
		return nil, err
	}
	w := writer{form: form}
	s := &api.JSONArrowSchema{Fields: []api.JSONArrowField{}, Metadata: maps.Clone(metadata)}
	for _, root := range roots {
		f, err := w.field(root, 1)
		if err != nil {
			return nil, err
		}
		s.Fields = append(s.Fields, f)
	}
	return s, nil
}

// node is a field with its children.
type node struct {
	*lance.SchemaField
	children []*node
}

// tree puts fields under their parents. Where two fields have one id, as old writers could make them, the first is the parent, as to
// the Lance library.
func tree(fields []lance.SchemaField) ([]*node, error) {
	nodes := make([]node, len(fields))
	byID := make(map[int32]*node, len(fields))
	var roots []*node
	for i := range fields {
		n := &nodes[i]
		n.SchemaField = &fields[i]
		if n.Parent == -1 {
			roots = append(roots, n)
		} else if parent := byID[n.Parent]; parent != nil {
			parent.children = append(parent.children, n)
		} else {
			return nil, fmt.Errorf("field %q belongs to field %d, which does not stand before it", n.Name, n.Parent)
		}
		if byID[n.ID] == nil {
			byID[n.ID] = n
		}
	}
	return roots, nil
}

// writer writes fields in one form.
type writer struct {
	form Form
}

func (w writer) field(n *node, depth int) (api.JSONArrowField, error) {
	if depth > maxDepth {
		return api.JSONArrowField{}, fmt.Errorf("field %q is nested deeper than %d levels", n.Name, maxDepth)
	}
	t, err := w.typeOf(n, depth)
	if err != nil {
		return api.JSONArrowField{}, fmt.Errorf("field %q: %w", n.Name, err)
	}
	return api.JSONArrowField{Name: n.Name, Nullable: n.Nullable, Type: t.json, Metadata: w.metadata(n, t)}, nil
}

// metadata returns a field's metadata with what marks its type, nil where there is none.
func (w writer) metadata(n *node, t arrowType) map[string]string {
	m := maps.Clone(n.Metadata)
	set := func(key, value string) {
		if m == nil {
			m = map[string]string{}
		}
		m[key] = value
	}
	if n.Extension != "" {
		set(extensionName, n.Extension)
	}
	if _, there := m[blobKey]; n.LogicalType == logicalBlob && !there {
		set(blobKey, "true")
	}
	if n.LogicalType == logicalJSON {
		set(extensionName, jsonExtension)
	}
	if t.lossy && w.form == FormNamespace {
		set(LogicalTypeKey, n.LogicalType)
	}
	return m
}

// typeOf returns the type of a field.
func (w writer) typeOf(n *node, depth int) (arrowType, error) {
	switch n.LogicalType {
	case "list", "list.struct":
		return w.nested("list", n, depth)
	case "large_list", "large_list.struct":
		return w.nested("large_list", n, depth)
	case "map":
		return w.nested("map", n, depth)
	case "struct":
		t := arrowType{json: api.JSONArrowDataType{Type: "struct", Fields: []api.JSONArrowField{}}}
		for _, child := range n.children {
			f, err := w.field(child, depth+1)
			if err != nil {
				return t, err
			}
			t.json.Fields = append(t.json.Fields, f)
		}
		return t, nil
	}
	if size, ok := structListSize(n.LogicalType); ok {
		t, err := w.nested("fixed_size_list", n, depth)
		t.json.Length = &size
		return t, err
	}
	return w.leaf(n.LogicalType, depth)
}

// nested is a type with one child, which has a field of its own.
func (w writer) nested(name string, n *node, depth int) (arrowType, error) {
	if len(n.children) == 0 {
		return arrowType{}, fmt.Errorf("a %s has no field for what is in it", name)
	}
	item, err := w.field(n.children[0], depth+1)
	return arrowType{json: api.JSONArrowDataType{Type: name, Fields: []api.JSONArrowField{item}}}, err
}
