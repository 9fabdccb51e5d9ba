package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/engine"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/poolprobe"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/status"
)

type verifyOptions struct {
	app      *app
	format   *format
	pool     poolFlags
	canary   bool
	probe    bool
	reach    probeFlags
	lockWait time.Duration
	watch    bool
	limit    time.Duration
	textfile string
}

func newVerify(a *app) *cobra.Command {
	o := &verifyOptions{app: a, format: newFormat("table", "json", "yaml")}
	cmd := &cobra.Command{
		Use:   "verify [POOL]",
		Short: "Verify that a pool is on DRA as it has to be",
		Long: `Look at every node of a pool, from the API: is it switched, is nothing offered by the
plugin any more, are the driver and its slices there, are the published devices those
that the node had before. What the catalogue of checks has to say of nodes on DRA comes
after it (all of it: 'dramigrate check POOL --for verify'). Reads only. With --from, a
run counts as under way if it was when the snapshot was taken.

With --canary, a pod on each node asks for a device as a workload does, and what it
sees is compared with its claim. It needs a free device on the node, and holds the
pool's lock meanwhile. With --probe, each node is asked itself, by a pod as
'dramigrate probe' makes it; without it, that a device is offered by both mechanisms is
known from the API alone, which proves it and never its absence. What --helper-image,
--runtime-class and --driver-root do not say of these pods is that of --config, and what
that does not say either is taken from the last run of the pool that had helper pods.

With --watch it goes on looking, as during a soak, until it is interrupted or --for is
over: each change is one line, that of a finding as well, and the exit code is that of
the worst that was seen.
With --textfile it also writes the verdicts as Prometheus metrics, for the node
exporter's textfile collector; the file is replaced whole, at each change.

Exit code 3: a node advertises devices by both mechanisms, or all is as it has to be
and a check found a blocker. 1: something else is not as it has to be. 7: something
could not be seen.`,
		ValidArgsFunction: completePools(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.pool.complete(args); err != nil {
				return err
			}
			if err := o.reach.configure(a, &o.pool, nil); err != nil {
				return err
			}
			if err := o.pool.require(); err != nil {
				return err
			}
			if o.canary && a.offline() {
				return usageError("--canary needs a cluster: it makes pods, and --from is for reading")
			}
			if o.probe {
				if a.offline() {
					return usageError("--probe needs a cluster: it makes pods, and --from is for reading")
				}
				if err := o.reach.validate(); err != nil {
					return err
				}
			}
			if err := o.idle(cmd.Flags()); err != nil {
				return err
			}
			switch {
			case cmd.Flags().Changed("for") && !o.watch:
				return usageError("--for is how long --watch goes on; give --watch")
			case !o.watch:
				return o.run(cmd.Context())
			case a.offline():
				return usageError("--watch needs the cluster: files do not change; leave --from out")
			case o.canary || o.probe:
				return usageError("--watch makes no pods: leave --canary and --probe out")
			case o.format.value != "table":
				return usageError("--watch has no output format %s: each change is a line", o.format.value)
			case o.limit < 0:
				return usageError("--for must not be negative")
			}
			return o.follow(cmd.Context())
		},
	}
	o.format.addFlag(cmd)
	a.addFrom(cmd)
	o.pool.addFlags(cmd)
	s := cmd.Flags()
	s.BoolVar(&o.canary, "canary", false, "run a pod on each node that asks for a device as a workload does")
	s.BoolVar(&o.probe, "probe", false, "have each node say itself who offers its devices and who has them, by a short pod")
	o.reach.addFlags(cmd, a.Streams)
	s.DurationVar(&o.lockWait, "lock-wait", 0, "with --canary, how long to wait for another run to end")
	s.BoolVarP(&o.watch, "watch", "w", false, "go on looking and tell what changes, until interrupted")
	s.DurationVar(&o.limit, "for", 0, "with --watch, for how long; 0 is until interrupted")
	s.StringVar(&o.textfile, "textfile", "", "write the verdicts to this file as Prometheus metrics")
	offer(cmd, "for")
	offerFiles(cmd, "textfile", cobra.ShellCompDirectiveFilterFileExt, "prom")
	return cmd
}

// idle refuses flags of pods that are not made.
func (o *verifyOptions) idle(set *pflag.FlagSet) error {
	if !o.canary {
		if err := idle(set, "--canary", "lock-wait"); err != nil {
			return err
		}
	}
	if !o.probe {
		if err := idle(set, "--probe", "runtime-class", "driver-root", "kubelet-root", "processes", "parallel", "timeout", "keep-logs"); err != nil {
			return err
		}
	}
	if !o.canary && !o.probe {
		return idle(set, "--probe or --canary", "helper-image", "helper-pull-secret")
	}
	return nil
}

func (o *verifyOptions) run(ctx context.Context) error {
	var load cluster.LoadOptions
	if o.app.offline() {
		load.Namespace = o.app.namespace // of files, the pool's lock as well
	}
	s, err := o.app.look(ctx, load)
	if err != nil {
		return err
	}
	unseen, _ := s.IsUnknown(cluster.PartLocks)
	// No verdict rests on these, so that nothing is unknown without them.
	s.Unknown = slices.DeleteFunc(s.Unknown, func(u cluster.Unknown) bool {
		return u.Part == cluster.PartJournals || u.Part == cluster.PartLocks
	})
	pool, err := o.pool.find(s)
	if err != nil {
		return err
	}
	t := o.target(s, pool)
	t.Unseen = unseen
	v := o.app.verify(ctx, s, t)
	if o.canary || o.probe {
		if err := o.reach.recall(ctx, o.app, pool.Name); err != nil {
			return err
		}
	}
	if o.canary {
		if err := o.canaries(ctx, pool.Name, v); err != nil {
			return err
		}
	}
	var probed *poolprobe.Result
	if o.probe {
		if probed, err = o.probes(ctx, s, pool, v); err != nil {
			return err
		}
	}
	if v.Findings, err = o.app.standing(s, pool, o.reach.skipped); err != nil {
		return err
	}
	err = o.format.print(o.app.Out, v, func() error { return report.Verification(o.app.sheet(), v) })
	if err != nil {
		return err
	}
	return o.app.beside(o.writeText(v, probed), exitWith(verified(v)))
}

