package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/report"
)

type planOptions struct {
	app    *app
	format *format
	pool   poolFlags
	flags  planFlags
	verb   string
	out    string
	detail bool
}

func newPlan(a *app) *cobra.Command {
	o := &planOptions{app: a, format: newFormat("table", "yaml", "json")}
	cmd := &cobra.Command{
		Use:   "plan [POOL]",
		Short: "Show what apply, rollback, prepare or unprepare would do; changes nothing",
		Long: `Show what a verb would do: every change, in order, with what each step needs, waits
for, and how it is undone; the pods that are evicted or restarted; and what speaks
against it. Reads only.

A plan that was saved with --out is run by 'dramigrate apply FILE' as long as the
cluster still asks for the same plan; 'dramigrate apply --help' says what that is.`,
		Example: `  dramigrate plan pool-a
  dramigrate plan pool-a --out plan.yaml
  dramigrate plan --for prepare --driver-manifests ./driver
  dramigrate plan --selector gpu=a100 --pool a100 --for rollback`,
		ValidArgsFunction: completePools(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.pool.complete(args); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.format.addFlag(cmd)
	o.pool.addFlags(cmd)
	o.flags.addPoolFlags(cmd, plan.Migrate, a.Streams)
	o.flags.addPrepareFlags(cmd)
	s := cmd.Flags()
	s.StringVar(&o.verb, "for", "apply", "the verb that the plan is for: apply, rollback, prepare or unprepare")
	s.StringVar(&o.out, "out", "", "save the plan to this file, as YAML")
	s.BoolVar(&o.detail, "detailed-exitcode", false, "exit with 2 if the plan changes anything")
	return cmd
}

// operationOf is the operation behind a verb's name.
func operationOf(verb string) (plan.Operation, bool) {
	op, ok := map[string]plan.Operation{
		"apply": plan.Migrate, "rollback": plan.Rollback, "prepare": plan.Prepare, "unprepare": plan.Unprepare,
	}[verb]
	return op, ok
}

func (o *planOptions) run(ctx context.Context) error {
	op, ok := operationOf(o.verb)
	if !ok {
		return usageError("--for %q: must be apply, rollback, prepare or unprepare", o.verb)
	}
	p, err := o.flags.planner(o.app, op, &o.pool)
	if err != nil {
		return err
	}
	made, err := p.plan(ctx)
	if err != nil {
		return err
	}
	if err := o.save(made); err != nil {
		return err
	}
	if err := printPlan(o.app, o.format, made); err != nil {
		return err
	}
	if code := verdict(made.Findings); code != ExitOK {
		return silent{code}
	}
	if o.detail && made.Pending() {
		return silent{ExitChanges}
	}
	return nil
}

func (o *planOptions) save(p *plan.Plan) error {
	if o.out == "" {
		return nil
	}
	var b bytes.Buffer
	if err := report.YAML(&b, p); err != nil {
		return err
	}
	if err := os.WriteFile(o.out, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	fmt.Fprintf(o.app.Err, "Saved to %s. To run it: dramigrate %s --plan %s\n", o.out, o.verb, o.out)
	return nil
}

func printPlan(a *app, f *format, p *plan.Plan) error {
	return f.print(a.Out, p, func() error { return report.Plan(a.styled(a.Out), p) })
}
