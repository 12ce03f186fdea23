package client

import (
	"context"

	"github.com/lancerest/lancerest/api"
)

// ListTables lists the tables directly in a namespace by name, one page.
func (c *Client) ListTables(ctx context.Context, request *api.ListTablesRequest) (*api.ListTablesResponse, error) {
	return call[api.ListTablesResponse](ctx, c, "ListTables", request)
}

// ListAllTables lists the tables of all namespaces by joined id, one page.
func (c *Client) ListAllTables(ctx context.Context, request *api.ListTablesRequest) (*api.ListTablesResponse, error) {
	return call[api.ListTablesResponse](ctx, c, "ListAllTables", request)
}

// RegisterTable gives a name to an existing Lance table.
func (c *Client) RegisterTable(ctx context.Context, request *api.RegisterTableRequest) (*api.RegisterTableResponse, error) {
	return call[api.RegisterTableResponse](ctx, c, "RegisterTable", request)
}

// DescribeTable tells where a table is, and more if asked to.
func (c *Client) DescribeTable(ctx context.Context, request *api.DescribeTableRequest) (*api.DescribeTableResponse, error) {
	return call[api.DescribeTableResponse](ctx, c, "DescribeTable", request)
}

// TableExists returns nil when the table is there, and CodeTableNotFound when it is not.
func (c *Client) TableExists(ctx context.Context, request *api.TableExistsRequest) error {
	_, err := call[api.TableExistsResponse](ctx, c, "TableExists", request)
	return err
}

// DropTable removes a table and its data.
func (c *Client) DropTable(ctx context.Context, request *api.DropTableRequest) (*api.DropTableResponse, error) {
	return call[api.DropTableResponse](ctx, c, "DropTable", request)
}

// DeregisterTable removes the name of a table and leaves its files.
func (c *Client) DeregisterTable(
	ctx context.Context, request *api.DeregisterTableRequest,
) (*api.DeregisterTableResponse, error) {
	return call[api.DeregisterTableResponse](ctx, c, "DeregisterTable", request)
}

// DeclareTable reserves a name and a location.
func (c *Client) DeclareTable(ctx context.Context, request *api.DeclareTableRequest) (*api.DeclareTableResponse, error) {
	return call[api.DeclareTableResponse](ctx, c, "DeclareTable", request)
}

// RenameTable gives a table another name or another parent.
func (c *Client) RenameTable(ctx context.Context, request *api.RenameTableRequest) (*api.RenameTableResponse, error) {
	return call[api.RenameTableResponse](ctx, c, "RenameTable", request)
}

// CreateTable makes a table from an Arrow stream.
func (c *Client) CreateTable(ctx context.Context, request *api.CreateTableRequest) (*api.CreateTableResponse, error) {
	return call[api.CreateTableResponse](ctx, c, "CreateTable", request)
}

// GetTableStats measures a table.
func (c *Client) GetTableStats(ctx context.Context, request *api.GetTableStatsRequest) (*api.GetTableStatsResponse, error) {
	return call[api.GetTableStatsResponse](ctx, c, "GetTableStats", request)
}
