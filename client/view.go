package client

import (
	"context"

	"github.com/lancerest/lancerest/api"
)

// CreateMaterializedView makes a view.
func (c *Client) CreateMaterializedView(
	ctx context.Context, request *api.CreateMaterializedViewRequest,
) (*api.CreateMaterializedViewResponse, error) {
	return call[api.CreateMaterializedViewResponse](ctx, c, "CreateMaterializedView", request)
}

// RefreshMaterializedView starts to bring a view up to date.
func (c *Client) RefreshMaterializedView(
	ctx context.Context, request *api.RefreshMaterializedViewRequest,
) (*api.RefreshMaterializedViewResponse, error) {
	return call[api.RefreshMaterializedViewResponse](ctx, c, "RefreshMaterializedView", request)
}
