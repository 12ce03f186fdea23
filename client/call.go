package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/lancerest/lancerest/api"
)

// maxErrorBody is how much of an answer with a failing status is read, and maxQuoted how much of one that is no error body is shown.
const (
	maxErrorBody = 1 << 20
	maxQuoted    = 200
)

// call performs the named operation and reads its answer into a new Response; an operation without a body gives the zero value.
func call[Response any](ctx context.Context, c *Client, name string, request any) (*Response, error) {
	answer, err := c.send(ctx, c.operations[name], request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	response := new(Response)
	if c.operations[name].Returns == api.ReturnsNothing {
		return response, nil
	}
	if err := json.NewDecoder(answer.Body).Decode(response); err != nil {
		return nil, fmt.Errorf("%s: read the answer with status %s: %w", name, answer.Status, err)
	}
	return response, nil
}

// send makes the HTTP request and returns a successful answer, whose body the caller closes. Errors name the operation but not the
// URL, which can hold secrets (client contract, fact 9).
func (c *Client) send(ctx context.Context, op api.Operation, request any) (*http.Response, error) {
	httpRequest, err := c.newRequest(ctx, op, request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op.Name, withoutURL(err))
	}
	answer, err := c.options.HTTPClient.Do(httpRequest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op.Name, withoutURL(err))
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, readError(op, answer)
}

func withoutURL(err error) error {
	if about, ok := errors.AsType[*url.Error](err); ok {
		return about.Err
	}
	return err
}

func (c *Client) newRequest(ctx context.Context, op api.Operation, request any) (*http.Request, error) {
	path, err := c.path(op, request)
	if err != nil {
		return nil, err
	}
	query, err := queryOf(op, request)
	if err != nil {
		return nil, err
	}
	query.Set("delimiter", c.options.Delimiter)
	body, contentType, err := bodyOf(op, request)
	if err != nil {
		return nil, err
	}
	httpRequest, err := http.NewRequestWithContext(ctx, op.Method, c.base+path+"?"+query.Encode(), body)
	if err != nil {
		return nil, err
	}
	c.setHeaders(httpRequest.Header, op, request)
	if contentType != "" {
		httpRequest.Header.Set("Content-Type", contentType)
	}
	return httpRequest, nil
}

// path fills in the operation's path. Segments are form-encoded as other clients do: a space is a plus (client contract, fact 3). The
// root namespace is the bare delimiter (fact 4).
func (c *Client) path(op api.Operation, request any) (string, error) {
	path := op.Path
	if strings.Contains(path, "{id}") {
		id := request.(interface{ AsTarget() *api.Target }).AsTarget().ID
		for _, name := range id {
			if strings.Contains(name, c.options.Delimiter) {
				return "", api.Errorf(api.CodeInvalidInput,
					"name %q contains the delimiter %q; use a client with another delimiter", name, c.options.Delimiter)
			}
		}
		joined := strings.Join(id, c.options.Delimiter)
		if len(id) == 0 {
			joined = c.options.Delimiter
		}
		path = strings.Replace(path, "{id}", url.QueryEscape(joined), 1)
	}
	for _, field := range taggedFields(request, "path") {
		path = strings.Replace(path, "{"+field.name+"}", url.QueryEscape(field.value.String()), 1)
	}
	return path, nil
}

// bodyOf returns the body and its content type, both empty for an operation without a body (client contract, fact 6).
func bodyOf(op api.Operation, request any) (body io.Reader, contentType string, err error) {
	switch op.Body {
	case api.JSONBody, api.OptionalJSONBody:
		data, err := json.Marshal(request)
		if err != nil {
			return nil, "", fmt.Errorf("write the request: %w", err)
		}
		return bytes.NewReader(data), api.JSONType, nil
	case api.ArrowBody:
		return streamOf(request), api.ArrowStreamType, nil
	}
	return nil, "", nil
}

// streamOf returns the stream so that net/http does not close it: the caller opened it.
func streamOf(request any) io.Reader {
	stream := request.(interface{ AsArrowStream() *api.ArrowStream }).AsArrowStream().Data
	if _, closes := stream.(io.Closer); closes {
		return struct{ io.Reader }{stream}
	}
	return stream
}

// setHeaders writes who calls and the context. Context that is not meant as headers travels in the JSON body; where there is none, or
// where it is a bare map, it travels as x-lance-ctx-<key>.
func (c *Client) setHeaders(header http.Header, op api.Operation, request any) {
	for name, value := range c.options.Headers {
		header.Set(name, value)
	}
	setIdentity(header, &c.options.APIKey, &c.options.AuthToken)
	caller := request.(interface{ AsCaller() *api.Caller }).AsCaller()
	if caller.Identity != nil {
		setIdentity(header, caller.Identity.APIKey, caller.Identity.AuthToken)
	}
	_, bare := request.(json.Marshaler)
	inBody := !bare && slices.Contains([]api.BodyKind{api.JSONBody, api.OptionalJSONBody}, op.Body)
	for key, value := range caller.Context {
		if name, isHeader := strings.CutPrefix(key, "header."); isHeader {
			header.Set(name, value)
		} else if !inBody {
			header.Set("x-lance-ctx-"+key, value)
		}
	}
}

func setIdentity(header http.Header, apiKey, authToken *string) {
	if apiKey != nil && *apiKey != "" {
		header.Set("x-api-key", *apiKey)
	}
	if authToken != nil && *authToken != "" {
		header.Set("Authorization", "Bearer "+*authToken)
	}
}

// readError turns an answer with a failing status into an *api.Error. Only an integer code makes a body an error of the specification
// (client contract, fact 24).
func readError(op api.Operation, answer *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxErrorBody))
	var hasCode struct {
		Code *api.Code `json:"code"`
	}
	var known api.Error
	if json.Unmarshal(data, &hasCode) == nil && hasCode.Code != nil && json.Unmarshal(data, &known) == nil {
		return &known
	}
	quoted := strings.ToValidUTF8(string(data[:min(len(data), maxQuoted)]), "")
	return api.Errorf(api.CodeInternal, "%s: the answer has status %s and no error body: %q", op.Name, answer.Status, quoted).Because(err)
}
