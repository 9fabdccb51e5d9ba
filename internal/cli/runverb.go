package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/engine"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/words"
)

// Runner runs a plan; it is the engine but in tests.
type Runner interface {
	Run(ctx context.Context, p *plan.Plan, payload engine.Payload) error
}

// runOptions are those of the four verbs that change something.
type runOptions struct {
	app   *app
	op    plan.Operation
	verb  string
	views *views
	pool  poolFlags
	flags planFlags
	run   runFlags
}

// newRunVerb makes the part that apply, rollback, prepare and unprepare share.
func newRunVerb(a *app, op plan.Operation, cmd *cobra.Command) *cobra.Command {
	o := &runOptions{app: a, op: op, verb: cmd.Name(), views: newViews(a)}
	o.views.addFlags(cmd)
	switch op {
	case plan.Migrate, plan.Rollback:
		o.pool.addFlags(cmd)
		o.flags.addPoolFlags(cmd, op, a.Streams)
		if op == plan.Migrate {
			offerFrom(cmd, "into", completeInto(a))
		}
		cmd.ValidArgsFunction = completePools(a)
	case plan.Prepare:
		o.flags.addPrepareFlags(cmd)
	}
	o.flags.addIntentFlags(cmd)
	o.run.addFlags(cmd)
	a.addFrom(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, saved, err := o.complete(cmd, args)
		if err != nil {
			return err
		}
		return o.execute(cmd.Context(), p, saved)
	}
	return cmd
}

func (o *runOptions) shared() bool { return o.op == plan.Prepare || o.op == plan.Unprepare }

// complete turns arguments and flags into a planner, and reads the saved plan if
// there is one. Nothing is asked of the cluster yet.
func (o *runOptions) complete(cmd *cobra.Command, args []string) (*planner, *plan.Plan, error) {
	args = o.takeFile(args)
	if o.shared() && len(args) > 0 {
		return nil, nil, usageError("unexpected argument %q: %s is for the whole cluster", args[0], o.verb)
	}
	if err := o.pool.complete(args); err != nil {
		return nil, nil, err
	}
	if err := o.views.complete(); err != nil {
		return nil, nil, err
	}
	if o.app.offline() && o.run.dryRun != "client" {
		return nil, nil, usageError("--from is for reading: give --dry-run=client with it")
	}
	if err := o.run.validate(); err != nil {
		return nil, nil, err
	}
	p, saved, err := o.planned(cmd)
	// A pool that is named like a file may be a file that is not there, which is the
	// better thing to say, and which the cluster tells.
	if err == nil && !planFileEnding(o.pool.arg) {
		err = o.run.askable(o.app.Streams)
	}
	return p, saved, err
}

// planned is the planner, and the saved plan if there is one.
func (o *runOptions) planned(cmd *cobra.Command) (*planner, *plan.Plan, error) {
	if o.run.file != "" {
		return o.fromFile(cmd)
	}
	if o.run.edited {
		return nil, nil, usageError("--allow-edited is for a saved plan: give its file")
	}
	p, err := o.flags.planner(o.app, o.op, &o.pool)
	return p, nil, err
}

// execute shows the plan, asks, and runs it.
func (o *runOptions) execute(ctx context.Context, p *planner, saved *plan.Plan) error {
	p.runs = !o.app.offline()
	now, seen, err := p.look(ctx)
	if saved != nil {
		now, err = o.review(saved, now, seen, err)
	}
	if err == nil {
		err = o.run.askable(o.app.Streams)
	}
	if err != nil {
		return err
	}
	if o.run.dryRun == "none" && !o.shared() && now.Pending() && now.Settings.HelperImage == "" {
		return usageError("give the image of the helper pods by --helper-image or the variable %s; no earlier run of the pool has named one", helperImageVariable)
	}
	if err := o.views.print(now); err != nil {
		return err
	}
	o.app.tellIdle(now.Settings.Skips, now.Findings)
	switch code := verdict(now.Findings); {
	case code == ExitBlocked:
		return withCode(code, "the plan has blockers, see above; nothing was changed")
	case code == ExitUnknown:
		return withCode(code, "something that has to be seen could not be read, see above; nothing was changed")
	case !now.Pending():
		fmt.Fprintln(o.app.Err, "Nothing to do.")
		return nil
	case o.run.dryRun == "client":
		return nil
	case o.run.dryRun == "server":
		return o.app.dryRunServer(ctx, now)
	}
	if err := o.confirm(ctx, now); err != nil {
		return err
	}
	return o.start(ctx, now, engine.Payload{Replan: p.plan, Saved: saved != nil})
}

