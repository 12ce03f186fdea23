package client

import (
	"context"

	"github.com/lancerest/lancerest/api"
)

// AlterTableAddColumns adds columns.
func (c *Client) AlterTableAddColumns(
	ctx context.Context, request *api.AlterTableAddColumnsRequest,
) (*api.AlterTableAddColumnsResponse, error) {
	return call[api.AlterTableAddColumnsResponse](ctx, c, "AlterTableAddColumns", request)
}

// AlterTableAlterColumns changes columns.
func (c *Client) AlterTableAlterColumns(
	ctx context.Context, request *api.AlterTableAlterColumnsRequest,
) (*api.AlterTableAlterColumnsResponse, error) {
	return call[api.AlterTableAlterColumnsResponse](ctx, c, "AlterTableAlterColumns", request)
}

// AlterTableDropColumns removes columns.
func (c *Client) AlterTableDropColumns(
	ctx context.Context, request *api.AlterTableDropColumnsRequest,
) (*api.AlterTableDropColumnsResponse, error) {
	return call[api.AlterTableDropColumnsResponse](ctx, c, "AlterTableDropColumns", request)
}

// AlterTableBackfillColumns starts to compute the values of a column.
func (c *Client) AlterTableBackfillColumns(
	ctx context.Context, request *api.AlterTableBackfillColumnsRequest,
) (*api.AlterTableBackfillColumnsResponse, error) {
	return call[api.AlterTableBackfillColumnsResponse](ctx, c, "AlterTableBackfillColumns", request)
}
