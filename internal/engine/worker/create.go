package worker

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/lancerest/lancerest/api"
)

// What CreateTable does with a table that exists.
const (
	modeCreate    = "create"
	modeExistOK   = "existok"
	modeOverwrite = "overwrite"
)

// createTable declares a table, has its first version written, and gives the name back where that fails. A table that is only declared is
// filled; one with data is replaced by mode Overwrite, as its next version, so that its history stays and readers are not disturbed.
func (e *Engine) createTable(ctx context.Context, op api.Operation, req *api.CreateTableRequest) (any, error) {
	mode, err := createMode(req)
	if err != nil {
		return nil, err
	}
	at, properties, err := e.creatable(ctx, req)
	if err != nil {
		return nil, err
	}
	response := &api.CreateTableResponse{Location: &at.Location, Version: &at.Version, Properties: properties}
	switch {
	case at.Version == 0:
	case mode == modeCreate:
		return nil, e.exists(req.ID)
	case mode == modeExistOK:
		_, err := io.Copy(io.Discard, req.Data) // the caller sends before it reads
		if err != nil {
			return nil, api.Errorf(api.CodeInvalidInput, "the stream of rows broke off before its end; the table exists and was not changed").Because(err)
		}
		return response, nil
	}
	written, err := e.ask(ctx, op, req, at.place)
	if err != nil {
		return nil, errors.Join(e.createFailure(err, req.ID), e.undeclare(ctx, at))
	}
	response.Version = written.(*api.CreateTableResponse).Version
	return response, nil
}

func createMode(req *api.CreateTableRequest) (string, error) {
	if len(req.StorageOptions) > 0 {
		return "", api.Errorf(api.CodeUnsupported, "storage_options are not taken: how storage is reached is the server's configuration")
	}
	given := modeCreate
	if req.Mode != nil {
		given = *req.Mode
	}
	mode := strings.ReplaceAll(strings.ToLower(given), "_", "")
	switch mode {
	case modeCreate, modeExistOK, modeOverwrite:
		return mode, nil
	}
	return "", api.Errorf(api.CodeInvalidInput, "mode %q: it must be Create, ExistOk or Overwrite", given)
}

// created is a table that is to be written.
type created struct {
	place
	declared bool // by this request
}

// creatable returns the table of a name, declaring it if there is none, and its properties.
func (e *Engine) creatable(ctx context.Context, req *api.CreateTableRequest) (created, map[string]string, error) {
	for try := 1; ; try++ {
		at, properties, err := e.existing(ctx, req)
		if api.Code(-1) == codeOf(err) || codeOf(err) != api.CodeTableNotFound {
			return created{place: at}, properties, err
		}
		resp, err := e.opts.Catalog.DeclareTable(ctx, &api.DeclareTableRequest{Target: api.Target{ID: req.ID, Caller: req.Caller}, Properties: req.Properties})
		if codeOf(err) == api.CodeTableAlreadyExists && try < tries {
			continue // by somebody else, just now
		}
		if err != nil {
			return created{}, nil, err
		}
		// How storage is reached is said by a description.
		at, err = e.describe(ctx, req.ID, nil, nil)
		at.Location = *resp.Location
		return created{place: at, declared: true}, resp.Properties, err
	}
}

// codeOf is the code of an error, -1 of none.
func codeOf(err error) api.Code {
	if err == nil {
		return -1
	}
	return api.CodeOf(err)
}

// existing returns a table that exists. Properties belong to the name: those of a table that exists can only be the same.
func (e *Engine) existing(ctx context.Context, req *api.CreateTableRequest) (place, map[string]string, error) {
	at, err := e.describe(ctx, req.ID, nil, nil)
	if err != nil {
		return at, nil, err
	}
	resp, err := e.opts.Catalog.DescribeTable(ctx, &api.DescribeTableRequest{Target: api.At(req.ID...)})
	if err != nil {
		return at, nil, err
	}
	if len(req.Properties) > 0 && !maps.Equal(req.Properties, resp.Properties) {
		return at, nil, api.Errorf(api.CodeInvalidInput, "table %q exists and has other properties: they are set when a name is first taken; drop the table first, or leave them out", strings.Join(req.ID, "."))
	}
	return at, resp.Properties, nil
}

func (e *Engine) exists(id []string) error {
	return api.Errorf(api.CodeTableAlreadyExists, "table %q already exists", strings.Join(id, "."))
}

// createFailure names the table where another writer was faster.
func (e *Engine) createFailure(err error, id []string) error {
	if codeOf(err) == api.CodeTableAlreadyExists {
		return e.exists(id)
	}
	return err
}

// undeclareTime bounds how long giving a name back may take: the caller may be gone by then.
const undeclareTime = 30 * time.Second

// undeclare gives back a name that this request took. Where a version was written after all the table stays.
func (e *Engine) undeclare(ctx context.Context, at created) error {
	if !at.declared {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undeclareTime)
	defer cancel()
	err := e.opts.Catalog.DropDeclared(ctx, at.ID, at.Location)
	if err != nil {
		e.opts.Logger.Error("a table whose creation failed stays declared", "table", strings.Join(at.ID, "."), "error", err.Error())
	}
	return nil
}
