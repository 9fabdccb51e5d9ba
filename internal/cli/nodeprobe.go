package cli

import (
	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/nodeprobe"
)

// newNodeProbe is the verb that runs on a node, in a pod which another verb makes.
func newNodeProbe(app *app) *cobra.Command {
	var o nodeprobe.Options
	format := newFormat("json")
	cmd := &cobra.Command{
		Use:   "node-probe --node NAME",
		Short: "Ask the kubelet of this node who holds which devices (runs on the node)",
		Long: `node-probe asks the kubelet of the node that it runs on, by the PodResources API,
which devices are advertised by device plugins, and which containers hold which
devices. Its List call also makes the kubelet forget the devices of pods that are
gone, which DRA needs on kubelets up to 1.37.2.

The other verbs run it in a short pod as root, with ` + nodeprobe.DefaultSocket + `
mounted. It prints one line of JSON. Exit code 7 says that a part of it is unknown.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Node == "" {
				return usageError("--node is required")
			}
			if o.Timeout <= 0 {
				return usageError("--timeout must be positive")
			}
			exit, err := nodeprobe.Run(cmd.Context(), o, app.Out)
			switch {
			case err != nil:
				return &codeError{exit, err}
			case exit != ExitOK:
				return silent{exit}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Node, "node", "", "name of this node, for the report")
	cmd.Flags().StringVar(&o.Socket, "socket", nodeprobe.DefaultSocket, "the kubelet's PodResources socket")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", nodeprobe.DefaultTimeout, "how long the kubelet may take to answer each of two calls")
	format.addFlag(cmd)
	return cmd
}
