package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/auth"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/engine"
	"github.com/lancerest/lancerest/internal/openapi"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/telemetry"
)

// Options say what a handler serves. Catalog is required.
type Options struct {
	Catalog       *catalog.Catalog
	Engine        engine.Engine      // default engine.None
	Authenticator auth.Authenticator // default auth.Open
	Logger        *slog.Logger       // default: nothing is logged
	// Version stands in the published OpenAPI document.
	Version string
	Metrics *telemetry.Metrics // default: nothing is counted, and there is no /metrics
	Traces  *telemetry.Traces  // default: no spans
	Limits  Limits
	// EngineToken is the secret by which the engine's own requests are known ("" for none): they are parts of operations that are under way,
	// so they take no place and are served while the server drains.
	EngineToken string
	// Commits is told what the engine's operations commit (default: nobody is).
	Commits *engine.Commits
	// JobKinds are the kinds of the engine's jobs, which are listed for LanceDB's SDKs.
	JobKinds []string
	// Databases says what the name of a database means that LanceDB's SDKs send (default DatabaseOne).
	Databases Databases
}

// Handler serves the operations and the few paths beside them: /healthz, /readyz and /openapi.json. Create it with New.
type Handler struct {
	opts     Options
	router   *router
	binders  map[string]*binder
	document []byte
	metrics  http.Handler // nil where nothing is counted
	places   *places
	keys     keyLocks
	bodies   *bodyBytes
	draining atomic.Bool
	inFlight sync.WaitGroup
	entering sync.RWMutex // held to enter, so that Wait sees all who did
}

// New returns a handler. It fails if a limit makes no sense, or if the OpenAPI document cannot be made from the operations.
func New(opts Options) (*Handler, error) {
	if opts.Engine == nil {
		opts.Engine = engine.None{}
	}
	if opts.Authenticator == nil {
		opts.Authenticator = auth.Open{Key: opts.Catalog.Secret()}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Limits.setDefaults()
	if err := opts.Limits.check(); err != nil {
		return nil, err
	}
	document, err := openapi.Document(opts.Version, Status)
	if err != nil {
		return nil, fmt.Errorf("make the OpenAPI document: %w", err)
	}
	h := &Handler{opts: opts, binders: map[string]*binder{}, document: document, places: newPlaces(opts.Limits), bodies: &bodyBytes{most: opts.Limits.Bodies}}
	if opts.Metrics != nil {
		h.metrics = promhttp.HandlerFor(opts.Metrics.Registry(), promhttp.HandlerOpts{})
		opts.Metrics.Watch(telemetry.Gauge{Name: "lancerest_operations_running", Help: "Operations that are at work now.", Value: h.places.running})
		opts.Metrics.Watch(telemetry.Gauge{Name: "lancerest_operations_queued", Help: "Operations that wait for their turn.", Value: h.places.queued})
	}
	table := append(rows(opts.Catalog, opts.Engine), beside(opts.Catalog, opts.JobKinds)...)
	for _, row := range table {
		h.binders[row.op.Name] = newBinder(row.op, opts.Limits, h.bodies)
	}
	h.router = newRouter(table)
	return h, nil
}

// Drain makes every request from now on fail with 503 code 17, before it has any effect; those under way go on (C11).
func (h *Handler) Drain() {
	h.entering.Lock()
	h.draining.Store(true)
	h.entering.Unlock()
}

// Wait returns when no operation is under way any more, or when ctx ends, with its error. Call Drain first.
func (h *Handler) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		h.inFlight.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for requests under way: %w", ctx.Err())
	}
}

// enter counts an operation as under way until its answer is written, unless the handler is draining, and takes a place for it.
func (h *Handler) enter(ctx context.Context, r *row, a *answer) (func(), error) {
	if a.inside {
		return func() {}, nil
	}
	h.entering.RLock()
	if a.entered = !h.draining.Load(); a.entered {
		h.inFlight.Add(1)
	}
	h.entering.RUnlock()
	if !a.entered {
		return nil, shuttingDown()
	}
	if r.engine {
		// It has turns of its own. Were it to keep a place meanwhile, the requests that it makes itself could find none.
		return func() {}, nil
	}
	return h.places.take(ctx)
}

func shuttingDown() error {
	return api.Errorf(api.CodeServiceUnavailable, "the server is shutting down and takes no new requests; nothing was done; try again")
}

// answer is what a request came to.
type answer struct {
	request   string // the id of the request
	entered   bool   // it counts as under way
	inside    bool   // it is the engine's, and part of another that counts
	sent      bool   // it is written already
	broken    bool   // it was written in part
	arrived   time.Time
	status    int
	body      []byte
	private   bool // it carries what is the caller's alone
	operation string
	target    []string
	span      *telemetry.Span // nil where there are no traces
	err       error
}

