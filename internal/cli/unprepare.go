package cli

import (
	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/plan"
)

func newUnprepare(a *app) *cobra.Command {
	return newRunVerb(a, plan.Unprepare, &cobra.Command{
		Use:   "unprepare",
		Short: "Take back what prepare did, when no node uses it any more",
		Long: `Remove the DeviceClass and the driver that this tool made and put the device plugin's
DaemonSets back as they were. Refused as long as a node of the cluster is switched or a
claim of the driver is allocated.`,
	})
}
