// Package enginetest holds the suite that every engine passes.
//
// What does not live here: what single operations do with data. The clients' tests compare that with the library.
package enginetest

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/engine"
)

// rows is an Arrow stream with compressed buffers: id int64 (1, 2, 3), vector of 4 float32, text ("one", "two", "three").
//
//go:embed rows.arrows
var rows []byte

// empty is a stream with the schema of rows and without rows.
//
//go:embed empty.arrows
var empty []byte

// other is a stream with another schema: other int64.
//
//go:embed other.arrows
var other []byte

// suite is an engine under test, on a catalog that has no tables and no namespaces.
type suite struct {
	engine.Engine
}

// Run runs the suite. newEngine returns an engine on an empty catalog of its own.
func Run(t *testing.T, newEngine func(t *testing.T) engine.Engine) {
	for name, test := range map[string]func(suite, *testing.T){
		"an operation that it does not offer": suite.unknown,
		"create and read":                     suite.createAndRead,
		"create what exists":                  suite.createExisting,
		"create without rows":                 suite.createEmpty,
		"a stream that breaks":                suite.brokenStream,
		"what is not there":                   suite.missing,
		"what is wrong":                       suite.wrong,
		"a caller who is gone":                suite.gone,
		"many at once":                        suite.together,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(suite{newEngine(t)}, t)
		})
	}
}

// do performs an operation and returns its answer, failing the test on an error.
func do[Response any](t *testing.T, s suite, operation string, request any) *Response {
	t.Helper()
	got, err := s.Do(t.Context(), operation, request)
	if err != nil {
		t.Fatalf("%s: %v", operation, err)
	}
	response, ok := got.(*Response)
	if !ok {
		t.Fatalf("%s answers %T", operation, got)
	}
	return response
}

// refused checks that an operation fails with a code and with words that tell why, and without those that only the library's developers can use.
func refused(t *testing.T, s suite, code api.Code, operation string, request any, words ...string) {
	t.Helper()
	got, err := s.Do(t.Context(), operation, request)
	if err == nil {
		t.Errorf("%s: %v, want code %d", operation, got, code)
		return
	}
	if api.CodeOf(err) != code {
		t.Errorf("%s: code %d (%v: %v), want %d", operation, api.CodeOf(err), err, errors.Unwrap(err), code)
	}
	if bytes.Contains([]byte(err.Error()), []byte(".rs:")) {
		t.Errorf("%s: %v names files of the library", operation, err)
	}
	for _, w := range words {
		if !bytes.Contains([]byte(err.Error()), []byte(w)) {
			t.Errorf("%s: %v does not say %q", operation, err, w)
		}
	}
}

func stream(data []byte) api.ArrowStream { return api.ArrowStream{Data: bytes.NewReader(data)} }

func create(data []byte) *api.CreateTableRequest {
	return &api.CreateTableRequest{Target: api.At("t"), ArrowStream: stream(data)}
}

func insert(data []byte) *api.InsertIntoTableRequest {
	return &api.InsertIntoTableRequest{Target: api.At("t"), ArrowStream: stream(data)}
}

func ptr[T any](v T) *T { return &v }

// count returns how many rows match a condition.
func count(t *testing.T, s suite, where string) int64 {
	t.Helper()
	return do[api.CountTableRowsResponse](t, s, "CountTableRows", &api.CountTableRowsRequest{Target: api.At("t"), Predicate: &where}).Count
}

func (s suite) unknown(t *testing.T) {
	refused(t, s, api.CodeUnsupported, "NoSuchOperation", &api.DropTableRequest{Target: api.At("t")}, "NoSuchOperation")
}

