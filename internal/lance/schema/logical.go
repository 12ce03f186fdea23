package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lancerest/lancerest/api"
)

// arrowType is a type in JSON.
type arrowType struct {
	json api.JSONArrowDataType
	// lossy says that the name of the specification's form tells less than Lance's.
	lossy bool
}

// Logical types that are more than names.
const (
	logicalBlob = "blob"
	logicalJSON = "json"
)

// plain returns the specification's name of the types whose Lance name has no parameters, and "" for any other.
func plain(logical string) string {
	switch logical {
	case "null", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "binary", "large_binary":
		return logical
	case "halffloat":
		return "float16"
	case "float":
		return "float32"
	case "double":
		return "float64"
	case "string":
		return "utf8"
	case "large_string":
		return "large_utf8"
	case "date32:day":
		return "date32"
	case "date64:ms":
		return "date64"
	}
	return ""
}

// timed returns the specification's name of the types that have a unit, which it has no place for.
func timed(logical string) string {
	switch logical {
	case "time32:s", "time32:ms":
		return "time32"
	case "time64:us", "time64:ns":
		return "time64"
	case "duration:s", "duration:ms", "duration:us", "duration:ns":
		return "duration"
	}
	// The zone may hold colons: +08:00. "-" is none.
	if unit, zone, ok := strings.Cut(strings.TrimPrefix(logical, "timestamp:"), ":"); ok && zone != "" && strings.HasPrefix(logical, "timestamp:") {
		switch unit {
		case "s", "ms", "us", "ns":
			return "timestamp"
		}
	}
	return ""
}

// leaf returns the type of a field whose Lance name says all of it.
func (w writer) leaf(logical string, depth int) (arrowType, error) {
	if logical == logicalBlob || logical == logicalJSON { // the bytes alone: what they are stands in the field's metadata
		logical = "large_binary"
	}
	if name := plain(logical); name != "" {
		return w.named(name, logical), nil
	}
	if name := timed(logical); name != "" {
		t := w.named(name, logical)
		t.lossy = true
		return t, nil
	}
	parts := strings.Split(logical, ":")
	switch {
	case parts[0] == "fixed_size_binary" && len(parts) == 2:
		return sized("fixed_size_binary", parts[1])
	case parts[0] == "fixed_size_list" && len(parts) >= 3:
		return w.fixedSizeList(strings.Join(parts[1:len(parts)-1], ":"), parts[len(parts)-1], depth)
	case parts[0] == "decimal" && len(parts) == 4:
		return w.decimal(parts, logical)
	case parts[0] == "dict" && len(parts) == 4:
		return w.dictionary(parts, logical)
	}
	return arrowType{}, fmt.Errorf("its type %q is not known here", logical)
}

// named is a type that its name says all of, as far as the form can.
func (w writer) named(namespace, logical string) arrowType {
	if w.form == FormLance {
		namespace = logical
	}
	return arrowType{json: api.JSONArrowDataType{Type: namespace}}
}

// sized is a type with a length.
func sized(name, length string) (arrowType, error) {
	n, err := strconv.ParseInt(length, 10, 32)
	if err != nil || n < 0 {
		return arrowType{}, fmt.Errorf("its length %q is no number of 0 or more", length)
	}
	return arrowType{json: api.JSONArrowDataType{Type: name, Length: &n}}, nil
}

// structListSize returns the size of a list of structs of fixed size, whose item has a field of its own.
func structListSize(logical string) (int64, bool) {
	size, ok := strings.CutPrefix(logical, "fixed_size_list:struct:")
	n, err := strconv.ParseInt(size, 10, 32)
	return n, ok && err == nil && n >= 0
}

// fixedSizeList is a list whose item has no field of its own, like a vector. Lance's own type of 16-bit floats is an extension of two bytes.
func (w writer) fixedSizeList(inner, length string, depth int) (arrowType, error) {
	if depth > maxDepth {
		return arrowType{}, fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	}
	t, err := sized("fixed_size_list", length)
	if err != nil {
		return t, err
	}
	item := api.JSONArrowField{Name: "item", Nullable: true}
	var of arrowType
	if inner == bfloat16Extension {
		of, err = sized("fixed_size_binary", "2")
		item.Metadata = map[string]string{extensionName: bfloat16Extension, extensionMetadata: ""}
	} else {
		of, err = w.leaf(inner, depth+1)
	}
	item.Type, t.lossy = of.json, of.lossy
	t.json.Fields = []api.JSONArrowField{item}
	return t, err
}

// decimal writes precision and scale as precision*1000+scale in the specification's form.
func (w writer) decimal(parts []string, logical string) (arrowType, error) {
	precision, err := strconv.ParseUint(parts[2], 10, 8)
	scale, scaleErr := strconv.ParseInt(parts[3], 10, 8)
	if err != nil || scaleErr != nil || parts[1] != "128" && parts[1] != "256" {
		return arrowType{}, fmt.Errorf("its type %q is no decimal of 128 or 256 bits", logical)
	}
	t := w.named("decimal"+parts[1], logical)
	if w.form == FormNamespace {
		length := int64(precision)*1000 + scale
		t.json.Length = &length
	}
	return t, nil
}

// dictionary is written as its values in the specification's form.
func (w writer) dictionary(parts []string, logical string) (arrowType, error) {
	values, keys := plain(parts[1]), plain(parts[2])
	if values == "" || !strings.Contains(keys, "int") {
		return arrowType{}, fmt.Errorf("its type %q is no dictionary that is known here", logical)
	}
	t := w.named(values, logical)
	t.lossy = true
	return t, nil
}
