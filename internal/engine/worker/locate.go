package worker

import (
	"context"

	"github.com/lancerest/lancerest/api"
)

// place is a version of a table, as workers are told of it. Version 0 is a table without data; Branch is "" for main.
type place struct {
	ID             []string          `json:"id"`
	Location       string            `json:"location"`
	Version        int64             `json:"version"`
	Branch         string            `json:"branch,omitempty"`
	StorageOptions map[string]string `json:"storage_options,omitempty"`
}

// mainBranch is the name of the branch that has none.
const mainBranch = "main"

// locate asks the catalog which version of a table a request is about: the one that it names, or the latest of its branch. The errors are the
// catalog's: 1, 4, 11, 22.
func (e *Engine) locate(ctx context.Context, request any) (place, error) {
	branch, version := versionAsked(request)
	return e.describe(ctx, request.(interface{ AsTarget() *api.Target }).AsTarget().ID, branch, version)
}

func (e *Engine) describe(ctx context.Context, id []string, branch *string, version *int64) (place, error) {
	at := place{ID: id}
	if branch != nil && *branch != mainBranch {
		at.Branch = *branch
	}
	named := at.Branch
	if named == "" {
		named = mainBranch
	}
	resp, err := e.opts.Catalog.DescribeTable(ctx, &api.DescribeTableRequest{Target: api.At(id...), Branch: &named, Version: version, VendCredentials: new(bool)})
	if err != nil {
		return at, err
	}
	at.Location = *resp.Location
	if at.StorageOptions, err = e.opts.Catalog.EngineOptions(ctx, at.Location); err != nil {
		return at, err
	}
	// A worker uses its keys for one request, which ends before they do, and is given those of the next request then: it must not ask the
	// catalog for what clients are given.
	delete(at.StorageOptions, "expires_at_millis")
	delete(at.StorageOptions, "refresh_offset_millis")
	if resp.Version != nil {
		at.Version = *resp.Version
	}
	return at, nil
}

// versionAsked returns which branch and version a request names, nil for main and for the latest.
func versionAsked(request any) (branch *string, version *int64) {
	switch r := request.(type) {
	case *api.InsertIntoTableRequest:
		return r.Branch, nil
	case *api.MergeInsertIntoTableRequest:
		return r.Branch, nil
	case *api.UpdateTableRequest:
		return r.Branch, nil
	case *api.DeleteFromTableRequest:
		return r.Branch, nil
	case *api.CountTableRowsRequest:
		return r.Branch, r.Version
	case *api.QueryTableRequest:
		return r.Branch, r.Version
	case *api.AnalyzeTableQueryPlanRequest:
		return r.Branch, r.Version
	case *api.ExplainTableQueryPlanRequest:
		if r.Branch != nil {
			return r.Branch, r.Query.Version
		}
		return r.Query.Branch, r.Query.Version
	case *api.RestoreTableRequest:
		return r.Branch, &r.Version
	case *api.CreateTableIndexRequest:
		return r.Branch, nil
	case *api.DropTableIndexRequest:
		return r.Branch, nil
	case *api.AlterTableAddColumnsRequest:
		return r.Branch, nil
	case *api.AlterTableAlterColumnsRequest:
		return r.Branch, nil
	case *api.AlterTableDropColumnsRequest:
		return r.Branch, nil
	case *api.AlterTableBackfillColumnsRequest:
		return r.Branch, nil
	case *api.UpdateTableSchemaMetadataRequest:
		return r.Branch, nil
	case *api.UpdateFieldMetadataRequest:
		return r.Branch, nil
	case *api.CreateTableBranchRequest:
		return r.FromBranch, r.FromVersion
	}
	return nil, nil
}
