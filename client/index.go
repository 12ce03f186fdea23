package client

import (
	"context"

	"github.com/lancerest/lancerest/api"
)

// CreateTableIndex starts to build an index.
func (c *Client) CreateTableIndex(
	ctx context.Context, request *api.CreateTableIndexRequest,
) (*api.CreateTableIndexResponse, error) {
	return call[api.CreateTableIndexResponse](ctx, c, "CreateTableIndex", request)
}

// CreateTableScalarIndex starts to build an index of a scalar type.
func (c *Client) CreateTableScalarIndex(
	ctx context.Context, request *api.CreateTableIndexRequest,
) (*api.CreateTableScalarIndexResponse, error) {
	return call[api.CreateTableScalarIndexResponse](ctx, c, "CreateTableScalarIndex", request)
}

// ListTableIndices lists the indices of a table, one page.
func (c *Client) ListTableIndices(
	ctx context.Context, request *api.ListTableIndicesRequest,
) (*api.ListTableIndicesResponse, error) {
	return call[api.ListTableIndicesResponse](ctx, c, "ListTableIndices", request)
}

// DescribeTableIndexStats sums up an index.
func (c *Client) DescribeTableIndexStats(
	ctx context.Context, request *api.DescribeTableIndexStatsRequest,
) (*api.DescribeTableIndexStatsResponse, error) {
	return call[api.DescribeTableIndexStatsResponse](ctx, c, "DescribeTableIndexStats", request)
}

// DropTableIndex removes an index.
func (c *Client) DropTableIndex(ctx context.Context, request *api.DropTableIndexRequest) (*api.DropTableIndexResponse, error) {
	return call[api.DropTableIndexResponse](ctx, c, "DropTableIndex", request)
}