func (s suite) createAndRead(t *testing.T) {
	made := do[api.CreateTableResponse](t, s, "CreateTable", create(rows))
	if *made.Version != 1 || *made.Location == "" || made.Properties == nil {
		t.Errorf("created %+v", made)
	}
	added := do[api.InsertIntoTableResponse](t, s, "InsertIntoTable", insert(rows))
	if *added.Version != 2 || *added.NumInsertedRows != 3 {
		t.Errorf("inserted %d rows as version %d", *added.NumInsertedRows, *added.Version)
	}
	if n := count(t, s, "id > 1"); n != 4 {
		t.Errorf("%d rows match, want 4", n)
	}
	first := do[api.CountTableRowsResponse](t, s, "CountTableRows", &api.CountTableRowsRequest{Target: api.At("t"), Predicate: ptr("id > 1"), Version: ptr(int64(1))})
	if first.Count != 2 {
		t.Errorf("%d rows of version 1 match, want 2", first.Count)
	}
	found := do[api.QueryTableResponse](t, s, "QueryTable", &api.QueryTableRequest{
		Target: api.At("t"), Vector: api.QueryVector{SingleVector: []float32{0, 0, 0, 0}}, K: 9223372036854775807, Filter: ptr("id = 2"), Prefilter: ptr(true),
	})
	data, err := io.ReadAll(found.Data)
	if err = errors.Join(err, found.Data.Close(), found.Data.Close()); err != nil {
		t.Fatal(err)
	}
	const magic = "ARROW1"
	if !bytes.HasPrefix(data, []byte(magic)) || !bytes.HasSuffix(data, []byte(magic)) {
		t.Errorf("the answer is no Arrow file: %d bytes, %q", len(data), data[:min(len(data), 20)])
	}
	for _, word := range []string{"_distance", "vector", "two"} {
		if !bytes.Contains(data, []byte(word)) {
			t.Errorf("the answer does not hold %q", word)
		}
	}
}

func (s suite) createExisting(t *testing.T) {
	do[api.CreateTableResponse](t, s, "CreateTable", create(rows))
	refused(t, s, api.CodeTableAlreadyExists, "CreateTable", create(rows), `"t" already exists`)
	for mode, want := range map[string]int64{"ExistOk": 1, "exist_ok": 1, "OVERWRITE": 2} {
		if mode == "OVERWRITE" {
			continue // last, as it changes the table
		}
		req := create(rows)
		req.Mode = &mode
		if got := do[api.CreateTableResponse](t, s, "CreateTable", req); *got.Version != want {
			t.Errorf("mode %s: version %d, want %d", mode, *got.Version, want)
		}
		if left, _ := io.ReadAll(req.Data); len(left) > 0 {
			t.Errorf("mode %s: %d bytes were not read", mode, len(left))
		}
	}
	req := create(other)
	req.Mode = ptr("Overwrite")
	if got := do[api.CreateTableResponse](t, s, "CreateTable", req); *got.Version != 2 {
		t.Errorf("overwritten as version %d", *got.Version)
	}
	if n := count(t, s, "other = 1"); n != 1 {
		t.Errorf("%d rows after overwriting", n)
	}
	req = create(rows)
	req.Mode = ptr("replace")
	refused(t, s, api.CodeInvalidInput, "CreateTable", req, "replace", "Overwrite")
}

func (s suite) createEmpty(t *testing.T) {
	do[api.CreateTableResponse](t, s, "CreateTable", create(empty))
	if n := count(t, s, "id > 0"); n != 0 {
		t.Errorf("%d rows", n)
	}
	do[api.InsertIntoTableResponse](t, s, "InsertIntoTable", insert(rows))
	if n := count(t, s, "id > 0"); n != 3 {
		t.Errorf("%d rows after an insert", n)
	}
}

// errHungUp is what a body gives whose sender is gone.
var errHungUp = errors.New("the other side hung up")

// cutOff returns the beginning of a stream, and then an error.
func cutOff(data []byte) api.ArrowStream {
	return api.ArrowStream{Data: io.MultiReader(bytes.NewReader(data), failing{})}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errHungUp }

func (s suite) brokenStream(t *testing.T) {
	for _, n := range []int{0, 10, len(rows) / 2, len(rows)} {
		req := create(nil)
		req.ArrowStream = cutOff(rows[:n])
		refused(t, s, api.CodeInvalidInput, "CreateTable", req)
		refused(t, s, api.CodeTableNotFound, "InsertIntoTable", insert(rows))
	}
	refused(t, s, api.CodeInvalidInput, "CreateTable", create([]byte("this is no Arrow")))
	refused(t, s, api.CodeTableNotFound, "InsertIntoTable", insert(rows))
	do[api.CreateTableResponse](t, s, "CreateTable", create(rows))
	for _, n := range []int{0, 10, len(rows) / 2, len(rows)} {
		req := insert(nil)
		req.ArrowStream = cutOff(rows[:n])
		refused(t, s, api.CodeInvalidInput, "InsertIntoTable", req)
	}
	refused(t, s, api.CodeInvalidInput, "InsertIntoTable", insert(rows[:len(rows)/2])) // which ends, but in the middle of a batch
	if got := do[api.InsertIntoTableResponse](t, s, "InsertIntoTable", insert(rows)); *got.Version != 2 {
		t.Errorf("version %d: a broken stream made one", *got.Version)
	}
}

