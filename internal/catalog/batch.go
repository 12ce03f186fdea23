package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit"
	"github.com/lancerest/lancerest/internal/lance"
)

// BatchCreateTableVersions commits versions of any number of tables and branches in one atomic step, in the order given: several
// of one chain must be consecutive. Sent again, it answers as the first time. Each failure names the entry (its index, table
// and version) and nothing is kept of the batch. Errors: 1, 4, 13 (also: no entries, one version twice), 14, 19, 22.
func (c *Catalog) BatchCreateTableVersions(ctx context.Context, req *api.BatchCreateTableVersionsRequest) (*api.BatchCreateTableVersionsResponse, error) {
	where := commit.Naming{Field: "entries"}
	if err := c.checkBatch(where, len(req.Entries)); err != nil {
		return nil, err
	}
	steps := make([]commit.Step, len(req.Entries))
	for i, e := range req.Entries {
		s, err := createStep(e.ID, e.StagedVersion)
		if err != nil {
			return nil, where.WrapStep(i, s, err)
		}
		steps[i] = s
	}
	if err := checkTwice(steps, where); err != nil {
		return nil, err
	}
	return committed(ctx, c, commit.Request{Steps: steps, Context: req.Context, Where: where}, func(o *commit.Outcome) (*api.BatchCreateTableVersionsResponse, error) {
		resp := &api.BatchCreateTableVersionsResponse{TransactionID: transactionID(o.Transaction), Versions: make([]api.TableVersion, len(steps))}
		for i, r := range o.Results {
			var err error
			if resp.Versions[i], err = c.wireVersion(r.Table, r.Version); err != nil {
				return nil, err
			}
		}
		return resp, nil
	})
}

// BatchCommitTables performs any mix of declaring tables, creating versions, deleting versions and deregistering tables in one
// atomic step. Later operations see earlier ones; results come in the order of the operations. Sent again, a batch that makes
// versions answers as the first time. Errors: those of the single operations, naming the operation; 13 where an operation has
// none or several kinds, or there are no operations.
func (c *Catalog) BatchCommitTables(ctx context.Context, req *api.BatchCommitTablesRequest) (*api.BatchCommitTablesResponse, error) {
	where := commit.Naming{Field: "operations"}
	if err := c.checkBatch(where, len(req.Operations)); err != nil {
		return nil, err
	}
	steps := make([]commit.Step, len(req.Operations))
	for i, op := range req.Operations {
		s, err := c.operationStep(ctx, op)
		if err != nil {
			if s.ID == nil {
				return nil, indexed(where, i, err)
			}
			return nil, where.WrapStep(i, s, err)
		}
		steps[i] = s
	}
	if err := checkTwice(steps, where); err != nil {
		return nil, err
	}
	return committed(ctx, c, commit.Request{Steps: steps, Context: req.Context, Where: where}, func(o *commit.Outcome) (*api.BatchCommitTablesResponse, error) {
		resp := &api.BatchCommitTablesResponse{TransactionID: transactionID(o.Transaction), Results: make([]api.CommitTableResult, len(steps))}
		for i, r := range o.Results {
			var err error
			if resp.Results[i], err = c.operationResult(steps[i].Kind, r, resp.TransactionID); err != nil {
				return nil, err
			}
		}
		return resp, nil
	})
}

// indexed puts the index of an operation without an id before an error.
func indexed(where commit.Naming, i int, err error) error {
	return api.Errorf(api.CodeOf(err), "%s[%d]: %s", where.Field, i, message(err))
}

func message(err error) string {
	if e, ok := err.(*api.Error); ok {
		return e.Message
	}
	return err.Error()
}

// operationStep checks one operation of a mixed batch.
func (c *Catalog) operationStep(ctx context.Context, op api.CommitTableOperation) (commit.Step, error) {
	kinds := 0
	for _, set := range []bool{op.DeclareTable != nil, op.CreateTableVersion != nil, op.DeleteTableVersions != nil, op.DeregisterTable != nil} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		return commit.Step{}, api.Errorf(api.CodeInvalidInput, "it holds %d kinds of operation: exactly one of declare_table, create_table_version, delete_table_versions and deregister_table must be set", kinds)
	}
	switch {
	case op.DeclareTable != nil:
		s, err := c.declareStep(ctx, op.DeclareTable)
		if errors.As(err, &s.Refusal) && s.Refusal.Code == api.CodeInvalidTableState {
			// The dataset there may be what this very batch has made when it was sent before.
			err = nil
		}
		return s, err
	case op.CreateTableVersion != nil:
		return createStep(op.CreateTableVersion.ID, op.CreateTableVersion.StagedVersion)
	case op.DeleteTableVersions != nil:
		return deleteStep(op.DeleteTableVersions)
	}
	return commit.Step{Kind: lance.EntryDeregister, ID: op.DeregisterTable.ID}, checkTableID(op.DeregisterTable.ID)
}

func (c *Catalog) operationResult(kind lance.EntryKind, r commit.Result, transaction *string) (api.CommitTableResult, error) {
	switch kind {
	case lance.EntryDeclare:
		resp := declared(r.Table)
		resp.TransactionID = transaction
		return api.CommitTableResult{DeclareTable: resp}, nil
	case lance.EntryCreateVersion:
		v, err := c.wireVersion(r.Table, r.Version)
		return api.CommitTableResult{CreateTableVersion: &api.CreateTableVersionResponse{TransactionID: transaction, Version: &v}}, err
	case lance.EntryDeleteVersions:
		return api.CommitTableResult{DeleteTableVersions: &api.BatchDeleteTableVersionsResponse{TransactionID: transaction, DeletedCount: ptr(r.Count)}}, nil
	case lance.EntryDeregister:
		return api.CommitTableResult{DeregisterTable: &api.DeregisterTableResponse{
			TransactionID: transaction, ID: r.Table.Path, Location: ptr(r.Table.Location), Properties: filled(r.Table.Properties),
		}}, nil
	}
	return api.CommitTableResult{}, fmt.Errorf("result of unknown kind %q", kind)
}

// checkBatch refuses a batch that is empty or too large.
func (c *Catalog) checkBatch(where commit.Naming, n int) error {
	if n == 0 {
		return api.Errorf(api.CodeInvalidInput, "%s is empty: give at least one", where.Field)
	}
	if n > c.opts.MaxBatch {
		return api.Errorf(api.CodeInvalidInput, "%s holds %d, and at most %d are allowed: split the batch", where.Field, n, c.opts.MaxBatch)
	}
	return nil
}

// checkTwice refuses a batch that creates one version twice (C3), unless its table ends in between.
func checkTwice(steps []commit.Step, where commit.Naming) error {
	seen := map[string]int{}
	for i, s := range steps {
		switch s.Kind {
		case lance.EntryDeregister:
			clear(seen)
		case lance.EntryCreateVersion:
			key := fmt.Sprintf("%s\x1e%s\x1e%d", lance.PathKey(s.ID), s.Branch, s.Version)
			if before, twice := seen[key]; twice {
				return where.WrapStep(i, s, api.Errorf(api.CodeInvalidInput, "%s[%d] creates the same version: each may stand once in a batch", where.Field, before))
			}
			seen[key] = i
		}
	}
	return nil
}
