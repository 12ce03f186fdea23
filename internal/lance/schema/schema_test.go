package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/schema"
)

// typeOf returns the type of a column, and its metadata, as JSON.
func typeOf(t *testing.T, form schema.Form, fields ...lance.SchemaField) (kind string, metadata map[string]string) {
	t.Helper()
	s, err := schema.JSON(fields, nil, form)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s.Fields[0].Type)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), s.Fields[0].Metadata
}

// TestTypes writes every type that Lance has in both forms. The namespace form loses units, zones and keys, and says so.
func TestTypes(t *testing.T) {
	t.Parallel()
	same := func(name string) [2]string { s := `{"type":"` + name + `"}`; return [2]string{s, s} }
	two := func(a, b string) [2]string { return [2]string{`{"type":"` + a + `"}`, `{"type":"` + b + `"}`} }
	list := func(length int, item string) string {
		return fmt.Sprintf(`{"type":"fixed_size_list","length":%d,"fields":[{"name":"item","nullable":true,"type":%s}]}`, length, item)
	}
	bfloat := `{"type":"fixed_size_list","length":4,"fields":[{"name":"item","nullable":true,"type":{"type":"fixed_size_binary","length":2},` +
		`"metadata":{"ARROW:extension:metadata":"","ARROW:extension:name":"lance.bfloat16"}}]}`
	for logical, tc := range map[string]struct {
		want  [2]string // of the namespace, of Lance
		lossy bool
	}{
		"null": {same("null"), false}, "bool": {same("bool"), false},
		"int8": {same("int8"), false}, "int16": {same("int16"), false}, "int32": {same("int32"), false}, "int64": {same("int64"), false},
		"uint8": {same("uint8"), false}, "uint16": {same("uint16"), false}, "uint32": {same("uint32"), false}, "uint64": {same("uint64"), false},
		"halffloat": {two("float16", "halffloat"), false}, "float": {two("float32", "float"), false}, "double": {two("float64", "double"), false},
		"string": {two("utf8", "string"), false}, "large_string": {two("large_utf8", "large_string"), false},
		"binary": {same("binary"), false}, "large_binary": {same("large_binary"), false},
		"date32:day": {two("date32", "date32:day"), false}, "date64:ms": {two("date64", "date64:ms"), false},
		"time32:s": {two("time32", "time32:s"), true}, "time32:ms": {two("time32", "time32:ms"), true},
		"time64:us": {two("time64", "time64:us"), true}, "time64:ns": {two("time64", "time64:ns"), true},
		"duration:s": {two("duration", "duration:s"), true}, "duration:ns": {two("duration", "duration:ns"), true},
		"timestamp:us:-": {two("timestamp", "timestamp:us:-"), true}, "timestamp:ns:Europe/Berlin": {two("timestamp", "timestamp:ns:Europe/Berlin"), true},
		"timestamp:ms:+08:00":                       {two("timestamp", "timestamp:ms:+08:00"), true},
		"decimal:128:38:10":                         {[2]string{`{"type":"decimal128","length":38010}`, `{"type":"decimal:128:38:10"}`}, false},
		"decimal:256:76:-5":                         {[2]string{`{"type":"decimal256","length":75995}`, `{"type":"decimal:256:76:-5"}`}, false},
		"fixed_size_binary:16":                      {[2]string{`{"type":"fixed_size_binary","length":16}`, `{"type":"fixed_size_binary","length":16}`}, false},
		"dict:string:int8:false":                    {two("utf8", "dict:string:int8:false"), true},
		"fixed_size_list:halffloat:768":             {[2]string{list(768, `{"type":"float16"}`), list(768, `{"type":"halffloat"}`)}, false},
		"fixed_size_list:lance.bfloat16:4":          {[2]string{bfloat, bfloat}, false},
		"fixed_size_list:fixed_size_list:uint8:2:3": {[2]string{list(3, list(2, `{"type":"uint8"}`)), list(3, list(2, `{"type":"uint8"}`))}, false},
		"fixed_size_list:timestamp:us:UTC:2":        {[2]string{list(2, `{"type":"timestamp"}`), list(2, `{"type":"timestamp:us:UTC"}`)}, true},
	} {
		for form, want := range tc.want {
			got, metadata := typeOf(t, schema.Form(form), lance.SchemaField{Parent: -1, Name: "c", LogicalType: logical})
			var a, b any
			if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
				t.Fatalf("%s is no JSON: %s, %s", logical, got, want)
			}
			if diff := cmp.Diff(b, a); diff != "" {
				t.Errorf("%s in form %d (-want +got):\n%s", logical, form, diff)
			}
			wantMetadata := map[string]string(nil)
			if tc.lossy && schema.Form(form) == schema.FormNamespace {
				wantMetadata = map[string]string{schema.LogicalTypeKey: logical}
			}
			if diff := cmp.Diff(wantMetadata, metadata); diff != "" {
				t.Errorf("metadata of %s in form %d (-want +got):\n%s", logical, form, diff)
			}
		}
	}
}

