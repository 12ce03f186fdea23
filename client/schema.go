package client

import (
	"context"

	"github.com/lancerest/lancerest/api"
)

// UpdateTableSchemaMetadata sets metadata of the schema.
func (c *Client) UpdateTableSchemaMetadata(
	ctx context.Context, request *api.UpdateTableSchemaMetadataRequest,
) (*api.UpdateTableSchemaMetadataResponse, error) {
	return call[api.UpdateTableSchemaMetadataResponse](ctx, c, "UpdateTableSchemaMetadata", request)
}

// UpdateFieldMetadata sets metadata of fields.
func (c *Client) UpdateFieldMetadata(
	ctx context.Context, request *api.UpdateFieldMetadataRequest,
) (*api.UpdateFieldMetadataResponse, error) {
	return call[api.UpdateFieldMetadataResponse](ctx, c, "UpdateFieldMetadata", request)
}
