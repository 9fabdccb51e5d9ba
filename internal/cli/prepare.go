package cli

import (
	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/plan"
)

func newPrepare(a *app) *cobra.Command {
	return newRunVerb(a, plan.Prepare, &cobra.Command{
		Use:   "prepare",
		Short: "Change the shared objects, once a cluster: the tool's namespace, plugin and driver DaemonSets",
		Long: `Change what all pools share, once: make the tool's namespace, keep the device plugin's
DaemonSets off nodes that will be switched, and install the DRA driver so that it runs
on switched nodes alone. The plan names each pod that restarts; no node is switched.

Where the vendor has a switch of its own (GPU Operator, GKE), its DaemonSet stays as it is.
A DaemonSet that Helm, Argo CD, Flux, an EKS add-on or another tool owns is not edited: the
plan shows the chart values, or the part of the manifest, that its owner has to change.
--wait-for-owner waits until that has arrived.`,
		Example: `  dramigrate prepare --driver-manifests ./driver
  dramigrate prepare --plugin-rollout on-delete
  dramigrate prepare --wait-for-owner=30m`,
	})
}
