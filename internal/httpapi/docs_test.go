package httpapi_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/httpapi"
)

// update writes the generated documents instead of comparing with them.
var update = flag.Bool("update", false, "write docs/operations.md and docs/errors.md anew")

// TestOperationsDocument holds docs/operations.md to the table of operations, and its third column to what the server does.
func TestOperationsDocument(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	var rows strings.Builder
	here := 0
	for _, op := range api.Operations() {
		e.send(t, op)
		where := "the engine"
		if e.engine == "" {
			here++
			where = "works"
		}
		fmt.Fprintf(&rows, "| %s | `%s %s` | %s | %s |\n", op.Name, op.Method, op.Path, where, ownCodes(op))
	}
	compare(t, "../../docs/operations.md", fmt.Sprintf(`# The operations

The %d operations of the Lance Namespace REST specification. %d work in the catalog itself. "The engine" marks those that read or
write table data: they need a server with workers ([engine.md](engine.md)); without one they answer 406 with code 0.
[errors.md](errors.md) tells what the codes mean. Beside those listed, any operation may answer the codes %s.

Written by `+"`go generate ./internal/httpapi`"+` from package api and from what the server answers; a test holds it to both.

| Operation | Request | Here | Error codes |
|---|---|---|---|
%s`, len(api.Operations()), here, numbers(common()), rows.String()))
}

// TestErrorsDocument holds docs/errors.md to the codes and their statuses.
func TestErrorsDocument(t *testing.T) {
	t.Parallel()
	var rows strings.Builder
	for i, code := range api.Codes() {
		fmt.Fprintf(&rows, "| %d | %s | %d | %s |\n", code, code, httpapi.Status(code), meanings()[i])
	}
	compare(t, "../../docs/errors.md", `# The error codes

Every answer that is no success is a JSON object:

    {"error": "what was wrong with which input, and what would be right", "code": 4, "instance": "the request's id"}

Clients of the namespace specification look at `+"`code`"+`, LanceDB's own SDK at the status. `+"`instance`"+` is the X-Request-Id of the
answer, and the server's log has the same. A path that is no operation is 404 with code 13, a method that the path does not have 405
with code 13, a body over the limit 413 with code 13.

Written by `+"`go generate ./internal/httpapi`"+`; a test holds it to the code.

| Code | Name | Status | Means |
|---|---|---|---|
`+rows.String())
}

// meanings says of each code, in order, when it is answered.
func meanings() []string {
	return []string{
		"The server does not offer the operation, or not with these parameters: it may need the engine, and there may be none.",
		"A namespace in the id does not exist.",
		"There is a namespace of that name.",
		"The namespace holds namespaces or tables, and Cascade was not asked for.",
		"The table does not exist.",
		"There is a table of that name.",
		"The table has no index of that name.",
		"There is an index of that name.",
		"The table has no tag of that name.",
		"There is a tag of that name.",
		"There is no transaction of that id.",
		"The table has no such version, or its manifest was removed by a cleanup.",
		"The table has no such column.",
		"The request is malformed; it would be wrong at any time.",
		"Another writer was first. The winning version can be read: read it, and try the next number.",
		"The caller is known and may not do this. (No rule says so yet.)",
		"The caller is not known. (Everybody is let in yet.)",
		"The server is shutting down or its state cannot be reached. Nothing was done; try again.",
		"A fault of the server, or an outcome that it does not know yet. The log tells more under the request's id.",
		"The table is not in a state that allows it.",
		"The data does not fit the table's schema.",
		"Too much at once. Nothing was done; try again after Retry-After.",
		"The table has no branch of that name.",
		"There is a branch of that name.",
	}
}

// common returns the codes that every operation may answer.
func common() []api.Code {
	return slices.DeleteFunc(api.Codes(), func(code api.Code) bool {
		return slices.ContainsFunc(api.Operations(), func(op api.Operation) bool { return !slices.Contains(op.Codes, code) })
	})
}

// ownCodes returns the codes of an operation that not all have.
func ownCodes(op api.Operation) string {
	shared := common()
	return numbers(slices.DeleteFunc(op.Codes, func(code api.Code) bool { return slices.Contains(shared, code) }))
}

func numbers(codes []api.Code) string {
	texts := make([]string, len(codes))
	for i, code := range codes {
		texts[i] = fmt.Sprint(int(code))
	}
	return strings.Join(texts, ", ")
}

// compare holds a document to its text, or writes it.
func compare(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what it would be now; `go generate ./...` writes it (-want +got):\n%s", path, diff)
	}
}
