package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dramigrate/dramigrate/internal/access"
	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/report"
)

type checkOptions struct {
	app    *app
	format *format
	pool   poolFlags
	skips  skipFlags
	only   []string
	verbs  []string
	failOn string
	list   bool
	into   string
	drain  string
	// deleteEmptyDir and evictUnmanaged are the drain's flags that a run would have.
	deleteEmptyDir, evictUnmanaged bool
	probe                          bool
	// podNamespace is the namespace of pod/NAME.
	podNamespace string
}

// Values of --fail-on.
const (
	failOnBlocker = "blocker"
	failOnWarning = "warning"
)

func newCheck(a *app) *cobra.Command {
	var formats []string
	for _, v := range report.CheckViews() {
		formats = append(formats, v.Name)
	}
	o := &checkOptions{app: a, format: newFormat(formats...)}
	cmd := &cobra.Command{
		Use:   "check [POOL | pod/[NAMESPACE/]NAME]",
		Short: "Look for all that could go wrong, before the first node is cordoned; or say why a pod waits",
		Long: `Run the catalogue of checks for a pool, or without POOL for every node with devices:
what prepare and apply would meet, or with --for what rollback or unprepare would, or
what there is to say of nodes that are on DRA already (--for verify).
Reads only; --probe-gate asks the server for a dry run, which stores nothing. The same
checks are part of every plan. 'dramigrate explain CODE' says what a check is about,
--list shows all of them.

With pod/NAME it says why that pod waits or fails: one cause with what shows it, and what
to do. It goes by the pod's conditions and events, its claims, and what the nodes that it
may go to have.

Exit code 3: a blocker was found, or with --fail-on=warning a warning; for a pod, a cause
was found. 7: something that has to be seen could not be read; for a pod, nothing that is
known explains it.`,
		Example: `  dramigrate check
  dramigrate check pool-a
  dramigrate check pool-a --only DRM006,DRM018
  dramigrate check pool-a --for rollback
  dramigrate check pool-a -o junit > checks.xml
  dramigrate check pod/train-0 -n team`,
		ValidArgsFunction: completePools(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, isPod, err := podArg(args)
			switch {
			case err != nil:
				return err
			case isPod:
				if err := o.forPod(cmd); err != nil {
					return err
				}
				return o.runPod(cmd.Context(), ref)
			case o.podNamespace != "":
				return usageError("--namespace is that of pod/NAME; the tool's own is --tool-namespace")
			case o.list:
				return o.catalogue(cmd, args)
			}
			if err := o.pool.complete(args); err != nil {
				return err
			}
			if err := o.completeInto(cmd.Flags().Changed("for")); err != nil {
				return err
			}
			if cmd.Flags().Changed("only") && len(o.only) == 0 {
				return usageError("--only: name at least one code; without the flag all checks run")
			}
			return o.run(cmd)
		},
	}
	o.format.addFlag(cmd)
	a.addFrom(cmd)
	o.pool.addFlags(cmd)
	o.skips.addFlags(cmd)
	s := cmd.Flags()
	s.StringSliceVar(&o.only, "only", nil, "run these checks alone, by their codes")
	s.StringSliceVar(&o.verbs, "for", []string{"prepare", "apply"}, "the verbs to check for: prepare, apply, rollback, unprepare; verify asks about nodes that are on DRA, as they stand")
	s.StringVar(&o.failOn, "fail-on", failOnBlocker, "what makes the exit code 3: blocker, or warning as well")
	s.StringVar(&o.drain, "drain", plan.DrainGPU, "what the drain would evict: gpu or all")
	s.StringVarP(&o.podNamespace, "namespace", "n", "", "namespace of pod/NAME; by default that of the kubeconfig's context")
	addDrainDangers(s, &o.deleteEmptyDir, &o.evictUnmanaged)
	addProbeGate(cmd, &o.probe)
	s.StringVar(&o.into, "into", "", "check for a move of POOL's workloads into this pool, as plan's flag says it; POOL's own nodes are not switched")
	offerFrom(cmd, "into", completeInto(a))
	s.BoolVar(&o.list, "list", false, "list the checks and run none")
	offerFrom(cmd, "only", completeCodes)
	offer(cmd, "for", "prepare", "apply", "rollback", "unprepare", checks.Verify)
	offer(cmd, "namespace")
	offer(cmd, "fail-on", failOnBlocker, failOnWarning)
	offer(cmd, "drain", plan.DrainGPU, plan.DrainAll)
	return cmd
}

