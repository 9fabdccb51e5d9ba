package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/words"
)

// savedPlanHelp tells in the long help of the verbs what becomes of a saved plan.
const savedPlanHelp = `A plan saved by 'dramigrate plan --out' runs as it was reviewed: by --plan FILE, or by
the file in place of POOL (one that exists and ends in .yaml, .yml or .json; a pool of
that name is chosen by --pool). Pods that came and went do no harm. If nodes,
DaemonSets, the class, budgets, the driver or blockers are not what they were, if it is
for another cluster, or if it was applied already, nothing is done and the difference is
shown (exit code 4). One whose run stopped part-way goes on.`

// takeFile takes the plan's file from the arguments, if the one that is given is the
// name of one. A pool of that name can still be chosen by --pool.
func (o *runOptions) takeFile(args []string) []string {
	if o.run.file == "" && len(args) == 1 && isPlanFile(args[0]) {
		o.run.file = args[0]
		return nil
	}
	return args
}

// planFileEnding says that a name is that of a file rather than of a pool.
func planFileEnding(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

func isPlanFile(name string) bool {
	if !planFileEnding(name) {
		return false
	}
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// planSettings are the flags whose values a saved plan holds already.
var planSettings = []string{"config", "selector", "pool", "max-unavailable", "drain", "drain-timeout", "delete-emptydir-data",
	"evict-unmanaged", "soak", "kubelet-grace", "helper-image", "helper-pull-secret", "runtime-class", "driver-root",
	"plugin-rollout", "edit-owned", "wait-for-owner", "skip", "skip-reason",
	"resource", "driver", "tool-namespace", "into"}

func (o *runOptions) fromFile(cmd *cobra.Command) (*planner, *plan.Plan, error) {
	for _, name := range planSettings {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			return nil, nil, usageError("a plan is run as it was saved: leave --%s out, or make the plan anew with it", name)
		}
	}
	saved, err := o.readPlan()
	if err != nil {
		return nil, nil, err
	}
	if saved.Operation != o.op {
		return nil, nil, o.otherOperation(saved)
	}
	if o.pool.arg != "" && o.pool.arg != saved.Pool.Name {
		return nil, nil, usageError("--plan %s: is a plan for pool %s, not for %s", o.run.file, saved.Pool.Name, o.pool.arg)
	}
	if err := saved.Settings.Validate(saved.Operation); err != nil {
		return nil, nil, usageError("--plan %s: settings: %w", o.run.file, err)
	}
	if !o.shared() && saved.Settings.HelperImage == "" {
		return nil, nil, usageError("--plan %s: was made without --helper-image and cannot be run: make it anew with the image", o.run.file)
	}
	manifests, err := o.flags.readManifests()
	switch {
	case err != nil:
		return nil, nil, err
	case manifests == nil && saved.Operation == plan.Prepare && saved.Driver.Source != "" && saved.Driver.Source != plan.SourceInstalled:
		return nil, nil, usageError("--plan %s: was made of the driver's manifests: give the same folder by --driver-manifests; the plan knows them by their digest", o.run.file)
	}
	p := &planner{
		app: o.app, op: saved.Operation, saved: true, settings: saved.Settings, manifests: manifests,
		namespace: saved.Namespace, resource: saved.Resource, driver: saved.Driver.Name,
	}
	if saved.Pool != nil {
		p.pool = &poolFlags{selector: saved.Pool.Selector, name: saved.Pool.Name}
	}
	if saved.Into != nil && saved.Operation == plan.Migrate {
		p.into = &poolFlags{selector: saved.Into.Selector, name: saved.Into.Name}
	}
	return p, saved, nil
}

// otherOperation says which verb runs the plan, and how to get one for this verb.
func (o *runOptions) otherOperation(saved *plan.Plan) error {
	pool := ""
	if saved.Pool != nil && !o.shared() {
		pool = " " + words.Shell(saved.Pool.Name)
	} else if !o.shared() {
		pool = " POOL"
	}
	return usageError("--plan %s: is a plan to %s, which `dramigrate %s` runs; one to %s is made by `dramigrate plan%s --for %s --out FILE`",
		o.run.file, saved.Operation, saved.Operation.Verb(), o.op, pool, o.verb)
}

// readPlan reads the file. One that was edited by hand goes on under the digest of
// what it says now, so that the journal does not take it for the plan that it was.
func (o *runOptions) readPlan() (*plan.Plan, error) {
	data, err := os.ReadFile(o.run.file)
	if err != nil {
		return nil, fmt.Errorf("--plan: %w", err)
	}
	saved, edited, err := plan.ParseEdited(data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--plan %s: %w", o.run.file, err)
	case edited != nil && !o.run.edited:
		return nil, fmt.Errorf("--plan %s: %w; make a new plan, or give --allow-edited to run it if its steps are what its settings ask for",
			o.run.file, edited)
	case edited != nil:
		if saved.Digest, err = plan.ComputeDigest(saved); err != nil {
			return nil, err
		}
	}
	if pooled := saved.Operation == plan.Migrate || saved.Operation == plan.Rollback; pooled != (saved.Pool != nil) {
		return nil, fmt.Errorf("--plan %s: %w", o.run.file, &plan.FileError{
			Reason: "not a plan of this version: it must name a pool to migrate or to roll back, and none otherwise"})
	}
	return saved, nil
}

// review compares the saved plan with the one that is made now and says what has
// moved. What it returns is what is left of the saved plan, to run. err is why no plan
// could be made now.
func (o *runOptions) review(saved, now *plan.Plan, seen *cluster.Snapshot, err error) (*plan.Plan, error) {
	if seen == nil {
		return nil, err
	}
	if why := saved.Elsewhere(seen.Identity); why != "" {
		return nil, o.refused(why)
	}
	if err != nil {
		if exitCode(err) == ExitUsage { // the pool is not there any more
			err = withCode(ExitRefused, "--plan %s: the cluster asks for another plan now: %w; look at a new plan", o.run.file, err)
		}
		return nil, err
	}
	pool := ""
	if saved.Pool != nil {
		pool = saved.Pool.Name
	}
	var runs []cluster.RunRecord
	if journal := seen.Journal(pool); journal != nil {
		runs = journal.Runs
	}
	look := plan.Compare(saved, now, runs)
	if lock, held := seen.Lock(pool); !look.Runs() && held && !lock.Expired(o.app.Clock().Now()) {
		return nil, withCode(ExitLocked, "--plan %s: another run is under way, by %s: %s; wait for its end, then look at the plan again; `%s` shows the holder",
			o.run.file, report.Clean(lock.Holder), some(look.Reasons), unlockOf(pool))
	}
	switch {
	case look.Verdict == plan.Refused:
		return nil, o.refused(some(look.Reasons))
	case !look.Runs():
		return nil, withCode(ExitRefused, "--plan %s: the cluster asks for another plan now: %s; look at a new plan", o.run.file, some(look.Reasons))
	}
	o.tell(look)
	return plan.Rebase(saved, now), nil
}

// unlockOf is the command that shows who holds the lock of a pool; that of the shared
// objects has no name.
func unlockOf(pool string) string {
	if pool == "" {
		return "dramigrate unlock --shared"
	}
	return words.Shell("dramigrate", "unlock", pool)
}

// tell says what is not as it was when the plan was reviewed.
func (o *runOptions) tell(look plan.Staleness) {
	if look.Resumes != "" {
		text := "Goes on with run " + look.Resumes + " of this plan"
		if len(look.Done) > 0 {
			text += "; done already: " + strings.Join(look.Done, ", ")
		}
		fmt.Fprintln(o.app.Err, report.Clean(text)+".")
	}
	if len(look.Moved) > 0 {
		fmt.Fprintf(o.app.Err, "Changed since the plan was made, without harm to it: %s.\n", some(look.Moved))
	}
}

func (o *runOptions) refused(why string) error {
	return withCode(ExitRefused, "--plan %s: is not run: %s", o.run.file, report.Clean(why))
}

// some is the beginning of a list, safe to print, and the number of what is left out.
func some(list []string) string {
	const most = 8
	more := ""
	if len(list) > most {
		list, more = list[:most], fmt.Sprintf("; and %d more", len(list)-most)
	}
	return report.Clean(strings.Join(list, "; ")) + more
}