// target is what a verb verifies of a Snapshot.
func (o *verifyOptions) target(s *cluster.Snapshot, pool cluster.NodePool) status.Target {
	t := status.Target{Pool: pool, Resource: o.app.resource, Driver: o.app.driver, Chosen: o.pool.args()}
	t.Now, t.Undated = o.app.asOf(s)
	return t
}

// asOf is the time that a Snapshot is of; undated says that it is from files that do not
// tell, and that now stands for it.
func (a *app) asOf(s *cluster.Snapshot) (at time.Time, undated bool) {
	if !s.Taken.IsZero() {
		return s.Taken, false
	}
	return a.Clock().Now(), a.offline()
}

// verify looks at the locks as well, if there is something to advise.
func (a *app) verify(ctx context.Context, s *cluster.Snapshot, t status.Target) *status.Verification {
	v := status.Verify(ctx, s, t)
	if v.Result == status.OK {
		return v
	}
	t.Locks = map[string]cluster.LockInfo{}
	for _, pool := range status.LockPools(s, t.Pool) {
		lock, err := a.lockOf(ctx, s, pool)
		if err != nil {
			t.Unseen = err.Error()
		}
		if lock.Held() {
			t.Locks[pool] = lock
		}
	}
	if len(t.Locks) == 0 && t.Unseen == "" {
		return v
	}
	return status.Verify(ctx, s, t)
}

// lockOf is the lock of a pool.
func (a *app) lockOf(ctx context.Context, s *cluster.Snapshot, pool string) (cluster.LockInfo, error) {
	if a.offline() {
		lock, _ := s.Lock(pool)
		return lock, nil
	}
	client, err := a.Client()
	if err != nil {
		return cluster.LockInfo{}, err
	}
	lock, err := engine.Inspect(ctx, client, a.namespace, cluster.RecordName(pool))
	if apierrors.IsForbidden(err) {
		return cluster.LockInfo{}, fmt.Errorf("you may not get leases of namespace %s", a.namespace)
	}
	return lock, err
}

// beside is how a verb ends that has an outcome, and beside it a file to write: one that
// could not be written is an error, and never hides what was found.
func (a *app) beside(failed, outcome error) error {
	switch {
	case failed == nil:
		return outcome
	case outcome == nil:
		return failed
	}
	fmt.Fprintf(a.Err, "Warning: %s\n", report.Clean(failed.Error()))
	return outcome
}

// verified is the exit code of a verification.
func verified(v *status.Verification) int {
	switch v.Result {
	case status.OK:
		return verdict(v.Findings)
	case status.Double:
		return ExitBlocked
	case status.Unknown:
		return ExitUnknown
	default:
		return ExitError
	}
}

// worse is the exit code that a person has to know first of two verifications.
func worse(a, b int) int {
	order := []int{ExitBlocked, ExitError, ExitUnknown, ExitOK}
	if slices.Index(order, b) < slices.Index(order, a) {
		return b
	}
	return a
}

// exitWith is a verb's end by a code whose reason is told already.
func exitWith(code int) error {
	if code == ExitOK {
		return nil
	}
	return silent{code}
}

// canaries runs a canary on each node, under the pool's lock so that no run switches
// the node meanwhile.
func (o *verifyOptions) canaries(ctx context.Context, pool string, v *status.Verification) error {
	canary, release, err := o.app.newCanary(ctx, canaryConfig{
		namespace: o.app.namespace, pool: pool, resource: o.app.resource, driver: o.app.driver,
		image: o.reach.image, pullSecret: o.reach.pullSecret, wait: o.lockWait, holder: engine.DefaultHolder(),
	})
	if err != nil {
		return err
	}
	defer release()
	for _, n := range v.Nodes {
		if n.Left {
			continue // closed for good
		}
		look := status.Look{What: "a canary sees exactly the devices of its claim", Result: status.OK}
		switch devices, unseen, err := canary(ctx, n.Name); {
		case err != nil && ctx.Err() != nil:
			return err
		case err != nil:
			look.Result, look.Detail = status.Failed, err.Error()
		case unseen != "":
			look.Result, look.Detail = status.Unknown, unseen
		default:
			look.Detail = devices
		}
		v.Add(n.Name, look)
	}
	return nil
}

// probes asks the nodes themselves and adds what they say.
func (o *verifyOptions) probes(ctx context.Context, s *cluster.Snapshot, pool cluster.NodePool, v *status.Verification) (*poolprobe.Result, error) {
	found, err := o.reach.gather(ctx, o.app, s, pool)
	if err != nil {
		return nil, err
	}
	for i := range found.Nodes {
		n := &found.Nodes[i]
		look := status.Look{What: "by the node's own word, no device is offered or held by both mechanisms", Result: status.OK}
		switch {
		case poolprobe.IsDouble(n.Verdict):
			look.Result = status.Double
		case n.Verdict != nodeprobe.Clean:
			look.Result = status.Unknown
		}
		look.Detail = strings.Join(n.Reasons, "; ")
		if n.Error != "" {
			look.Detail = strings.TrimPrefix(look.Detail+"; "+n.Error, "; ")
		}
		v.Add(n.Name, look)
	}
	return found, nil
}
