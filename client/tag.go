package client

import (
	"context"

	"github.com/lancerest/lancerest/api"
)

// ListTableTags lists the tags of a table, one page.
func (c *Client) ListTableTags(ctx context.Context, request *api.ListTableTagsRequest) (*api.ListTableTagsResponse, error) {
	return call[api.ListTableTagsResponse](ctx, c, "ListTableTags", request)
}

// GetTableTagVersion gives the version that a tag points to.
func (c *Client) GetTableTagVersion(
	ctx context.Context, request *api.GetTableTagVersionRequest,
) (*api.GetTableTagVersionResponse, error) {
	return call[api.GetTableTagVersionResponse](ctx, c, "GetTableTagVersion", request)
}

// CreateTableTag makes a tag.
func (c *Client) CreateTableTag(ctx context.Context, request *api.CreateTableTagRequest) (*api.CreateTableTagResponse, error) {
	return call[api.CreateTableTagResponse](ctx, c, "CreateTableTag", request)
}

// UpdateTableTag moves a tag.
func (c *Client) UpdateTableTag(ctx context.Context, request *api.UpdateTableTagRequest) (*api.UpdateTableTagResponse, error) {
	return call[api.UpdateTableTagResponse](ctx, c, "UpdateTableTag", request)
}

// DeleteTableTag removes a tag.
func (c *Client) DeleteTableTag(ctx context.Context, request *api.DeleteTableTagRequest) (*api.DeleteTableTagResponse, error) {
	return call[api.DeleteTableTagResponse](ctx, c, "DeleteTableTag", request)
}
