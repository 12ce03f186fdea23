package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/auth"
)

// headHeader says how many bytes of a request's body are its head; what follows is the Arrow stream.
const headHeader = "Lancerest-Head"

// head is what a worker is told of a request.
type head struct {
	Operation string         `json:"operation"`
	Catalog   reach          `json:"catalog"`
	Table     place          `json:"table"`
	Request   map[string]any `json:"request"`
}

// reach is how a worker reaches the catalog as its caller.
type reach struct {
	URI     string            `json:"uri"`
	Headers map[string]string `json:"headers,omitempty"`
}

// asked is what a worker is asked to do.
type asked struct {
	op      api.Operation
	request any
	extra   map[string]any // beside the request
	at      place
	id      string // by which its commits are known, "" where they are not followed
}

// ask has a worker perform an operation.
func (e *Engine) ask(ctx context.Context, op api.Operation, request any, at place) (any, error) {
	return e.askFor(ctx, asked{op: op, request: request, at: at})
}

func (e *Engine) askFor(ctx context.Context, a asked) (any, error) {
	op, request := a.op, a.request
	if e.opts.Commits != nil && followed(op.Name) {
		a.id = e.opts.Commits.Begin()
		defer e.opts.Commits.Finish(a.id)
	}
	text, err := e.head(ctx, a)
	if err != nil {
		return nil, err
	}
	var rows *rowStream
	if r, ok := request.(interface{ AsArrowStream() *api.ArrowStream }); ok {
		rows = newRowStream(r.AsArrowStream().Data)
		defer rows.cut()
	}
	e.need()
	leave, err := e.take(ctx)
	if err != nil {
		return nil, err
	}
	resp, done, err := e.send(ctx, op, text, rows)
	finish := func() { done(); leave() }
	if err != nil {
		finish()
		return e.lose(ctx, a, rows, err)
	}
	answered, err := answer(op, resp, finish)
	var cut *cutError
	if errors.As(err, &cut) {
		return e.lose(ctx, a, rows, cut.because)
	}
	return answered, err
}

// head encodes what a worker is told, as JSON.
func (e *Engine) head(ctx context.Context, a asked) ([]byte, error) {
	args, err := arguments(a.request)
	if err != nil {
		return nil, fmt.Errorf("encode %s for a worker: %w", a.op.Name, err)
	}
	maps.Copy(args, a.extra)
	headers := map[string]string{}
	if e.opts.Token != "" {
		headers[TokenHeader] = e.opts.Token
	}
	if a.id != "" {
		headers[OperationHeader] = a.id
	}
	given := auth.CredentialsFrom(ctx)
	if d, ok := auth.DelegateFrom(ctx); ok {
		given = auth.Credentials{}
		headers[PrincipalHeader], headers[JobHeader] = url.QueryEscape(d.Principal.Name), d.Job
	}
	if given.APIKey != "" {
		headers["x-api-key"] = given.APIKey
	}
	if given.Token != "" {
		headers["authorization"] = "Bearer " + given.Token
	}
	return json.Marshal(head{Operation: a.op.Name, Catalog: reach{URI: e.opts.URL, Headers: headers}, Table: a.at, Request: args})
}

// arguments returns a request's fields by their names, those too that travel in query and path, without who asks for what table.
func arguments(request any) (map[string]any, error) {
	args := map[string]any{}
	if m, ok := request.(*api.UpdateTableSchemaMetadataRequest); ok { // whose body is a map of its own
		args["metadata"] = m.Metadata
		return args, nil
	}
	if q, ok := request.(*api.QueryTableRequest); ok && len(q.Vector.SingleVector) > 0 {
		args["vector"] = map[string][]byte{"packed": pack(q.Vector.SingleVector)}
		rest := *q
		rest.Vector = api.QueryVector{}
		request = &rest
	}
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	var given map[string]json.RawMessage // as they are: k may be the largest int64
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, err
	}
	for name, value := range given {
		if _, has := args[name]; !has {
			args[name] = value
		}
	}
	v := reflect.ValueOf(request).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		name := f.Tag.Get("query")
		if name == "" {
			name = f.Tag.Get("path")
		}
		if field := v.FieldByIndex(f.Index); name != "" && !field.IsZero() {
			args[name] = field.Interface()
		}
	}
	if r, ok := request.(*api.AlterTableAddColumnsRequest); ok && r.ArrowSchema != nil {
		args["arrow_schema"] = r.ArrowSchema
	}
	for _, who := range []string{"id", "identity", "context"} {
		delete(args, who)
	}
	return args, nil
}

