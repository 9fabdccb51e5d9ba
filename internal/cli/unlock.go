package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/engine"
	"github.com/dramigrate/dramigrate/internal/report"
)

type unlockOptions struct {
	app    *app
	pool   string
	shared bool
	yes    bool
}

func newUnlock(a *app) *cobra.Command {
	o := &unlockOptions{app: a}
	cmd := &cobra.Command{
		Use:   "unlock POOL",
		Short: "Take a pool's lock from a run that is known to be dead",
		Long: `Show who holds a pool's lock and, when the pool's name was typed, take it from them. A
lock of a dead run expires by itself and the next run takes it over: this is for when
that cannot be waited for. The holder, should it live, stops writing at its next
renewal; until then it may still change nodes that no other run has marked.`,
		ValidArgsFunction: completePools(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.shared && len(args) == 0:
			case o.shared || len(args) != 1:
				return usageError("name one POOL, or give --shared for the lock of shared objects")
			default:
				o.pool = args[0]
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.shared, "shared", false, "the lock of shared objects (prepare, unprepare)")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask; needed where there is no terminal")
	return cmd
}

func (o *unlockOptions) run(ctx context.Context) error {
	a := o.app
	client, err := a.Client()
	if err != nil {
		return err
	}
	info, err := engine.Inspect(ctx, client, a.namespace, cluster.RecordName(o.pool))
	if err != nil {
		return err
	}
	if !info.Held() {
		fmt.Fprintf(a.Err, "lease %s/%s: nobody holds it\n", info.Namespace, info.Name)
		return nil
	}
	state := "expires at " + info.ExpiresAt.UTC().Format(time.RFC3339) + " unless it is renewed"
	if info.Expired(a.Clock().Now()) {
		state = "expired at " + info.ExpiresAt.UTC().Format(time.RFC3339)
	}
	fmt.Fprintf(a.Out, "lease %s/%s\nheld by    %s\noperation  %s\nsince      %s\nrenewed    %s\n%s\n",
		info.Namespace, info.Name, report.Clean(info.Holder), report.Clean(info.Info["operation"]),
		info.Since.UTC().Format(time.RFC3339), info.RenewedAt.UTC().Format(time.RFC3339), state)
	if !o.yes && !a.InTTY {
		return usageError("there is no terminal to ask on: give --yes to take the lock from %s", report.Clean(info.Holder))
	}
	if !o.yes {
		want := o.pool
		if o.shared {
			want = "shared"
		}
		if err := a.ask(ctx, fmt.Sprintf("If that run is dead, type %s to take its lock: ", report.Clean(want)), want); err != nil {
			return err
		}
	}
	if err := engine.Break(ctx, client, info); err != nil {
		return err
	}
	fmt.Fprintln(a.Err, "The lock is free.")
	return nil
}