// ServeHTTP answers one request and logs one line about it, which never holds a secret: no body, no query, no header.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.metrics != nil && r.URL.Path == "/metrics" {
		h.metrics.ServeHTTP(w, r)
		return
	}
	a := answer{request: requestID(r), arrived: time.Now()}
	h.serve(w, r, &a)
	w.Header().Set("X-Request-Id", a.request)
	if a.private {
		w.Header().Set("Cache-Control", "no-store, private")
	}
	if a.sent {
		// Rows, which were written as they came.
	} else if a.err != nil {
		_, a.status, _ = failure(a.err, a.request)
		h.opts.Limits.leaveBody(w, r, a.status)
		writeError(w, a.err, a.request)
	} else if a.body == nil {
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(a.status)
	} else {
		writeJSON(w, a.status, a.body)
	}
	if a.entered {
		h.inFlight.Done() // only now: a server that stops waits for answers to be written
	}
	took := time.Since(a.arrived)
	h.count(a, took)
	h.log(r.Context(), a, took)
	a.span.End(telemetry.Outcome{Request: a.request, Target: a.target, Status: a.status, Code: a.code()})
	if a.broken {
		panic(http.ErrAbortHandler) // so that the client sees that the answer is not whole
	}
}

// code is the error code that was answered, -1 for success.
func (a answer) code() int {
	if a.err == nil {
		return -1
	}
	return int(api.CodeOf(a.err))
}

// count adds an operation to the metrics.
func (h *Handler) count(a answer, took time.Duration) {
	if h.opts.Metrics != nil && a.operation != "" {
		h.opts.Metrics.Observe(a.operation, a.code(), took)
	}
}

// requestID takes over the id that a client sends, if it is a sane one, so that both sides' logs agree.
func requestID(r *http.Request) string {
	given := r.Header.Get("x-request-id")
	if given == "" || len(given) > 128 {
		return uuid.NewString()
	}
	for _, c := range []byte(given) {
		if c <= ' ' || c > '~' {
			return uuid.NewString()
		}
	}
	return given
}

func (h *Handler) log(ctx context.Context, a answer, took time.Duration) {
	level := slog.LevelInfo
	if a.status >= http.StatusInternalServerError && !errors.Is(a.err, context.Canceled) {
		level = slog.LevelError // a caller who hangs up is none
	}
	if !h.opts.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request", a.request), slog.String("operation", a.operation), slog.Any("id", a.target),
		slog.Int("status", a.status), slog.Duration("took", took),
	}
	if a.err != nil {
		attrs = append(attrs, slog.Int("code", a.code()), slog.String("error", describeCause(a.err)))
	}
	if a.span != nil {
		attrs = append(attrs, slog.String("trace", a.span.TraceID()))
	}
	h.opts.Logger.LogAttrs(ctx, level, "request", attrs...)
}