// pack writes a vector as its bytes: as text, which travels through JSON several times, it is most of what a query costs here.
func pack(vector []float32) []byte {
	packed := make([]byte, 0, 4*len(vector))
	for _, number := range vector {
		packed = binary.LittleEndian.AppendUint32(packed, math.Float32bits(number))
	}
	return packed
}

// tries is how many workers are asked where they cannot be reached, beside as many as there should be.
const tries = 3

// send posts a request to a worker. Where none accepts a connection the error is errNoWorker: nothing was done. The function that it returns, never nil, ends the request in the worker's account.
func (e *Engine) send(ctx context.Context, op api.Operation, text []byte, rows *rowStream) (*http.Response, func(), error) {
	for try := 1; ; try++ {
		m, err := e.pool.pick(ctx, e.opts.Patience)
		if err != nil {
			return nil, func() {}, err
		}
		resp, err := m.post(ctx, op.Name, text, rows)
		var dialing *net.OpError
		if err != nil && errors.As(err, &dialing) && dialing.Op == "dial" {
			m.missed.Store(time.Now().UnixNano())
			if try < tries+e.opts.Workers && ctx.Err() == nil {
				m.leave()
				continue
			}
			err = errors.Join(errNoWorker, err)
		}
		return resp, m.leave, err
	}
}

func (m *member) post(ctx context.Context, operation string, text []byte, rows *rowStream) (*http.Response, error) {
	var body io.Reader = bytes.NewReader(text)
	if rows != nil {
		body = io.MultiReader(body, rows)
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: rows.travelOn})
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.base+operation, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "") // is not sent then
	req.Header.Set(headHeader, strconv.Itoa(len(text)))
	if m.secret != "" {
		req.Header.Set("Authorization", "Bearer "+m.secret)
	}
	return m.client.Do(req)
}

// answer decodes what a worker answered, and calls done when all of it was read.
func answer(op api.Operation, resp *http.Response, done func()) (any, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && kind == api.ArrowFileType {
		return &api.QueryTableResponse{Data: &arrowBody{ReadCloser: resp.Body, done: done}}, nil
	}
	defer done()
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, &cutError{err}
	}
	if resp.StatusCode == http.StatusOK {
		response := reflect.New(reflect.TypeOf(op.Response)).Interface()
		if err := json.Unmarshal(text, response); err != nil {
			return nil, fmt.Errorf("read a worker's answer to %s: %w", op.Name, err)
		}
		return response, nil
	}
	var refused api.Error
	if err := json.Unmarshal(text, &refused); err != nil {
		return nil, fmt.Errorf("read a worker's refusal of %s, with status %d: %w", op.Name, resp.StatusCode, err)
	}
	if refused.Code == api.CodeInternal {
		return nil, fmt.Errorf("%s: %s", op.Name, refused.Message) // what nobody foresaw is for the log
	}
	return nil, api.Errorf(refused.Code, "%s", refused.Message)
}

// arrowBody is a stream of rows from a worker.
type arrowBody struct {
	io.ReadCloser
	done func()
	once atomic.Bool
}

// Close ends the request.
func (b *arrowBody) Close() error {
	if b.once.Swap(true) {
		return nil
	}
	defer b.done()
	return b.ReadCloser.Close()
}
