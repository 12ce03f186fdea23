package client

import (
	"context"

	"github.com/lancerest/lancerest/api"
)

// ListTableBranches lists the branches of a table, one page.
func (c *Client) ListTableBranches(
	ctx context.Context, request *api.ListTableBranchesRequest,
) (*api.ListTableBranchesResponse, error) {
	return call[api.ListTableBranchesResponse](ctx, c, "ListTableBranches", request)
}

// CreateTableBranch makes a branch.
func (c *Client) CreateTableBranch(
	ctx context.Context, request *api.CreateTableBranchRequest,
) (*api.CreateTableBranchResponse, error) {
	return call[api.CreateTableBranchResponse](ctx, c, "CreateTableBranch", request)
}

// DeleteTableBranch removes a branch.
func (c *Client) DeleteTableBranch(
	ctx context.Context, request *api.DeleteTableBranchRequest,
) (*api.DeleteTableBranchResponse, error) {
	return call[api.DeleteTableBranchResponse](ctx, c, "DeleteTableBranch", request)
}
