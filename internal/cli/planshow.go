package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/report"
)

// mostPlanBytes is how long a plan file may be. A pool of 5,000 nodes with ten pods
// each makes about 15 MB.
const mostPlanBytes = 64 << 20

type planShowOptions struct {
	app         *app
	views       *views
	allowEdited bool
}

func newPlanShow(a *app) *cobra.Command {
	o := &planShowOptions{app: a, views: newViews(a)}
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show a saved plan in any format, without a cluster",
		Long: `Show a plan that was saved with --out, or by -o yaml or json, in any format. Nothing is
read but the file; FILE - is stdin.

A file that was changed after it was planned is refused, exit code 4: nobody has planned
what it says. --allow-edited shows it all the same, with a warning.`,
		Example: `  dramigrate plan show plan.yaml
  dramigrate plan show plan.yaml -o html > plan.html
  dramigrate plan pool-a -o yaml | dramigrate plan show - --report markdown=plan.md`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("name one FILE with a saved plan, or - for stdin")
			}
			if err := o.views.complete(); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0])
		},
	}
	o.views.addFlags(cmd)
	cmd.Flags().BoolVar(&o.allowEdited, "allow-edited", false, "show a plan that was changed after it was planned")
	return cmd
}

func (o *planShowOptions) run(ctx context.Context, file string) error {
	data, err := interruptible(ctx, func() ([]byte, error) { return o.read(file) })
	if err != nil {
		return err
	}
	p, edited, err := plan.ParseEdited(data)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", file, err)
	case edited != nil && !o.allowEdited:
		return fmt.Errorf("%s: %w; to see it all the same: --allow-edited", file, edited)
	case edited != nil:
		fmt.Fprintf(o.app.Err, "Warning: %s: %s\n", report.Clean(file), report.Clean(edited.Error()))
	}
	return o.views.print(p)
}

func (o *planShowOptions) read(file string) ([]byte, error) {
	in := o.app.In
	if file != standardStream {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, mostPlanBytes+1))
	if err == nil && len(data) > mostPlanBytes {
		err = errors.New("is no plan: it has more than 64 MiB")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return data, nil
}