func (s suite) missing(t *testing.T) {
	refused(t, s, api.CodeTableNotFound, "DeleteFromTable", &api.DeleteFromTableRequest{Target: api.At("t"), Predicate: "id = 1"})
	in := create(rows)
	in.ID = []string{"nowhere", "t"}
	refused(t, s, api.CodeNamespaceNotFound, "CreateTable", in)
	do[api.CreateTableResponse](t, s, "CreateTable", create(rows))
	refused(t, s, api.CodeTableVersionNotFound, "RestoreTable", &api.RestoreTableRequest{Target: api.At("t"), Version: 7}, "7")
	refused(t, s, api.CodeTableBranchNotFound, "UpdateTable", &api.UpdateTableRequest{Target: api.At("t"), Branch: ptr("b"), Updates: [][]string{{"id", "1"}}})
	refused(t, s, api.CodeTableIndexNotFound, "DropTableIndex", &api.DropTableIndexRequest{Target: api.At("t"), IndexName: "i"}, `'i'`)
	refused(t, s, api.CodeTableColumnNotFound, "AlterTableDropColumns", &api.AlterTableDropColumnsRequest{Target: api.At("t"), Columns: []string{"none"}}, "none", "vector")
}

func (s suite) wrong(t *testing.T) {
	do[api.CreateTableResponse](t, s, "CreateTable", create(rows))
	for _, c := range []struct {
		operation string
		request   any
		words     []string
	}{
		{"CountTableRows", &api.CountTableRowsRequest{Target: api.At("t"), Predicate: ptr("none = 1")}, []string{"none"}},
		{"CountTableRows", &api.CountTableRowsRequest{Target: api.At("t"), Predicate: ptr("id =")}, []string{"id ="}},
		{"DeleteFromTable", &api.DeleteFromTableRequest{Target: api.At("t"), Predicate: "  "}, []string{"predicate"}},
		{"DeleteFromTable", &api.DeleteFromTableRequest{Target: api.At("t"), Predicate: "none = 1"}, []string{"none"}},
		{"UpdateTable", &api.UpdateTableRequest{Target: api.At("t"), Updates: [][]string{{"id", "none + 1"}}}, []string{"none"}},
		{"UpdateTable", &api.UpdateTableRequest{Target: api.At("t"), Updates: [][]string{{"id"}}}, []string{"pair"}},
		{"UpdateTable", &api.UpdateTableRequest{Target: api.At("t")}, []string{"empty"}},
		{"QueryTable", &api.QueryTableRequest{Target: api.At("t"), K: 1, Vector: api.QueryVector{SingleVector: []float32{1}}}, []string{"1", "4"}},
		{"MergeInsertIntoTable", &api.MergeInsertIntoTableRequest{Target: api.At("t"), ArrowStream: stream(rows)}, []string{"on"}},
		{"CreateTableIndex", &api.CreateTableIndexRequest{Target: api.At("t"), Column: "id", IndexType: "TREE"}, []string{"TREE", "BTREE"}},
		{"CreateTableIndex", &api.CreateTableIndexRequest{Target: api.At("t"), Column: "id", IndexType: "IVF_PQ"}, []string{"id"}},
	} {
		refused(t, s, api.CodeInvalidInput, c.operation, c.request, c.words...)
	}
	refused(t, s, api.CodeTableSchemaValidationError, "InsertIntoTable", insert(other), "other")
	if n := count(t, s, "id > 0"); n != 3 {
		t.Errorf("%d rows afterwards", n)
	}
}

func (s suite) gone(t *testing.T) {
	do[api.CreateTableResponse](t, s, "CreateTable", create(rows))
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	if _, err := s.Do(ctx, "QueryTable", &api.QueryTableRequest{Target: api.At("t"), K: 1}); err == nil {
		t.Error("a query for nobody succeeds")
	}
	if n := count(t, s, "id > 0"); n != 3 {
		t.Errorf("%d rows for the next", n)
	}
}

func (s suite) together(t *testing.T) {
	do[api.CreateTableResponse](t, s, "CreateTable", create(empty))
	const writers = 6
	errs := make(chan error, writers)
	for range writers {
		go func() {
			_, err := s.Do(t.Context(), "InsertIntoTable", insert(rows))
			errs <- err
		}()
	}
	var all []string
	for range writers {
		if err := <-errs; err != nil {
			all = append(all, err.Error())
		}
	}
	if diff := cmp.Diff("", strings.Join(all, "\n")); diff != "" {
		t.Errorf("inserts (-want +got):\n%s", diff)
	}
	if n := count(t, s, "id > 0"); n != 3*writers {
		t.Errorf("%d rows, want %d", n, 3*writers)
	}
}
