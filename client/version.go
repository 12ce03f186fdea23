package client

import (
	"context"

	"github.com/lancerest/lancerest/api"
)

// ListTableVersions lists the versions of a chain, one page.
func (c *Client) ListTableVersions(
	ctx context.Context, request *api.ListTableVersionsRequest,
) (*api.ListTableVersionsResponse, error) {
	return call[api.ListTableVersionsResponse](ctx, c, "ListTableVersions", request)
}

// CreateTableVersion publishes one staged version.
func (c *Client) CreateTableVersion(
	ctx context.Context, request *api.CreateTableVersionRequest,
) (*api.CreateTableVersionResponse, error) {
	return call[api.CreateTableVersionResponse](ctx, c, "CreateTableVersion", request)
}

// DescribeTableVersion tells where the manifest of a version is.
func (c *Client) DescribeTableVersion(
	ctx context.Context, request *api.DescribeTableVersionRequest,
) (*api.DescribeTableVersionResponse, error) {
	return call[api.DescribeTableVersionResponse](ctx, c, "DescribeTableVersion", request)
}

// BatchDeleteTableVersions removes ranges of versions.
func (c *Client) BatchDeleteTableVersions(
	ctx context.Context, request *api.BatchDeleteTableVersionsRequest,
) (*api.BatchDeleteTableVersionsResponse, error) {
	return call[api.BatchDeleteTableVersionsResponse](ctx, c, "BatchDeleteTableVersions", request)
}

// RestoreTable makes a new version with the content of an old one.
func (c *Client) RestoreTable(ctx context.Context, request *api.RestoreTableRequest) (*api.RestoreTableResponse, error) {
	return call[api.RestoreTableResponse](ctx, c, "RestoreTable", request)
}
