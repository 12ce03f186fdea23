package client

import (
	"context"

	"github.com/lancerest/lancerest/api"
)

// BatchCreateTableVersions publishes staged versions of many tables as one, all or none.
func (c *Client) BatchCreateTableVersions(
	ctx context.Context, request *api.BatchCreateTableVersionsRequest,
) (*api.BatchCreateTableVersionsResponse, error) {
	return call[api.BatchCreateTableVersionsResponse](ctx, c, "BatchCreateTableVersions", request)
}

// BatchCommitTables performs operations on many tables as one, all or none.
func (c *Client) BatchCommitTables(
	ctx context.Context, request *api.BatchCommitTablesRequest,
) (*api.BatchCommitTablesResponse, error) {
	return call[api.BatchCommitTablesResponse](ctx, c, "BatchCommitTables", request)
}