func (o *checkOptions) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	settings, operations, err := o.complete()
	if err != nil {
		return err
	}
	if err := o.idle(cmd.Flags(), operations); err != nil {
		return err
	}
	s, err := o.app.look(ctx, cluster.LoadOptions{Namespace: o.app.namespace, Advice: true, ProbeGate: o.probe})
	if err != nil {
		return err
	}
	in := plan.Intent{
		Namespace: o.app.namespace, Resource: o.app.resource, Driver: o.app.driver, Settings: settings,
		Offline: o.app.offline(),
	}
	if o.pool.given() {
		finder := planner{app: o.app, pool: &o.pool}
		if in.Pool, err = o.pool.find(s); err != nil {
			return err
		}
		if o.into != "" {
			finder.into = &poolFlags{arg: o.into, name: o.into}
		}
		if in.Into, err = finder.findInto(s, in.Pool); err != nil {
			return err
		}
	}
	if journal := s.Journal(""); journal != nil {
		in.Shared = journal.Shared
	}
	var inputs []checks.Input
	var needs []access.Need
	for _, op := range operations {
		in.Operation = op
		sides, err := plan.CheckInputs(in, s)
		if err != nil {
			return err
		}
		for _, input := range sides {
			inputs, needs = append(inputs, input), append(needs, input.Rights...)
		}
	}
	if !o.app.offline() {
		if err := o.app.reviewNeeds(ctx, s, needs); err != nil {
			return err
		}
	}
	r := checks.Examine(inputs, o.only)
	if err := o.askedOfNothing(r); err != nil {
		return err
	}
	if err := o.print(r); err != nil {
		return err
	}
	asked := slices.DeleteFunc(slices.Clone(settings.Skips), func(s checks.FindingSkip) bool {
		return len(o.only) > 0 && !slices.Contains(o.only, s.Code)
	})
	o.app.tellIdle(asked, r.Findings)
	return o.outcome(r.Findings)
}

// catalogue lists all checks. Whatever else was asked for would be left out.
func (o *checkOptions) catalogue(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("--list lists all checks, and runs none of %s", args[0])
	}
	var other []string
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Name != "list" {
			other = append(other, "--"+f.Name)
		}
	})
	if len(other) > 0 {
		return usageError("--list lists all checks, and takes no %s", strings.Join(other, ", "))
	}
	return report.Catalogue(o.app.sheet(), checks.Sections())
}

// completeInto checks --into. No verb but apply moves workloads into another pool; a
// rollback knows itself where they went.
func (o *checkOptions) completeInto(verbsGiven bool) error {
	switch {
	case o.into == "":
		return nil
	case !o.pool.given():
		return usageError("--into %s: name the pool that the workloads leave: POOL or --selector", o.into)
	case o.into == o.pool.arg || o.into == o.pool.name:
		return usageError("--into %s: is the pool that the workloads leave", o.into)
	case verbsGiven && !slices.Equal(o.verbs, []string{"apply"}):
		return usageError("--into is for apply: a rollback knows where the pool's workloads went, and prepare is about no pool")
	}
	o.verbs = []string{"apply"}
	return nil
}

