package checks

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm082() Check {
	return Check{
		Code:       "DRM082",
		Title:      "The operator may replace the GPU's driver during the move",
		Why:        "With driver.upgradePolicy.autoUpgrade the operator drains nodes by itself as soon as its driver's version or configuration changes, and uncordons them afterwards, those that a run has cordoned as well. The tool's own taint keeps workloads away meanwhile, but the GPU's driver is gone under the DRA driver.",
		Fix:        "Change nothing of the operator during the window, or label the pool's nodes nvidia.com/gpu-driver-upgrade.skip=true and take that off afterwards.",
		Sources:    []string{"NVIDIA/gpu-operator, deployments/gpu-operator/values.yaml, driver.upgradePolicy", "NVIDIA/gpu-operator#2820"},
		Operations: []string{Migrate, Rollback, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto},
		Needs:      []string{cluster.PartClusterPolicies, cluster.PartNVIDIADrivers},
		Advises:    true,
		Run: func(in Input) []Finding {
			var open []string
			for _, v := range in.targets() {
				if v.Node.Labels[upgradeSkip] != "true" && v.Node.Labels[deployDriver] != "pre-installed" && in.nvidia() {
					open = append(open, v.Node.Name)
				}
			}
			if len(open) == 0 {
				return nil
			}
			for i := range in.Snapshot.Operators {
				o := &in.Snapshot.Operators[i]
				if (o.Kind != clusterPolicy && o.Kind != driverObject) || !ptr.Deref(o.AutoUpgrade, false) || !ptr.Deref(o.Driver, true) {
					continue
				}
				return []Finding{{
					Code: "DRM082", Severity: Info, Object: operatorObject(o),
					Message: fmt.Sprintf("upgrades the GPU's driver by itself (autoUpgrade), and nothing keeps it off %s", nodeList(open)),
					Remedy:  forNodes(fmt.Sprintf("`kubectl label node NODE %s=true`; afterwards the same with %s-", upgradeSkip, upgradeSkip), open),
				}}
			}
			return nil
		},
	}
}

const (
	clusterPolicy = "ClusterPolicy"
	driverObject  = "NVIDIADriver"
)
