package api

import (
	"errors"
	"fmt"
)

// Code is an error code of Lance Namespace. Clients classify errors by it and by nothing else (client contract, fact 23).
type Code int

// The codes (client contract, fact 25).
const (
	CodeUnsupported                Code = 0
	CodeNamespaceNotFound          Code = 1
	CodeNamespaceAlreadyExists     Code = 2
	CodeNamespaceNotEmpty          Code = 3
	CodeTableNotFound              Code = 4
	CodeTableAlreadyExists         Code = 5
	CodeTableIndexNotFound         Code = 6
	CodeTableIndexAlreadyExists    Code = 7
	CodeTableTagNotFound           Code = 8
	CodeTableTagAlreadyExists      Code = 9
	CodeTransactionNotFound        Code = 10
	CodeTableVersionNotFound       Code = 11
	CodeTableColumnNotFound        Code = 12
	CodeInvalidInput               Code = 13
	CodeConcurrentModification     Code = 14
	CodePermissionDenied           Code = 15
	CodeUnauthenticated            Code = 16
	CodeServiceUnavailable         Code = 17
	CodeInternal                   Code = 18
	CodeInvalidTableState          Code = 19
	CodeTableSchemaValidationError Code = 20
	CodeThrottling                 Code = 21
	CodeTableBranchNotFound        Code = 22
	CodeTableBranchAlreadyExists   Code = 23
)

// Codes returns all codes in order.
func Codes() []Code {
	codes := make([]Code, CodeTableBranchAlreadyExists+1)
	for i := range codes {
		codes[i] = Code(i)
	}
	return codes
}

// String returns the specification's name of the code, or Code(n) for a number that it does not know.
func (c Code) String() string {
	names := [...]string{
		"Unsupported", "NamespaceNotFound", "NamespaceAlreadyExists", "NamespaceNotEmpty", "TableNotFound", "TableAlreadyExists",
		"TableIndexNotFound", "TableIndexAlreadyExists", "TableTagNotFound", "TableTagAlreadyExists", "TransactionNotFound",
		"TableVersionNotFound", "TableColumnNotFound", "InvalidInput", "ConcurrentModification", "PermissionDenied", "Unauthenticated",
		"ServiceUnavailable", "Internal", "InvalidTableState", "TableSchemaValidationError", "Throttling", "TableBranchNotFound",
		"TableBranchAlreadyExists",
	}
	if c < 0 || int(c) >= len(names) {
		return fmt.Sprintf("Code(%d)", int(c))
	}
	return names[c]
}

// Error is a failure as it travels: the body of every answer that is not a success. Message says what was wrong with which
// input and what would be right; Detail is a longer text; Instance is the id of the request. Cause is the error behind it, for the
// log only: it is never sent.
type Error struct {
	Message  string            `json:"error,omitempty"`
	Code     Code              `json:"code" required:"true"`
	Detail   string            `json:"detail,omitempty"`
	Instance string            `json:"instance,omitempty"`
	Context  map[string]string `json:"context,omitempty"`
	Cause    error             `json:"-"`
}

// Errorf returns an Error with the code and the formatted message. A %w in the format makes its operand the Cause as well, and
// its text a part of the message; to keep the cause from the client, use Because.
func Errorf(code Code, format string, args ...any) *Error {
	formatted := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: formatted.Error(), Cause: errors.Unwrap(formatted)}
}

// Because returns a copy of e with the given cause, which is logged and not sent.
func (e *Error) Because(cause error) *Error {
	with := *e
	with.Cause = cause
	return &with
}

// Error returns the name of the code and the message.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code.String()
	}
	return e.Code.String() + ": " + e.Message
}

// Unwrap returns the cause, nil when there is none.
func (e *Error) Unwrap() error { return e.Cause }

// CodeOf returns the code of the first *Error in err's chain, and CodeInternal when there is none. It must not be asked about nil.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