// describeCause is an error's text with the causes that its receiver is not told.
func describeCause(err error) string {
	text := err.Error()
	var e *api.Error
	if errors.As(err, &e) && e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// serve performs a request and turns a panic into an error of code 18.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, a *answer) {
	defer func() {
		if p := recover(); p != nil {
			a.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if h.serveBeside(r, a) {
		return
	}
	a.inside = h.fromEngine(r)
	if h.draining.Load() && !a.inside {
		a.err = shuttingDown()
		return
	}
	m, err := h.router.find(r.Method, r.URL.EscapedPath())
	if err != nil {
		a.err = notOffered(r, err)
		return
	}
	a.operation = m.row.op.Name
	if h.opts.Traces != nil {
		var ctx context.Context
		ctx, a.span = h.opts.Traces.Start(r.Context(), a.operation, a.arrived, r.Header.Get)
		r = r.WithContext(ctx)
	}
	a.err = h.perform(w, r, m, a)
}

// perform binds, calls and encodes one operation.
func (h *Handler) perform(w http.ResponseWriter, r *http.Request, m match, a *answer) error {
	d := dialectOf(r)
	h.greet(w, d)
	ctx, cancel := h.opts.Limits.begin(r, m.row.op)
	defer cancel()
	ctx, expire, err := withTimeoutAsked(ctx, r, m.row.op)
	defer expire()
	if err != nil {
		return err
	}
	ctx = store.WithOperation(ctx, m.row.op.Name)
	request, body, err := h.binders[m.row.op.Name].bind(w, r, m, d.delimiter)
	defer h.bodies.free(len(body))
	if err != nil {
		return err
	}
	// A place is taken only now: callers who send slowly, or nothing, must not keep others from theirs (case J7).
	leave, err := h.enter(ctx, m.row, a)
	if err != nil {
		return err
	}
	err = func() error {
		defer leave() // also when it panics
		return h.call(ctx, r, called{match: m, dialect: d, request: request, body: body, writer: w, database: h.database(r)}, a)
	}()
	if err != nil && m.row.op.Body == api.ArrowBody {
		h.opts.Limits.drain(w, r)
	}
	if err == nil && m.row.engine {
		tellVersion(w, m.row.op, a)
	}
	return err
}

// called is a request that has been decoded.
type called struct {
	match
	dialect dialect
	request any
	body    []byte
	writer  http.ResponseWriter
	// database is where what it names lies, "" for the root.
	database string
}

// call performs an operation and encodes its answer.
func (h *Handler) call(ctx context.Context, r *http.Request, q called, a *answer) error {
	request, m, d := q.request, q.match, q.dialect
	if t, ok := request.(interface{ AsTarget() *api.Target }); ok {
		a.target = t.AsTarget().ID
	}
	caller := request.(interface{ AsCaller() *api.Caller }).AsCaller()
	given := credentials(r.Header, caller.Identity)
	ctx, principal, err := h.identify(ctx, r, given)
	if err != nil {
		return err
	}
	caller.Identity, caller.Context = nil, contextOf(r.Header, caller.Context)
	ctx = withDialect(auth.WithPrincipal(ctx, principal), d)
	if err := h.enterDatabase(ctx, q); err != nil {
		return err
	}
	if t, ok := request.(interface{ AsTarget() *api.Target }); ok {
		a.target = t.AsTarget().ID
	}
	perform := func(ctx context.Context) (any, error) {
		response, err := h.noted(r, request, func() (any, error) { return m.row.call(ctx, request) })
		return response, m.row.asCloud(d, err)
	}
	encoded := func(response any) (int, []byte, error) {
		if m.row.op.Returns == api.ReturnsNothing {
			return m.row.op.Success, nil, nil
		}
		status, response := asCloudAnswer(d, m.row.op.Success, response)
		text, err := encode(response)
		return status, text, err
	}
	// finish makes the answer of a response.
	finish := func(ctx context.Context, response any) (err error) {
		if m.row.equip != nil {
			m.row.equip(ctx, request, response)
		}
		a.private = private(response)
		a.status, a.body, err = encoded(response)
		return err
	}
	k, err := keyedRequest(r, q, principal)
	if err != nil {
		return err
	}
	if k != nil {
		return h.performKeyed(ctx, k, a, performer{row: m.row, perform: perform, encode: encoded, finish: finish})
	}
	response, err := perform(ctx)
	if err != nil {
		return err
	}
	if rows, ok := response.(*api.QueryTableResponse); ok {
		return sendRows(ctx, q.writer, rows, a)
	}
	return finish(ctx, response)
}

// private reports whether a response carries what is the caller's alone, such as keys.
func private(response any) bool {
	switch r := response.(type) {
	case *api.DescribeTableResponse:
		return r.StorageOptions != nil
	case *api.DeclareTableResponse:
		return r.StorageOptions != nil
	}
	return false
}

// encode writes an answer as JSON.
func encode(response any) ([]byte, error) {
	body, err := marshal(response)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", reflect.TypeOf(response), err)
	}
	return body, nil
}

// serveBeside answers the paths that are no operations, and reports whether this was one.
func (h *Handler) serveBeside(r *http.Request, a *answer) bool {
	switch r.URL.Path {
	case "/healthz":
		a.operation, a.status, a.body = "healthz", http.StatusOK, []byte(`{"status":"live"}`)
	case "/readyz":
		a.operation = "readyz"
		a.status, a.body = h.ready(r.Context())
	case "/openapi.json":
		a.operation, a.status, a.body = "openapi", http.StatusOK, h.document
	default:
		return false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		e := edge(http.StatusMethodNotAllowed, "method %s is not allowed here: use GET", r.Method)
		e.allow = "GET, HEAD"
		a.err = e
	}
	return true
}

// readyMax bounds how long the state may take to answer before the server counts as not ready.
const readyMax = 5 * time.Second

// ready says whether requests can be served, naming the component that keeps them from it (case C11).
func (h *Handler) ready(ctx context.Context) (int, []byte) {
	ctx, cancel := context.WithTimeout(ctx, readyMax)
	defer cancel()
	state, status := "ok", http.StatusOK
	if err := h.opts.Catalog.Ping(ctx); err != nil {
		h.opts.Logger.LogAttrs(ctx, slog.LevelError, "not ready", slog.String("component", "state"), slog.String("error", err.Error()))
		state, status = "unreachable, on a full disk, or of an unexpected schema", http.StatusServiceUnavailable
	}
	storage := "ok"
	if err := h.opts.Catalog.PingStorage(ctx); err != nil {
		h.opts.Logger.LogAttrs(ctx, slog.LevelError, "not ready", slog.String("component", "storage"), slog.String("error", err.Error()))
		storage, status = "a root is not there", http.StatusServiceUnavailable
	}
	serving := "ok"
	if h.draining.Load() {
		serving, status = "shutting down", http.StatusServiceUnavailable
	}
	body, _ := marshal(map[string]any{"ready": status == http.StatusOK, "components": map[string]string{"state": state, "storage": storage, "serving": serving}})
	return status, body
}
