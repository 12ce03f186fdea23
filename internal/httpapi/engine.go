package httpapi

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/auth"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/engine"
	"github.com/lancerest/lancerest/internal/lance"
)

// engineHeader carries Options.EngineToken.
const engineHeader = "X-Lancerest-Engine-Token"

// fromEngine reports whether a request is the engine's own, part of an operation that is under way.
func (h *Handler) fromEngine(r *http.Request) bool {
	given := r.Header.Get(engineHeader)
	return h.opts.EngineToken != "" && subtle.ConstantTimeCompare([]byte(given), []byte(h.opts.EngineToken)) == 1
}

// The headers by which the engine's requests say for whom a job works, and which job: it has no credentials of the caller's any more.
const (
	principalHeader = "X-Lancerest-Principal"
	jobHeader       = "X-Lancerest-Job"
)

// operationHeader names the operation of the engine's that a commit belongs to (engine.Commits).
const operationHeader = "X-Lancerest-Operation"

// noted performs a request. Where it is a commit of the engine's, the operation that it belongs to must be under way, and its outcome is noted.
func (h *Handler) noted(r *http.Request, request any, perform func() (any, error)) (any, error) {
	commit, ok := request.(*api.CreateTableVersionRequest)
	id := r.Header.Get(operationHeader)
	if !ok || id == "" || h.opts.Commits == nil || !h.fromEngine(r) {
		return perform()
	}
	leave, err := h.opts.Commits.Enter(id)
	if err != nil {
		return nil, err
	}
	err = errUnfinished // should it panic
	defer func() { leave(commit.Version, err) }()
	var response any
	response, err = perform()
	return response, err
}

var errUnfinished = errors.New("the commit was not finished")

// identify says who asks: the owner of the credentials, or for a job of the engine's the one who asked for that.
func (h *Handler) identify(ctx context.Context, r *http.Request, given auth.Credentials) (context.Context, auth.Principal, error) {
	if name := r.Header.Get(principalHeader); name != "" && h.fromEngine(r) {
		plain, err := url.QueryUnescape(name)
		if err != nil {
			return ctx, auth.Principal{}, api.Errorf(api.CodeInvalidInput, "the header %s is malformed: %v", principalHeader, err)
		}
		if job := r.Header.Get(jobHeader); job != "" {
			ctx = catalog.WithTask(ctx, lance.TransactionID(job))
		}
		return ctx, auth.Principal{Name: plain}, nil
	}
	principal, err := h.opts.Authenticator.Authenticate(ctx, given)
	return auth.WithCredentials(ctx, given), principal, err
}

// cloudVersionHeader says to LanceDB's remote SDK what a server can do. From cloudVersion on it sends several vectors in one query and
// full-text queries as trees; without the header it sends the mere words of those. From 0.4.0 on it would write in parts, by operations that the
// specification does not have (client contract, fact 90).
const (
	cloudVersionHeader = "Phalanx-Version"
	cloudVersion       = "0.3.0"
)

// greet tells LanceDB's remote SDK what there is.
func (h *Handler) greet(w http.ResponseWriter, d dialect) {
	if _, none := h.opts.Engine.(engine.None); d.cloud && !none {
		w.Header().Set(cloudVersionHeader, cloudVersion)
	}
}

// asCloud gives an error of the engine the status by which LanceDB's remote SDK knows it: it reads no codes. A table that exists already is
// 400 with these words in the text; 404 means that the table, or the index, is missing, so that nothing else may be 404; and 409 is sent again,
// which helps only after a conflict (client contract, facts 93 and 95).
func (r *row) asCloud(d dialect, err error) error {
	var e *api.Error
	if !d.cloud || !r.engine || !errors.As(err, &e) {
		return err
	}
	var done *engine.DoneError
	if errors.As(err, &done) {
		return &edgeError{shown: done.Shown, status: http.StatusBadRequest} // any that is not sent again
	}
	switch e.Code {
	case api.CodeTableAlreadyExists, api.CodeTableColumnNotFound, api.CodeTableVersionNotFound, api.CodeTableBranchNotFound, api.CodeTableIndexAlreadyExists,
		api.CodeInvalidTableState:
		return &edgeError{shown: e, status: http.StatusBadRequest}
	}
	return err
}

// notOffered makes a path that is no operation into one that is not offered, for LanceDB's remote SDK, which has calls beyond the specification and
// takes 404 for a missing table (client contract, trap 30).
func notOffered(r *http.Request, err error) error {
	var e *edgeError
	if !errors.As(err, &e) || e.status != http.StatusNotFound || !dialectOf(r).cloud {
		return err
	}
	return api.Errorf(api.CodeUnsupported, "this server does not offer what %q stands for: it is no operation of the Lance Namespace REST specification", r.URL.EscapedPath())
}

// bindArrowSchema takes a body that is an Arrow stream where the operation has JSON, if it may be one, and reports whether it was.
func bindArrowSchema(r *http.Request, body []byte, request reflect.Value) bool {
	columns, ok := request.Interface().(*api.AlterTableAddColumnsRequest)
	if !ok || r.Header.Get("Content-Type") != api.ArrowStreamType {
		return false
	}
	columns.ArrowSchema = body
	return true
}

// patience ends a context when nothing has come for a while.
type patience struct {
	limit time.Duration
	timer *time.Timer
}

type patienceKey struct{}

// withPatience returns a context that ends, by the cause context.DeadlineExceeded, when nothing has come for so long; see patience.
func withPatience(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &patience{limit: limit, timer: time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })}
	return context.WithValue(ctx, patienceKey{}, p), func() {
		p.timer.Stop()
		cancel(nil)
	}
}

// How much of an answer is passed on at a time: little at first, which is all of most answers.
const (
	rowBufferFirst = 4 << 10
	rowBuffer      = 128 << 10
)

// sendRows writes rows as they come, for as long as they keep coming and the caller takes them. Once that has begun an error can only be shown by
// breaking off.
func sendRows(ctx context.Context, w http.ResponseWriter, rows *api.QueryTableResponse, a *answer) error {
	defer rows.Data.Close()
	w.Header().Set("X-Request-Id", a.request)
	w.Header().Set("Content-Type", api.ArrowFileType)
	w.WriteHeader(http.StatusOK)
	a.status, a.sent = http.StatusOK, true
	p := ctx.Value(patienceKey{}).(*patience)
	control := http.NewResponseController(w)
	buffer := make([]byte, rowBufferFirst)
	for {
		n, err := rows.Data.Read(buffer)
		p.timer.Reset(p.limit)
		_ = control.SetWriteDeadline(time.Now().Add(p.limit))
		if _, gone := w.Write(buffer[:n]); gone != nil {
			err = gone
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			a.broken = true
			return fmt.Errorf("send rows: %w", err)
		}
		if n == rowBufferFirst {
			buffer = make([]byte, rowBuffer)
		}
	}
}