// confirm asks for the pool's name, or the verb's for shared objects.
func (o *runOptions) confirm(ctx context.Context, p *plan.Plan) error {
	if o.run.yes {
		return nil
	}
	want, what := o.verb, "the verb"
	if p.Pool != nil {
		want, what = p.Pool.Name, "the pool's name"
	}
	return o.app.ask(ctx, fmt.Sprintf("Type %s, %s, to go on: ", what, report.Clean(want)), want)
}

// ask reads one line and compares it. An end of the input is a no.
func (a *app) ask(ctx context.Context, question, want string) error {
	fmt.Fprint(a.Err, question)
	text, err := interruptible(ctx, func() (string, error) { return bufio.NewReader(a.In).ReadString('\n') })
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(a.Err)
		return context.Cause(ctx)
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("read the answer: %w", err)
	case strings.TrimSpace(text) != want:
		return withCode(ExitInterrupted, "not confirmed; nothing was changed")
	}
	return nil
}

// start hands the plan to the engine and shows its events.
func (o *runOptions) start(ctx context.Context, now *plan.Plan, payload engine.Payload) error {
	config, err := o.app.Config()
	if err != nil {
		return err
	}
	progress := o.app.progress()
	runner, err := o.app.newRunner(engine.Deps{
		Config: config, Clock: o.app.Clock(), Sink: progress.Event, Namespace: now.Namespace,
		Holder: engine.DefaultHolder(), ToolVersion: o.app.build.Version,
		LockTTL: o.run.lockTTL, LockWait: o.run.lockWait,
	})
	if err != nil {
		progress.Close()
		return err
	}
	said := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(said)
		progress.Event(event.Warned{Stamp: event.StampAt(o.app.Clock().Now()),
			Message: "interrupted: stops at the next safe point; interrupt again to end at once"})
	})
	err = runner.Run(ctx, now, payload)
	if !unhook() {
		<-said // nothing may be shown after Close
	}
	progress.Close()
	if err == nil {
		o.app.next(now)
	}
	return err
}

// progress is a live region on a terminal that a person looks at, else lines.
func (a *app) progress() report.Progress {
	if a.ErrTTY && a.lively() {
		return report.NewLive(a.styled(a.Err), a.region, a.Clock())
	}
	return report.NewLines(a.styled(a.Err))
}

// lively says that a terminal can be drawn on in place, and that a person looks at it.
func (a *app) lively() bool {
	term, _ := a.env("TERM")
	_, ci := a.env("CI")
	return !ci && term != "dumb" && a.Width != nil && a.Width() > 0
}

// next names what a person types after a run that went well.
func (a *app) next(p *plan.Plan) {
	if p.Into != nil {
		a.nextInto(p)
		return
	}
	switch p.Operation {
	case plan.Prepare:
		fmt.Fprintf(a.Err, "Prepared. Next: %[1]s pools, then %[1]s plan POOL\n", a.name)
	case plan.Migrate:
		pool := report.Clean(p.Pool.Name)
		fmt.Fprintf(a.Err, "Pool %[1]s is on DRA. Look: %[3]s verify %[2]s. Back: %[3]s rollback %[2]s\n", pool, words.Shell(pool), a.name)
	case plan.Rollback:
		fmt.Fprintf(a.Err, "Pool %s is on the device plugin again, as it was.\n", report.Clean(p.Pool.Name))
	case plan.Unprepare:
		fmt.Fprintf(a.Err, "Nothing of prepare is left but namespace %s with its journal.\n", report.Clean(p.Namespace))
	}
}

// nextInto is next for a move from one pool into another.
func (a *app) nextInto(p *plan.Plan) {
	pool, into := report.Clean(p.Pool.Name), report.Clean(p.Into.Name)
	if p.Operation == plan.Rollback {
		fmt.Fprintf(a.Err, "Pool %s is open again, as it was. The nodes of pool %s stay closed.\n", pool, into)
		return
	}
	fmt.Fprintf(a.Err, "The workloads of pool %[1]s went into pool %[2]s; its nodes stay closed, and may be removed. Look: %[4]s verify %[3]s. Back, as long as they are there: %[4]s rollback %[3]s\n", pool, into, words.Shell(pool), a.name)
}
