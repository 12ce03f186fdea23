package worker

import (
	"context"
	"errors"

	"github.com/lancerest/lancerest/api"
)

// CreateView implements engine.Worker. A name that is only declared is filled, as by CreateTable. Errors besides Do's: 5.
func (e *Engine) CreateView(ctx context.Context, req *api.CreateMaterializedViewRequest, declared func() error) (*api.CreateMaterializedViewResponse, error) {
	at, _, err := e.creatable(ctx, &api.CreateTableRequest{Target: req.Target})
	if err != nil {
		return nil, err
	}
	if at.Version != 0 {
		return nil, e.exists(req.ID)
	}
	err = declared()
	var made any
	if err == nil {
		made, err = e.ask(ctx, e.answers["CreateMaterializedView"], req, at.place)
	}
	if err != nil {
		return nil, errors.Join(e.createFailure(err, req.ID), e.undeclare(ctx, at))
	}
	return made.(*api.CreateMaterializedViewResponse), nil
}
