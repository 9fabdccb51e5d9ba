package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/status"
)

type statusOptions struct {
	app     *app
	format  *format
	pool    poolFlags
	watch   bool
	history bool
}

func newStatus(a *app) *cobra.Command {
	o := &statusOptions{app: a, format: newFormat("table", "wide", "json", "yaml", "name")}
	cmd := &cobra.Command{
		Use:   "status [POOL]",
		Short: "Show where every node stands, what has strayed, and whether a pool could be put back",
		Long: `Show where every node with devices stands between the two mechanisms, and for each
pool its lock, its last run, and whether the device plugin would come back on it
(ROLLBACK). Pods that ask for the resource and wait or fail are listed by their owners,
with why and what to do ('dramigrate check pod/NAME' looks closer). What is not as the runs have left it is listed: nodes of a migrated pool
that came up on the plugin, labels that are not what a node's record says, nodes that a
run has left part-way, nodes that are gone. Where nodes are on DRA, what the catalogue
of checks has to say of them is listed too. Reads only; what may not be read is listed
as unknown and left out. With --from, a lock is judged by the time at which the snapshot
was taken; what kubectl has written does not tell it, and then LOCK begins with UNKNOWN.

With --watch it goes on until it is interrupted, which is exit code 0: on a terminal
the tables are drawn again in place, elsewhere each change is one line; with -o json and
yaml each change is a document.

With --history it lists the runs that the journals keep, the newest first.

Exit code 3: a node advertises devices by both mechanisms. 7: nothing could be said,
because nodes (with --history: journals) may not be read.`,
		Example: `  dramigrate status
  dramigrate status pool-a -o wide
  dramigrate status --watch
  dramigrate status --history pool-a`,
		ValidArgsFunction: completePools(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.pool.complete(args); err != nil {
				return err
			}
			switch {
			case o.watch && o.history:
				return usageError("give either --watch or --history")
			case o.watch && a.offline():
				return usageError("--watch needs the cluster: files do not change; leave --from out")
			case o.watch && o.format.value == "name":
				return usageError("--watch has no output format name")
			case o.watch:
				return o.follow(cmd.Context())
			case o.history:
				return o.runs(cmd.Context())
			}
			return o.once(cmd.Context())
		},
	}
	o.format.addFlag(cmd)
	a.addFrom(cmd)
	o.pool.addFlags(cmd)
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on and show what changes, until interrupted")
	cmd.Flags().BoolVar(&o.history, "history", false, "list the runs: who, when, by which plan, how they ended")
	return cmd
}

func (o *statusOptions) once(ctx context.Context) error {
	s, err := o.app.look(ctx, cluster.LoadOptions{Namespace: o.app.namespace})
	if err != nil {
		return err
	}
	out, err := o.gather(s)
	if err != nil {
		return err
	}
	if err := o.print(out); err != nil {
		return err
	}
	if out.Double() {
		return silent{ExitBlocked}
	}
	return nil
}

// gather makes the status of the pool that was chosen, or of all.
func (o *statusOptions) gather(s *cluster.Snapshot) (*status.Status, error) {
	options := o.app.statusOptions(s)
	options.Waiting = !o.watch // which follows neither claims nor classes
	if o.pool.given() {
		one, err := o.pool.find(s)
		if err != nil {
			return nil, err
		}
		options.Pool = &one
	}
	out := status.New(s, options)
	var pool cluster.NodePool
	if options.Pool != nil {
		pool = *options.Pool
	}
	var err error
	out.Findings, err = o.app.standing(s, pool, nil)
	return out, err
}

func (o *statusOptions) print(out *status.Status) error {
	a := o.app
	return o.format.print(a.Out, out, func() error {
		if o.format.value == "name" {
			return report.NodeNames(a.Out, out)
		}
		return report.Status(a.sheet(), out, o.format.value == "wide")
	})
}

// runs lists what the journals keep.
func (o *statusOptions) runs(ctx context.Context) error {
	a := o.app
	s, err := a.look(ctx, cluster.LoadOptions{Namespace: a.namespace})
	if err != nil {
		return err
	}
	name := o.pool.arg
	if o.pool.selector != "" {
		pool, err := o.pool.find(s)
		if err != nil {
			return err
		}
		name = pool.Name
	}
	reason, unread := s.IsUnknown(cluster.PartJournals)
	if unread {
		return withCode(ExitUnknown, "what ran cannot be said: journals could not be read: %s", reason)
	}
	if name != "" && s.Journal(name) == nil {
		if _, err := cluster.SelectPool(s, name, ""); err != nil {
			return usageError("pool %q: there is none, and no journal of one; journals are there of %s", name, journals(s))
		}
	}
	out := status.History(s, a.statusOptions(s), name)
	return o.format.print(a.Out, out, func() error {
		if o.format.value == "name" {
			return report.RunNames(a.Out, out)
		}
		return report.History(a.sheet(), out, o.format.value == "wide")
	})
}

func journals(s *cluster.Snapshot) string {
	var names []string
	for _, j := range s.Journals {
		if j.Pool != "" {
			names = append(names, j.Pool)
		}
	}
	if len(names) == 0 {
		return "no pool"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (a *app) statusOptions(s *cluster.Snapshot) status.Options {
	o := status.Options{Resource: a.resource, Driver: a.driver}
	o.Now, o.Undated = a.asOf(s)
	return o
}
