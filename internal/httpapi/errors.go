package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
)

// Status returns the HTTP status of an error code (specification, Errors; client contract, fact 26).
func Status(code api.Code) int {
	switch code {
	case api.CodeUnsupported:
		return http.StatusNotAcceptable
	case api.CodeNamespaceNotFound, api.CodeTableNotFound, api.CodeTableIndexNotFound, api.CodeTableTagNotFound, api.CodeTransactionNotFound,
		api.CodeTableVersionNotFound, api.CodeTableColumnNotFound, api.CodeTableBranchNotFound:
		return http.StatusNotFound
	case api.CodeNamespaceAlreadyExists, api.CodeNamespaceNotEmpty, api.CodeTableAlreadyExists, api.CodeTableIndexAlreadyExists,
		api.CodeTableTagAlreadyExists, api.CodeConcurrentModification, api.CodeInvalidTableState, api.CodeTableBranchAlreadyExists:
		return http.StatusConflict
	case api.CodeInvalidInput, api.CodeTableSchemaValidationError:
		return http.StatusBadRequest
	case api.CodePermissionDenied:
		return http.StatusForbidden
	case api.CodeUnauthenticated:
		return http.StatusUnauthorized
	case api.CodeServiceUnavailable:
		return http.StatusServiceUnavailable
	case api.CodeThrottling:
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}

// edgeError is a failure that has a status of its own, because it is the protocol's and not an operation's: an unknown route, a
// wrong method, a body that is too large.
type edgeError struct {
	shown  *api.Error
	status int
	allow  string // for the Allow header
}

func (e *edgeError) Error() string { return e.shown.Error() }
func (e *edgeError) Unwrap() error { return e.shown }

// edge makes an edgeError of code InvalidInput.
func edge(status int, format string, args ...any) *edgeError {
	return &edgeError{shown: api.Errorf(api.CodeInvalidInput, format, args...), status: status}
}

// failure turns any error into what is sent: its body and its status. Causes that nobody foresaw are code 18 and are told only to
// the log, under the id of the request.
func failure(err error, requestID string) (api.Error, int, string) {
	var e *api.Error
	var special *edgeError
	var input *lance.InvalidError
	switch {
	case errors.As(err, &special):
		e = special.shown
	case errors.As(err, &e):
	case errors.As(err, &input):
		e = api.Errorf(api.CodeInvalidInput, "%v", input)
	case errors.Is(err, context.Canceled):
		e = api.Errorf(api.CodeServiceUnavailable, "the request was given up before it was done")
	case errors.Is(err, context.DeadlineExceeded):
		e = api.Errorf(api.CodeInternal, "the request took too long, and its outcome is not known")
	default:
		e = api.Errorf(api.CodeInternal, "internal error; the server's log tells more under request %s", requestID)
	}
	body := *e
	body.Instance = requestID
	if special != nil {
		return body, special.status, special.allow
	}
	return body, Status(e.Code), ""
}

// writeError sends an error as the flat JSON object that every client expects, whatever layer it comes from (client contract,
// fact 23).
func writeError(w http.ResponseWriter, err error, requestID string) {
	body, status, allow := failure(err, requestID)
	if allow != "" {
		w.Header().Set("Allow", allow)
	}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfterSeconds))
	}
	text, err := marshal(body)
	if err != nil { // cannot happen: the struct holds only text and numbers
		text = []byte(`{"error":"internal error","code":18}`)
	}
	writeJSON(w, status, text)
}

// retryAfterSeconds is how long clients are asked to wait after 429 and 503.
const retryAfterSeconds = 1

// marshal writes JSON as people read it: "<" stays "<".
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", api.JSONType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone; there is nobody to tell
}
