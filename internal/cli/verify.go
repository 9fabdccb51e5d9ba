package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/engine"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/status"
)

type verifyOptions struct {
	app        *app
	format     *format
	pool       poolFlags
	canary     bool
	image      string
	pullSecret string
	lockWait   time.Duration
}

func newVerify(a *app) *cobra.Command {
	o := &verifyOptions{app: a, format: newFormat("table", "json", "yaml")}
	cmd := &cobra.Command{
		Use:   "verify [POOL]",
		Short: "Verify that a pool is on DRA as it has to be",
		Long: `Look at every node of a pool, from the API: is it switched, is nothing offered by the
plugin any more, are the driver and its slices there, are the published devices those
that the node had before. What the catalogue of checks has to say of nodes on DRA comes
after it (all of it: 'dramigrate check POOL --for verify'). Reads only.

With --canary, a pod on each node asks for a device as a workload does, and what it
sees is compared with its claim. It needs a free device on the node, and holds the
pool's lock meanwhile.

Exit code 3: a node advertises devices by both mechanisms, or all is as it has to be
and a check found a blocker. 1: something else is not as it has to be. 7: something
could not be seen.`,
		ValidArgsFunction: completePools(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.pool.complete(args); err != nil {
				return err
			}
			if err := o.pool.require(); err != nil {
				return err
			}
			if o.canary && a.offline() {
				return usageError("--canary needs a cluster: it makes pods, and --from is for reading")
			}
			if o.canary && o.image == "" {
				return usageError("--canary needs --helper-image or the variable %s", helperImageVariable)
			}
			return o.run(cmd.Context())
		},
	}
	image, _ := a.env(helperImageVariable)
	o.format.addFlag(cmd)
	a.addFrom(cmd)
	o.pool.addFlags(cmd)
	s := cmd.Flags()
	s.BoolVar(&o.canary, "canary", false, "run a pod on each node that asks for a device as a workload does")
	s.StringVar(&o.image, "helper-image", image, "image of the canary ["+helperImageVariable+"]")
	s.StringVar(&o.pullSecret, "helper-pull-secret", "", "Secret of the tool's namespace to pull the image with")
	s.DurationVar(&o.lockWait, "lock-wait", 0, "with --canary, how long to wait for another run to end")
	return cmd
}

func (o *verifyOptions) run(ctx context.Context) error {
	s, err := o.app.look(ctx, cluster.LoadOptions{})
	if err != nil {
		return err
	}
	pool, err := o.pool.find(s)
	if err != nil {
		return err
	}
	v := status.Verify(ctx, s, status.Target{Pool: pool, Resource: o.app.resource, Driver: o.app.driver, Now: o.app.Clock().Now()})
	if o.canary {
		if err := o.canaries(ctx, pool.Name, v); err != nil {
			return err
		}
	}
	if v.Findings, err = o.app.standing(s, pool); err != nil {
		return err
	}
	err = o.format.print(o.app.Out, v, func() error { return report.Verification(o.app.sheet(), v) })
	if err != nil {
		return err
	}
	if code := verdict(v.Findings); v.Result == status.OK && code != ExitOK {
		return silent{code}
	}
	return verified(v.Result)
}

// verified is the exit code of a verification.
func verified(r status.Result) error {
	switch r {
	case status.OK:
		return nil
	case status.Double:
		return silent{ExitBlocked}
	case status.Unknown:
		return silent{ExitUnknown}
	default:
		return silent{ExitError}
	}
}

// canaries runs a canary on each node, under the pool's lock so that no run switches
// the node meanwhile.
func (o *verifyOptions) canaries(ctx context.Context, pool string, v *status.Verification) error {
	canary, release, err := o.app.newCanary(ctx, canaryConfig{
		namespace: o.app.namespace, pool: pool, resource: o.app.resource, driver: o.app.driver,
		image: o.image, pullSecret: o.pullSecret, wait: o.lockWait, holder: engine.DefaultHolder(),
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
