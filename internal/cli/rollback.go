package cli

import (
	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/plan"
)

func newRollback(a *app) *cobra.Command {
	return newRunVerb(a, plan.Rollback, &cobra.Command{
		Use:   "rollback [POOL|PLAN.yaml]",
		Short: "Put a pool back on the device plugin, exactly as it was",
		Long: `Put the nodes of a pool back as they were before its migration, from any point of it.
Every other pool, and every shared object, stays as it is. Works from what is recorded
on the nodes even if the journal is lost.`,
	})
}
