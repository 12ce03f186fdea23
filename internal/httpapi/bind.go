package httpapi

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
)

// binder decodes the requests of one operation.
type binder struct {
	op       api.Operation
	request  reflect.Type
	required *shape // what a JSON body must hold
	query    []queryField
	limits   Limits
	bodies   *bodyBytes
}

// queryField is a field of a request struct that travels in the query.
type queryField struct {
	name  string
	index []int
}

func newBinder(op api.Operation, limits Limits, bodies *bodyBytes) *binder {
	t := reflect.TypeOf(op.Request)
	b := &binder{op: op, request: t, limits: limits, bodies: bodies}
	for _, f := range reflect.VisibleFields(t) {
		if name := f.Tag.Get("query"); name != "" {
			b.query = append(b.query, queryField{name: name, index: f.Index})
		}
	}
	if op.Body == api.JSONBody || op.Body == api.OptionalJSONBody {
		b.required = shapeOf(t, map[reflect.Type]*shape{})
	}
	return b
}

// bind decodes a request: its body, then its query, then the ids of its path. The path wins over the body, and where both are given
// they must agree (specification, Identifiers). It returns the request struct and the body's bytes.
func (b *binder) bind(w http.ResponseWriter, r *http.Request, m match, delimiter string) (any, []byte, error) {
	request := reflect.New(b.request)
	var body []byte
	if b.op.Body == api.ArrowBody {
		request.Interface().(interface{ AsArrowStream() *api.ArrowStream }).AsArrowStream().Data = r.Body
	} else {
		arrived := b.limits.boundBody(w, r)
		var err error
		body, err = b.readBody(w, r)
		arrived()
		if err == nil && !bindArrowSchema(r, body, request) && !bindCloudView(r, body, request.Interface()) {
			err = b.bindBody(body, request)
		}
		if err != nil {
			return nil, body, err
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, body, api.Errorf(api.CodeInvalidInput, "the query is malformed: %v", err)
	}
	if err := b.bindQuery(query, request.Elem()); err != nil {
		return nil, body, err
	}
	if err := b.bindPath(m, delimiter, request); err != nil {
		return nil, body, err
	}
	return request.Interface(), body, nil
}

// bindBody decodes a JSON body. None at all, "null", and a missing or other Content-Type are taken as clients mean them (client
// contract, facts 6, 7 and 105); unknown fields are ignored.
func (b *binder) bindBody(body []byte, request reflect.Value) error {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || string(body) == "null" {
		body = []byte("{}")
	}
	if !utf8.Valid(body) {
		return api.Errorf(api.CodeInvalidInput, "the body is not valid UTF-8")
	}
	if b.required != nil {
		if err := b.required.check(body, ""); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(body, request.Interface()); err != nil {
		return bodyError(err)
	}
	return nil
}

// bodyError says what is wrong with a JSON body.
func bodyError(err error) error {
	var known *api.Error
	var mistyped *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &mistyped) && mistyped.Field != "":
		return api.Errorf(api.CodeInvalidInput, "field %q of the body holds a %s, and must hold %s", wireName(mistyped.Field), mistyped.Value, kindName(mistyped.Type))
	case errors.As(err, &mistyped):
		return api.Errorf(api.CodeInvalidInput, "the body is a JSON %s, and must be %s", mistyped.Value, kindName(mistyped.Type))
	case errors.As(err, &syntax):
		return api.Errorf(api.CodeInvalidInput, "the body is not JSON: %v at byte %d", syntax, syntax.Offset)
	}
	return api.Errorf(api.CodeInvalidInput, "the body does not fit the operation: %v", err)
}

// wireName takes out of a field's path what stands for an embedded struct: such a name begins with a capital letter, as no name on the wire does.
func wireName(path string) string {
	parts := slices.DeleteFunc(strings.Split(path, "."), func(part string) bool { return part != "" && part[0] >= 'A' && part[0] <= 'Z' })
	return strings.Join(parts, ".")
}

// kindName names a type as a person who writes JSON thinks of it.
func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindName(t.Elem())
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64, reflect.Uint32:
		return "an integer of 64 bits"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "an object"
}

