package checks

import "github.com/dramigrate/dramigrate/internal/cluster"

func drm060() Check {
	return Check{
		Code:        "DRM060",
		Title:       "A vendor's controller is at work on a node",
		Why:         "While a vendor's controller is at work on a node it has its own labels in a state between two, and cordons, drains and uncordons as it likes. NVIDIA's driver manager puts back what it found, so that a label written meanwhile is lost.",
		Fix:         "Wait until the controller is done, and plan again.",
		Sources:     []string{"NVIDIA/k8s-driver-manager, cmd/driver-manager/main.go"},
		Unskippable: true,
		Operations:  []string{Migrate, Rollback},
		Needs:       []string{cluster.PartDaemonSets}, // whose gate it is
		Run: func(in Input) []Finding {
			busy := nodeGroups{}
			for _, v := range in.seen() {
				if label := in.Gate.Busy(v.Node.Labels); label != "" {
					busy.add("label "+label+": the GPU Operator is reloading the driver there, and the plugin comes back with it", v.Node.Name)
				}
			}
			return busy.findings(in, Finding{
				Code: "DRM060", Severity: Blocker,
				Remedy: "wait until the label is as before (`kubectl get node NODE -L " + pluginSwitch + "`), then plan again",
			})
		},
	}
}
