package cli

import (
	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/plan"
)

func newApply(a *app) *cobra.Command {
	return newRunVerb(a, plan.Migrate, &cobra.Command{
		Use:   "apply [POOL|PLAN.yaml]",
		Short: "Move a pool's nodes from the device plugin to DRA",
		Long: `Plan the move of a pool, show the plan, ask for the pool's name, and do what the plan
says or stop. It can be stopped at any moment and run again, by anyone and from any
machine: it observes what is done and goes on. Interrupt once to stop at the next safe
point.

The last step waits until the kubelets have forgotten the device plugin, 5 minutes
after it left; the nodes are open by then. A kubelet that was built with another grace
needs --kubelet-grace (default 5m10s).

` + savedPlanHelp,
		Example: `  dramigrate apply pool-a --helper-image registry.example/dramigrate-helper@sha256:…
  dramigrate apply plan.yaml --yes`,
	})
}