// readBody reads a JSON body whole, up to the limit, decompressing gzip.
func (b *binder) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	var src io.Reader = http.MaxBytesReader(w, r.Body, b.limits.Body)
	count := &countedReader{bodies: b.bodies}
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip":
		unzipped, err := gzip.NewReader(src)
		if err != nil {
			return nil, b.bodyUnread(err)
		}
		src = unzipped
	default:
		return nil, edge(http.StatusUnsupportedMediaType, "Content-Encoding %q is not supported: send gzip, or the body as it is", encoding)
	}
	count.Reader = io.LimitReader(src, b.limits.Body+1)
	body, err := io.ReadAll(count)
	if err != nil {
		b.bodies.free(len(body))
	}
	if err == nil && int64(len(body)) > b.limits.Body {
		b.bodies.free(len(body))
		err = &http.MaxBytesError{Limit: b.limits.Body}
	}
	if err != nil {
		return nil, b.bodyUnread(err)
	}
	return body, nil
}

// bodyUnread says why a body could not be read.
func (b *binder) bodyUnread(err error) error {
	var tooLarge *http.MaxBytesError
	var corrupt flate.CorruptInputError
	var known *api.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &tooLarge):
		return edge(http.StatusRequestEntityTooLarge, "the body has more than %d bytes, the most that is allowed", b.limits.Body)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return edge(http.StatusRequestTimeout, "the body did not arrive within %s", b.limits.BodyTime)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return api.Errorf(api.CodeInvalidInput, "the body is not sound gzip, as its Content-Encoding says")
	}
	return api.Errorf(api.CodeInvalidInput, "the body ended before it was complete")
}

// bindQuery sets the fields that travel in the query. The first of repeated values counts, except for lists.
func (b *binder) bindQuery(query url.Values, request reflect.Value) error {
	for _, f := range b.query {
		values, given := query[f.name]
		if !given || len(values) == 0 {
			continue
		}
		if err := setQuery(request.FieldByIndex(f.index), values); err != nil {
			return api.Errorf(api.CodeInvalidInput, "query parameter %s: %v", f.name, err)
		}
	}
	return nil
}

func setQuery(field reflect.Value, values []string) error {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(values[0])
	case reflect.Bool:
		v, err := strconv.ParseBool(values[0])
		if err != nil {
			return fmt.Errorf("%q must be true or false", values[0])
		}
		field.SetBool(v)
	case reflect.Int64:
		v, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil {
			return fmt.Errorf("%q must be an integer", values[0])
		}
		field.SetInt(v)
	case reflect.Slice:
		field.Set(reflect.ValueOf(values))
	case reflect.Map:
		m := map[string]string{}
		if err := json.Unmarshal([]byte(values[0]), &m); err != nil {
			return errors.New("it must be a JSON object of strings") // not repeated: storage options may be secret
		}
		field.Set(reflect.ValueOf(m))
	default:
		return errors.New("it cannot be read")
	}
	return nil
}

// bindPath sets the id and the index from the path.
func (b *binder) bindPath(m match, delimiter string, request reflect.Value) error {
	target, ok := request.Interface().(interface{ AsTarget() *api.Target })
	if !ok {
		return nil
	}
	if !strings.Contains(b.op.Path, "{id}") {
		return nil
	}
	joined, err := lance.DecodeSegment(m.id)
	if err != nil {
		return invalid(err)
	}
	id, err := lance.ParseID(joined, delimiter)
	if err != nil {
		return invalid(err)
	}
	t := target.AsTarget()
	// Some clients send the whole joined id as one element (client contract, fact 111).
	if given := lance.JoinID(t.ID, delimiter); t.ID != nil && given != joined {
		return api.Errorf(api.CodeInvalidInput, "the body names %q and the path %q: they must be the same, or the body's id left out", given, joined)
	}
	t.ID = id
	if m.index == "" {
		return nil
	}
	return b.bindIndex(m, request.Elem())
}

func (b *binder) bindIndex(m match, request reflect.Value) error {
	name, err := lance.DecodeSegment(m.index)
	if err != nil {
		return invalid(err)
	}
	for _, f := range reflect.VisibleFields(b.request) {
		if f.Tag.Get("path") == "" {
			continue
		}
		field := request.FieldByIndex(f.Index)
		var given string
		switch {
		case field.Kind() == reflect.String:
			given = field.String()
		case !field.IsNil():
			given = field.Elem().String()
		}
		if given != "" && given != name {
			return api.Errorf(api.CodeInvalidInput, "the body names index %q and the path %q: they must be the same, or the body's left out", given, name)
		}
		return setQuery(field, []string{name})
	}
	return nil
}

// invalid makes an error of the words into one of the specification.
func invalid(err error) error { return api.Errorf(api.CodeInvalidInput, "%v", err) }