// TestNested writes types whose children are fields of their own.
func TestNested(t *testing.T) {
	t.Parallel()
	field := func(id, parent int32, name, logical string) lance.SchemaField {
		return lance.SchemaField{ID: id, Parent: parent, Name: name, LogicalType: logical}
	}
	for want, fields := range map[string][]lance.SchemaField{
		`{"type":"list","fields":[{"name":"item","nullable":false,"type":{"type":"struct","fields":[{"name":"a","nullable":false,"type":{"type":"int8"}},{"name":"b","nullable":false,"type":{"type":"float32"}}]}}]}`: {
			field(0, -1, "c", "list.struct"), field(1, 0, "item", "struct"), field(2, 1, "a", "int8"), field(3, 1, "b", "float"),
		},
		`{"type":"large_list","fields":[{"name":"element","nullable":false,"type":{"type":"utf8"}}]}`: {field(0, -1, "c", "large_list"), field(5, 0, "element", "string")},
		`{"type":"map","fields":[{"name":"entries","nullable":false,"type":{"type":"struct","fields":[{"name":"key","nullable":false,"type":{"type":"utf8"}}]}}]}`: {
			field(0, -1, "c", "map"), field(1, 0, "entries", "struct"), field(2, 1, "key", "string"),
		},
		`{"type":"fixed_size_list","length":2,"fields":[{"name":"item","nullable":false,"type":{"type":"struct"}}]}`: {
			field(0, -1, "c", "fixed_size_list:struct:2"), field(1, 0, "item", "struct"),
		},
		`{"type":"struct"}`: {field(0, -1, "c", "struct")},
	} {
		if got, _ := typeOf(t, schema.FormNamespace, fields...); got != want && sorted(got) != sorted(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// sorted writes JSON with the members of its objects in order.
func sorted(text string) string {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return err.Error()
	}
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// TestMetadata keeps what fields and the schema say, and marks what Lance marks by the type alone.
func TestMetadata(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		field lance.SchemaField
		want  map[string]string
	}{
		{lance.SchemaField{LogicalType: "int8"}, nil},
		{lance.SchemaField{LogicalType: "int8", Metadata: map[string]string{"a": "b"}}, map[string]string{"a": "b"}},
		{lance.SchemaField{LogicalType: "binary", Extension: "geo"}, map[string]string{"ARROW:extension:name": "geo"}},
		{lance.SchemaField{LogicalType: "blob"}, map[string]string{"lance-encoding:blob": "true"}},
		{lance.SchemaField{LogicalType: "blob", Metadata: map[string]string{"lance-encoding:blob": "1"}}, map[string]string{"lance-encoding:blob": "1"}},
		{lance.SchemaField{LogicalType: "json"}, map[string]string{"ARROW:extension:name": "lance.json"}},
	} {
		tc.field.Parent = -1
		for _, form := range []schema.Form{schema.FormNamespace, schema.FormLance} {
			if _, got := typeOf(t, form, tc.field); !cmp.Equal(got, tc.want) {
				t.Errorf("%+v: metadata %v, want %v", tc.field, got, tc.want)
			}
		}
	}
	given := map[string]string{"k": "v"}
	s, err := schema.JSON(nil, given, schema.FormNamespace)
	if err != nil || s.Fields == nil || !cmp.Equal(s.Metadata, given) {
		t.Errorf("a schema without fields: %+v, %v", s, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	column := func(logical string) []lance.SchemaField {
		return []lance.SchemaField{{Parent: -1, Name: "c", LogicalType: logical}}
	}
	deep := []lance.SchemaField{{Parent: -1, Name: "c", LogicalType: "struct"}}
	for i := range int32(200) {
		deep = append(deep, lance.SchemaField{ID: i + 1, Parent: i, Name: "c", LogicalType: "struct"})
	}
	for name, tc := range map[string]struct {
		fields []lance.SchemaField
		want   string
	}{
		"a type of the future":       {column("tensor"), `type "tensor" is not known`},
		"no type":                    {column(""), "is not known"},
		"a unit of the future":       {column("timestamp:ps:-"), "is not known"},
		"a timestamp without a zone": {column("timestamp:us"), "is not known"},
		"a list without an item":     {column("list"), "has no field"},
		"a length that is none":      {column("fixed_size_list:float:x"), `length "x"`},
		"a negative length":          {column("fixed_size_binary:-1"), `length "-1"`},
		"a decimal of 64 bits":       {column("decimal:64:9:2"), "128 or 256"},
		"a scale out of range":       {column("decimal:128:9:200"), "128 or 256"},
		"a dictionary of lists":      {column("dict:list:int8:false"), "no dictionary"},
		"an item of the future":      {column("fixed_size_list:tensor:2"), `"tensor"`},
		"an orphan":                  {[]lance.SchemaField{{ID: 1, Parent: 7, Name: "c"}}, "field 7"},
		"a cycle":                    {[]lance.SchemaField{{ID: 1, Parent: 1, Name: "c"}}, "field 1"},
		"too deep":                   {deep, "deeper than"},
		"too deep in one name":       {column(strings.Repeat("fixed_size_list:", 200) + "uint8" + strings.Repeat(":1", 200)), "deeper than"},
	} {
		if _, err := schema.JSON(tc.fields, nil, schema.FormNamespace); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, tc.want)
		}
	}
}

// FuzzLogicalType holds that no name of a type makes the writer panic.
func FuzzLogicalType(f *testing.F) {
	for _, seed := range []string{"int8", "fixed_size_list:float:3", "timestamp:us:UTC", "decimal:128:1:1", "dict:string:int8:false", "fixed_size_list:struct:2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, logical string) {
		for _, form := range []schema.Form{schema.FormNamespace, schema.FormLance} {
			s, err := schema.JSON([]lance.SchemaField{{Parent: -1, LogicalType: logical}}, nil, form)
			if (err == nil) == (s == nil) {
				t.Errorf("schema %v with error %v", s, err)
			}
		}
	})
}
