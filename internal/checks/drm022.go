package checks

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm022() Check {
	return Check{
		Code:        "DRM022",
		Title:       "The driver would not come to a node",
		Why:         "The driver has to come to every node that is switched. The usual reasons why it does not are a taint of the pool that the driver's chart does not tolerate, and node labels that its affinity wants and that nothing sets on the pool.",
		Fix:         "Make the driver's DaemonSet fit the node: its node selector, affinity and tolerations.",
		Sources:     []string{"kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm, values.yaml", "pkg/controller/daemon/daemon_controller.go, v1.37.2"},
		Unskippable: true,
		Operations:  []string{Migrate},
		Needs:       []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			var drivers []*appsv1.DaemonSet
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				drivers = append(drivers, d.DaemonSet)
			}
			if len(drivers) == 0 {
				return nil // DRM015 says so
			}
			return in.stranded(drivers, gate.DRA, "").findings(in, Finding{
				Code:     "DRM022",
				Severity: Blocker,
				Remedy:   "make the driver's DaemonSet fit the node: its node selector, affinity and tolerations against the node's labels and taints",
			})
		},
	}
}
