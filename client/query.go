package client

import (
	"context"
	"io"

	"github.com/lancerest/lancerest/api"
)

// QueryTable returns the found rows as an Arrow IPC file, which the caller closes.
func (c *Client) QueryTable(ctx context.Context, request *api.QueryTableRequest) (io.ReadCloser, error) {
	answer, err := c.send(ctx, c.operations["QueryTable"], request)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// ExplainTableQueryPlan tells how a query would be run.
func (c *Client) ExplainTableQueryPlan(
	ctx context.Context, request *api.ExplainTableQueryPlanRequest,
) (*api.ExplainTableQueryPlanResponse, error) {
	return call[api.ExplainTableQueryPlanResponse](ctx, c, "ExplainTableQueryPlan", request)
}

// AnalyzeTableQueryPlan runs a query and tells how it went.
func (c *Client) AnalyzeTableQueryPlan(
	ctx context.Context, request *api.AnalyzeTableQueryPlanRequest,
) (*api.AnalyzeTableQueryPlanResponse, error) {
	return call[api.AnalyzeTableQueryPlanResponse](ctx, c, "AnalyzeTableQueryPlan", request)
}