// complete checks the flags before anything is read.
func (o *checkOptions) complete() (plan.Settings, []plan.Operation, error) {
	if o.failOn != failOnBlocker && o.failOn != failOnWarning {
		return plan.Settings{}, nil, usageError("--fail-on %q: must be %s or %s", o.failOn, failOnBlocker, failOnWarning)
	}
	if o.drain != plan.DrainGPU && o.drain != plan.DrainAll {
		return plan.Settings{}, nil, usageError("--drain %q: must be %s or %s", o.drain, plan.DrainGPU, plan.DrainAll)
	}
	var operations []plan.Operation
	for _, verb := range o.verbs {
		op, ok := operationOf(verb)
		if verb == string(plan.Migrate) { // as a plan names what apply does
			op, ok = plan.Migrate, true
		}
		if verb == checks.Verify {
			op, ok = plan.Operation(checks.Verify), true
		}
		if !ok {
			return plan.Settings{}, nil, usageError("--for %q: must be prepare, apply, rollback, unprepare or verify", verb)
		}
		if !slices.Contains(operations, op) {
			operations = append(operations, op)
		}
	}
	if len(operations) == 0 {
		return plan.Settings{}, nil, usageError("--for: name at least one verb")
	}
	if err := o.completeOnly(operations); err != nil {
		return plan.Settings{}, nil, err
	}
	if len(o.skips.values) > 0 && o.skips.reason == "" {
		o.skips.reason = "by --skip"
	}
	skips, err := o.skips.parse()
	return plan.Settings{
		Drain: o.drain, Skips: skips, DeleteEmptyDir: o.deleteEmptyDir, EvictUnmanaged: o.evictUnmanaged,
	}, operations, err
}

// idle refuses what says nothing to the verbs that are checked for.
func (o *checkOptions) idle(set *pflag.FlagSet, operations []plan.Operation) error {
	anyOf := func(some ...plan.Operation) bool {
		return slices.ContainsFunc(operations, func(op plan.Operation) bool { return slices.Contains(some, op) })
	}
	if !anyOf(plan.Migrate, plan.Rollback) {
		if err := idle(set, "--for apply or --for rollback", "drain", "delete-emptydir-data", "evict-unmanaged"); err != nil {
			return err
		}
	}
	if !anyOf(plan.Prepare, plan.Migrate, plan.Operation(checks.Verify)) {
		return idle(set, "--for prepare, apply or verify", "probe-gate")
	}
	return nil
}

// askedOfNothing refuses a check by name that has nothing here to judge by.
func (o *checkOptions) askedOfNothing(r *checks.Report) error {
	for _, code := range o.only {
		if !slices.ContainsFunc(r.Checks, func(c checks.Outcome) bool { return c.Code == code }) {
			return usageError("--only: %s judges by what `dramigrate plan` is given and check is not: `dramigrate explain %s` says by what", code, code)
		}
	}
	return nil
}

// completeOnly refuses a check that no operation asks: it would pass without having run.
func (o *checkOptions) completeOnly(operations []plan.Operation) error {
	for i, code := range o.only {
		c, ok := checks.Find(code)
		if !ok {
			return usageError("--only: %w", unknownCode(code))
		}
		asks := func(op plan.Operation) bool {
			if o.into != "" {
				return slices.Contains(c.Operations, checks.MigrateFrom) || slices.Contains(c.Operations, checks.MigrateInto)
			}
			return slices.Contains(c.Operations, string(op))
		}
		if !slices.ContainsFunc(operations, asks) {
			return usageError("--only: %s is no check for %s: `dramigrate explain %s` says who asks it", c.Code, strings.Join(o.verbs, ", "), c.Code)
		}
		o.only[i] = c.Code
	}
	return nil
}

func (o *checkOptions) print(r *checks.Report) error {
	for _, v := range report.CheckViews() {
		if v.Name != o.format.value {
			continue
		}
		sheet := o.app.sheet()
		if !v.Styled {
			sheet.Writer = o.app.Out
		}
		return v.Write(sheet, r)
	}
	return nil
}

func (o *checkOptions) outcome(findings []checks.Finding) error {
	code := verdict(findings)
	warns := slices.ContainsFunc(findings, func(f checks.Finding) bool { return f.Severity == checks.Warning && f.Skipped == "" })
	if code == ExitOK && o.failOn == failOnWarning && warns {
		code = ExitBlocked
	}
	if code != ExitOK {
		return silent{code}
	}
	return nil
}

// completeCodes offers the codes of checks to the shell, with their titles; of several
// that are separated by commas, the last.
func completeCodes(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	var out []cobra.Completion
	for _, c := range checks.All() {
		out = append(out, cobra.CompletionWithDesc(before+c.Code, c.Title))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
