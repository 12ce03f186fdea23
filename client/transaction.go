package client

import (
	"context"

	"github.com/lancerest/lancerest/api"
)

// DescribeTransaction tells how far a transaction has come.
func (c *Client) DescribeTransaction(
	ctx context.Context, request *api.DescribeTransactionRequest,
) (*api.DescribeTransactionResponse, error) {
	return call[api.DescribeTransactionResponse](ctx, c, "DescribeTransaction", request)
}

// AlterTransaction changes the status or the properties of a transaction.
func (c *Client) AlterTransaction(
	ctx context.Context, request *api.AlterTransactionRequest,
) (*api.AlterTransactionResponse, error) {
	return call[api.AlterTransactionResponse](ctx, c, "AlterTransaction", request)
}
