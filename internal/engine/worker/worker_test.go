package worker_test

import (
	"testing"

	"github.com/lancerest/lancerest/internal/engine"
	"github.com/lancerest/lancerest/internal/engine/enginetest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, func(t *testing.T) engine.Engine { return newLake(t) })
}
