package client

import (
	"context"

	"github.com/lancerest/lancerest/api"
)

// CreateNamespace makes a namespace below an existing one.
func (c *Client) CreateNamespace(
	ctx context.Context, request *api.CreateNamespaceRequest,
) (*api.CreateNamespaceResponse, error) {
	return call[api.CreateNamespaceResponse](ctx, c, "CreateNamespace", request)
}

// ListNamespaces lists the direct children of a namespace, one page.
func (c *Client) ListNamespaces(ctx context.Context, request *api.ListNamespacesRequest) (*api.ListNamespacesResponse, error) {
	return call[api.ListNamespacesResponse](ctx, c, "ListNamespaces", request)
}

// DescribeNamespace gives the properties of a namespace.
func (c *Client) DescribeNamespace(
	ctx context.Context, request *api.DescribeNamespaceRequest,
) (*api.DescribeNamespaceResponse, error) {
	return call[api.DescribeNamespaceResponse](ctx, c, "DescribeNamespace", request)
}

// DropNamespace removes a namespace.
func (c *Client) DropNamespace(ctx context.Context, request *api.DropNamespaceRequest) (*api.DropNamespaceResponse, error) {
	return call[api.DropNamespaceResponse](ctx, c, "DropNamespace", request)
}

// NamespaceExists returns nil when the namespace is there, and CodeNamespaceNotFound when it is not.
func (c *Client) NamespaceExists(ctx context.Context, request *api.NamespaceExistsRequest) error {
	_, err := call[api.NamespaceExistsResponse](ctx, c, "NamespaceExists", request)
	return err
}
