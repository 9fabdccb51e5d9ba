package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/wholefile"
	"github.com/dramigrate/dramigrate/internal/words"
)

type planOptions struct {
	app     *app
	views   *views
	pool    poolFlags
	flags   planFlags
	verb    string
	out     string
	detail  bool
	probe   bool
	reports string
}

func newPlan(a *app) *cobra.Command {
	o := &planOptions{app: a, views: newViews(a)}
	cmd := &cobra.Command{
		Use:   "plan [POOL]",
		Short: "Show what apply, rollback, prepare or unprepare would do; changes nothing",
		Long: `Show what a verb would do: every change, in order, with what each step needs, waits
for, and how it is undone; the pods that are evicted or restarted; and what speaks
against it. Reads only; --probe-gate asks the server for a dry run, which stores
nothing. A plan starts no pod: what the nodes say themselves is taken from the reports
of an earlier 'dramigrate probe POOL --save DIR' (--reports DIR).

A plan that was saved with --out is run by 'dramigrate apply FILE' as long as the
cluster still asks for the same plan; 'dramigrate apply --help' says what that is.
'dramigrate plan show FILE' shows it again, without a cluster.`,
		Example: `  dramigrate plan pool-a
  dramigrate plan pool-a --out plan.yaml
  dramigrate plan pool-a --report markdown=plan.md --report html=plan.html
  dramigrate plan --for prepare --driver-manifests ./driver
  dramigrate plan pool-a --from snapshot.yaml
  dramigrate plan --selector gpu=a100 --pool a100 --for rollback`,
		ValidArgsFunction: completePools(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.pool.complete(args); err != nil {
				return err
			}
			if err := o.views.complete(); err != nil {
				return err
			}
			if _, known := operationOf(o.verb); known {
				if err := notForVerb(cmd, o.verb); err != nil {
					return err
				}
			}
			return o.run(cmd.Context())
		},
	}
	cmd.AddCommand(newPlanShow(a))
	o.views.addFlags(cmd)
	a.addFrom(cmd)
	o.pool.addFlags(cmd)
	o.flags.addPoolFlags(cmd, plan.Migrate, a.Streams)
	offerFrom(cmd, "into", completeInto(a))
	o.flags.addPrepareFlags(cmd)
	o.flags.addIntentFlags(cmd)
	s := cmd.Flags()
	s.StringVar(&o.verb, "for", "apply", "the verb that the plan is for: apply, rollback, prepare or unprepare")
	s.StringVar(&o.out, "out", "", "save the plan to this file, as YAML")
	addProbeGate(cmd, &o.probe)
	s.StringVar(&o.reports, "reports", "", "folder of NodeReports, as 'dramigrate probe POOL --save' writes it, to judge by what the nodes said (DRM058, DRM059, DRM093, DRM094)")
	offerFiles(cmd, "reports", cobra.ShellCompDirectiveFilterDirs)
	s.BoolVar(&o.detail, "detailed-exitcode", false, "exit with 2 if the plan changes anything")
	offer(cmd, "for", "apply", "rollback", "prepare", "unprepare")
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
	if o.out != "" && o.views.writes(o.out) {
		return usageError("--out and a --report both write to %s", o.out)
	}
	p, err := o.flags.planner(o.app, op, &o.pool)
	if err != nil {
		return err
	}
	p.probeGate, p.reports = o.probe, o.reports
	made, err := p.plan(ctx)
	if err != nil {
		return err
	}
	if err := o.save(made); err != nil {
		return err
	}
	if err := o.views.print(made); err != nil {
		return err
	}
	o.app.tellIdle(made.Settings.Skips, made.Findings)
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
	if err := wholefile.Write(o.out, func(w io.Writer) error { return report.YAML(w, p) }); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if p.Pool != nil && p.Settings.HelperImage == "" {
		fmt.Fprintf(o.app.Err, "Saved to %s. It can be looked at and not run: make it with --helper-image or the variable %s for that.\n", o.out, helperImageVariable)
		return nil
	}
	more := ""
	if p.Operation == plan.Prepare && o.flags.manifests != "" {
		more = " " + words.Shell("--driver-manifests", o.flags.manifests)
	}
	fmt.Fprintf(o.app.Err, "Saved to %s. To run it: %s %s %s%s\n", o.out, o.app.name, o.verb, words.Shell(o.out), more)
	return nil
}
