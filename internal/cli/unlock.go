package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/engine"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/words"
)

type unlockOptions struct {
	app    *app
	pool   string
	shared bool
	yes    bool
	holder string
}

func newUnlock(a *app) *cobra.Command {
	o := &unlockOptions{app: a}
	cmd := &cobra.Command{
		Use:   "unlock POOL",
		Short: "Take a pool's lock from a run that is known to be dead",
		Long: `Show who holds a pool's lock and, when the pool's name was typed, take it from them. A
lock of a dead run expires by itself and the next run takes it over: this is for when
that cannot be waited for. The holder, should it live, stops writing at its next
renewal; until then it may still change nodes that no other run has marked.

With --yes nobody is asked: alone it takes only a lock that has expired by its own times,
and only after it has watched for a third of the lock's duration (20 seconds, as the tool
sets it) that nobody renews it: if this machine's clock is ahead, a lock that lives looks
expired. --holder, with the holder as it was shown, takes one that has not expired as
well, does not watch, and never takes that of a run that came after.

Exit code 5: the lock is held by a run that may be alive, or not by the holder that was
named; nothing was taken.`,
		Example: `  dramigrate unlock pool-a
  dramigrate unlock pool-a --yes
  dramigrate unlock pool-a --yes --holder she@host/5f1c…`,
		ValidArgsFunction: completePools(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.shared && len(args) == 0:
			case o.shared || len(args) != 1:
				return usageError("name one POOL, or give --shared for the lock of shared objects")
			default:
				o.pool = args[0]
			}
			if o.holder == "" && cmd.Flags().Changed("holder") {
				return usageError("--holder: name the holder, as `%s` shows it", unlockOf(o.pool))
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.shared, "shared", false, "the lock of shared objects (prepare, unprepare)")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask; needed where there is no terminal; alone it takes only a lock that has expired and is not renewed")
	cmd.Flags().StringVar(&o.holder, "holder", "", "take the lock from this holder and no other, even if it has not expired; as unlock shows it")
	offer(cmd, "holder")
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
	holder, expires := report.Clean(info.Holder), info.ExpiresAt.UTC().Format(time.RFC3339)
	expired := info.Expired(a.Clock().Now())
	state := "expires at " + expires + " unless it is renewed"
	if expired {
		state = "expired at " + expires
	}
	fmt.Fprintf(a.Out, "lease %s/%s\nheld by    %s\noperation  %s\nsince      %s\nrenewed    %s\n%s\n",
		info.Namespace, info.Name, holder, report.Clean(info.Info["operation"]),
		info.Since.UTC().Format(time.RFC3339), info.RenewedAt.UTC().Format(time.RFC3339), state)
	named := o.holder != ""
	switch {
	case named && o.holder != info.Holder && o.holder != holder:
		return withCode(ExitLocked, "lease %s/%s: is held by %s, not by %s; nothing was taken", info.Namespace, info.Name, holder, o.holder)
	case !o.yes && !a.InTTY && !named && !expired:
		return usageError("there is no terminal to ask on: give --yes and --holder %s to take the lock, which has not expired", words.Quoted(holder))
	case !o.yes && !a.InTTY:
		return usageError("there is no terminal to ask on: give --yes to take the lock from %s", holder)
	case o.yes && !named && !expired:
		return withCode(ExitLocked, "lease %s/%s: %s may be alive: its lock expires at %s unless it is renewed, and --yes alone takes one that has expired; wait until then, or add --holder %s to take it all the same",
			info.Namespace, info.Name, holder, expires, words.Quoted(holder))
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
	if o.yes && !named {
		fmt.Fprintf(a.Err, "lease %s/%s: watching for %s whether %s renews it\n", info.Namespace, info.Name, engine.QuietFor(info), holder)
		err = engine.BreakExpired(ctx, client, info, a.Clock())
	} else {
		err = engine.Break(ctx, client, info)
	}
	var locked *engine.LockedError
	switch {
	case errors.As(err, &locked) && locked.Holder == info.Holder && locked.Epoch == info.Epoch:
		return withCode(ExitLocked, "lease %s/%s: %s may be alive: its lock, which had expired by this machine's clock, changed while it was watched; nothing was taken: look at it again, or add --holder %s to take it all the same",
			info.Namespace, info.Name, holder, words.Quoted(holder))
	case locked != nil:
		return withCode(ExitLocked, "lease %s/%s: is not as it was shown any more: %s holds it, until %s unless it is renewed; nothing was taken: look at it again",
			info.Namespace, info.Name, report.Clean(locked.Holder), locked.ExpiresAt.UTC().Format(time.RFC3339))
	case err != nil:
		return err
	}
	fmt.Fprintln(a.Err, "The lock is free.")
	return nil
}
