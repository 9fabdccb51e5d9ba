package cli

import (
	"context"
	"fmt"

	"github.com/dramigrate/dramigrate/internal/dryrun"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/report"
)

// dryRunServer has the server check what can be sent of a plan, and stores nothing.
func (a *app) dryRunServer(ctx context.Context, p *plan.Plan) error {
	config, err := a.Config()
	if err != nil {
		return err
	}
	asker, err := dryrun.New(config)
	if err != nil {
		return err
	}
	answers, err := asker.Ask(ctx, p)
	if err != nil {
		return err
	}
	refused := 0
	for _, answer := range answers {
		line := fmt.Sprintf("%-9s  %s", answer.Verdict, answer.Change)
		if answer.Reason != "" {
			line += ": " + answer.Reason
		}
		fmt.Fprintln(a.Err, report.Clean(line))
		if answer.Verdict == dryrun.Refused {
			refused++
		}
	}
	if refused > 0 {
		return fmt.Errorf("the server refuses %d of %d changes, see above; nothing was changed", refused, len(answers))
	}
	return nil
}
