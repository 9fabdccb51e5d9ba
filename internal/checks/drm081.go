package checks

import (
	"fmt"
	"slices"
)

func drm081() Check {
	return Check{
		Code:       "DRM081",
		Title:      "The operator is replacing the GPU's driver on a node",
		Why:        "The upgrade of the kernel driver goes through states on a node label: it cordons, drains, restarts the driver's pod, and at the end uncordons whoever had cordoned the node. A node that waits for its upgrade and is cordoned by somebody else is taken at once, whatever the limit on parallel upgrades.",
		Fix:        "Wait until the state is upgrade-done, or keep the pool out of upgrades by the label nvidia.com/gpu-driver-upgrade.skip=true.",
		Sources:    []string{"NVIDIA/k8s-operator-libs, pkg/upgrade/consts.go, common_manager.go", "NVIDIA/gpu-operator#2820", "NVIDIA/k8s-driver-manager#212"},
		Operations: []string{Migrate, Rollback, Verify, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto},
		Run: func(in Input) []Finding {
			busy, failed := nodeGroups{}, nodeGroups{}
			for _, v := range in.targets() {
				switch state := v.Node.Labels[upgradeState]; state {
				case "", "upgrade-done":
				case "upgrade-failed":
					failed.add(fmt.Sprintf("label %s=%s: the GPU's driver may not be the one that its containers expect", upgradeState, state), v.Node.Name)
				default:
					if state == "upgrade-required" && v.Node.Labels[upgradeSkip] == "true" {
						continue // it waits, and is left alone
					}
					busy.add(fmt.Sprintf("label %s=%s: its driver upgrade is under way, in which the operator drains and at the end uncordons it", upgradeState, state), v.Node.Name)
				}
			}
			return slices.Concat(
				busy.findings(in, Finding{
					Code: "DRM081", Severity: in.stops(),
					Remedy: fmt.Sprintf("wait until the label is upgrade-done; where it is upgrade-required, `kubectl label node NODE %s=true` keeps the operator away until the label is taken off again", upgradeSkip),
				}),
				failed.findings(in, Finding{
					Code: "DRM081", Severity: in.stops(),
					Remedy: "see the driver's pod on the node and finish the upgrade, or take the node out of the pool",
				}))
		},
	}
}

// Labels of the operator's driver upgrade.
const (
	upgradeState = "nvidia.com/gpu-driver-upgrade-state"
	upgradeSkip  = "nvidia.com/gpu-driver-upgrade.skip"
)
