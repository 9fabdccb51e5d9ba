package cli

import "github.com/spf13/cobra"

// addProbeGate lets a reading verb ask the server about the feature gate.
func addProbeGate(cmd *cobra.Command, probe *bool) {
	cmd.Flags().BoolVar(probe, "probe-gate", false,
		"ask the API server whether DRAExtendedResource is on, by a DeviceClass that it does not store (a dry run on the server); needs the right to create deviceclasses, writes nothing")
}
