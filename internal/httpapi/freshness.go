package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/lancerest/lancerest/api"
)

// What LanceDB's remote SDK says and reads about versions and time (client contract, facts 89 and 90). It sends x-lancedb-min-version,
// x-lancedb-min-read-version and x-lancedb-min-timestamp so that servers with caches do not answer from an older version than it has seen. This one
// reads which version is the latest from the state for every request, which is never older, so that it does not need them. A minimum above what
// exists can only come from another table of that name, or from before a restored backup: the answer is then of the latest version, since no later
// one will ever come, and an error would be sent again in vain.

// versionHeader tells the version that a change has committed.
const versionHeader = "X-Lancedb-Version"

// timeoutHeader tells for how many milliseconds the caller waits for an answer.
const timeoutHeader = "X-Request-Timeout-Ms"

// tellVersion puts the version that an operation of the engine has committed into a header, if its answer names one.
func tellVersion(w http.ResponseWriter, op api.Operation, a *answer) {
	if !mutates(op.Name) || a.status != op.Success {
		return
	}
	var committed struct {
		Version int64 `json:"version"`
	}
	if json.Unmarshal(a.body, &committed) == nil && committed.Version > 0 {
		w.Header().Set(versionHeader, strconv.FormatInt(committed.Version, 10))
	}
}

// timeoutMost is the longest wait that is worth a clock.
const timeoutMost = 365 * 24 * time.Hour

// withTimeoutAsked ends what only reads when its caller does not wait for it any more; a change is never given up for that. The error, of code
// InvalidInput, says that the header is no number of milliseconds.
func withTimeoutAsked(ctx context.Context, r *http.Request, op api.Operation) (context.Context, context.CancelFunc, error) {
	given := r.Header.Get(timeoutHeader)
	if given == "" || mutates(op.Name) {
		return ctx, func() {}, nil
	}
	ms, err := strconv.ParseUint(given, 10, 63)
	if err != nil || ms == 0 {
		return ctx, func() {}, api.Errorf(api.CodeInvalidInput, "the header %s is %q: it must be a number of milliseconds above 0", timeoutHeader, given)
	}
	wait := timeoutMost
	if ms < uint64(timeoutMost/time.Millisecond) {
		wait = time.Duration(ms) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	return ctx, cancel, nil
}
