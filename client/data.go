package client

import (
	"context"

	"github.com/lancerest/lancerest/api"
)

// InsertIntoTable adds the rows of an Arrow stream.
func (c *Client) InsertIntoTable(
	ctx context.Context, request *api.InsertIntoTableRequest,
) (*api.InsertIntoTableResponse, error) {
	return call[api.InsertIntoTableResponse](ctx, c, "InsertIntoTable", request)
}

// MergeInsertIntoTable merges the rows of an Arrow stream.
func (c *Client) MergeInsertIntoTable(
	ctx context.Context, request *api.MergeInsertIntoTableRequest,
) (*api.MergeInsertIntoTableResponse, error) {
	return call[api.MergeInsertIntoTableResponse](ctx, c, "MergeInsertIntoTable", request)
}

// UpdateTable sets columns of rows.
func (c *Client) UpdateTable(ctx context.Context, request *api.UpdateTableRequest) (*api.UpdateTableResponse, error) {
	return call[api.UpdateTableResponse](ctx, c, "UpdateTable", request)
}

// DeleteFromTable removes rows.
func (c *Client) DeleteFromTable(
	ctx context.Context, request *api.DeleteFromTableRequest,
) (*api.DeleteFromTableResponse, error) {
	return call[api.DeleteFromTableResponse](ctx, c, "DeleteFromTable", request)
}

// CountTableRows counts rows.
func (c *Client) CountTableRows(ctx context.Context, request *api.CountTableRowsRequest) (int64, error) {
	response, err := call[api.CountTableRowsResponse](ctx, c, "CountTableRows", request)
	if err != nil {
		return 0, err
	}
	return response.Count, nil
}
