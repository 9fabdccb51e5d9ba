package cli

import (
	"context"
	"errors"

	"github.com/dramigrate/dramigrate/internal/plan"
)

func (a *app) dryRunServer(ctx context.Context, p *plan.Plan) error {
	return errors.New("unwritten")
}
