package api_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
)

func TestCodes(t *testing.T) {
	t.Parallel()
	want := []string{ // by number, as clients know them
		0: "Unsupported", 1: "NamespaceNotFound", 2: "NamespaceAlreadyExists", 3: "NamespaceNotEmpty", 4: "TableNotFound",
		5: "TableAlreadyExists", 6: "TableIndexNotFound", 7: "TableIndexAlreadyExists", 8: "TableTagNotFound", 9: "TableTagAlreadyExists",
		10: "TransactionNotFound", 11: "TableVersionNotFound", 12: "TableColumnNotFound", 13: "InvalidInput", 14: "ConcurrentModification",
		15: "PermissionDenied", 16: "Unauthenticated", 17: "ServiceUnavailable", 18: "Internal", 19: "InvalidTableState",
		20: "TableSchemaValidationError", 21: "Throttling", 22: "TableBranchNotFound", 23: "TableBranchAlreadyExists",
	}
	var got []string
	for _, code := range api.Codes() {
		got = append(got, code.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("codes (-want +got):\n%s", diff)
	}
	for code, name := range map[api.Code]string{24: "Code(24)", -1: "Code(-1)"} {
		if code.String() != name {
			t.Errorf("String of code %d is %q, want %q", int(code), code, name)
		}
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	plain := api.Errorf(api.CodeTableNotFound, "table %q does not exist", "a$b")
	hidden := plain.Because(io.ErrUnexpectedEOF)
	shown := api.Errorf(api.CodeInvalidInput, "read body: %w", io.ErrUnexpectedEOF)
	for _, test := range []struct {
		err  error
		text string
		code api.Code
		eof  bool
	}{
		{plain, `TableNotFound: table "a$b" does not exist`, api.CodeTableNotFound, false},
		{hidden, `TableNotFound: table "a$b" does not exist`, api.CodeTableNotFound, true},
		{shown, "InvalidInput: read body: unexpected EOF", api.CodeInvalidInput, true},
		{fmt.Errorf("describe: %w", hidden), `describe: TableNotFound: table "a$b" does not exist`, api.CodeTableNotFound, true},
		{&api.Error{Code: api.CodeThrottling}, "Throttling", api.CodeThrottling, false},
		{io.EOF, "EOF", api.CodeInternal, false},
	} {
		if got := test.err.Error(); got != test.text {
			t.Errorf("text is %q, want %q", got, test.text)
		}
		if got := api.CodeOf(test.err); got != test.code {
			t.Errorf("CodeOf(%v) is %v, want %v", test.err, got, test.code)
		}
		if got := errors.Is(test.err, io.ErrUnexpectedEOF); got != test.eof {
			t.Errorf("errors.Is(%v, unexpected EOF) is %t, want %t", test.err, got, test.eof)
		}
	}
	if plain.Cause != nil {
		t.Errorf("Because changed the error that it was called on: cause is %v", plain.Cause)
	}
}

func TestOperationCodes(t *testing.T) {
	t.Parallel()
	common := []api.Code{
		api.CodeUnsupported, api.CodeInvalidInput, api.CodePermissionDenied, api.CodeUnauthenticated, api.CodeServiceUnavailable,
		api.CodeInternal, api.CodeThrottling,
	}
	raised := map[api.Code]bool{}
	for _, op := range api.Operations() {
		if !slices.IsSorted(op.Codes) || len(slices.Compact(slices.Clone(op.Codes))) != len(op.Codes) {
			t.Errorf("%s: codes %v are not ascending and unique", op.Name, op.Codes)
		}
		for _, code := range common {
			if !slices.Contains(op.Codes, code) {
				t.Errorf("%s: codes %v lack the common %v", op.Name, op.Codes, code)
			}
		}
		for _, code := range op.Codes {
			raised[code] = true
		}
	}
	if len(raised) != len(api.Codes()) {
		t.Errorf("the operations together give %d codes, want all %d", len(raised), len(api.Codes()))
	}
}
