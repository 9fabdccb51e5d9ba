package checks

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// drm022: the mirror of drm017. The usual reasons are a taint of the pool that the
// driver's chart does not tolerate, and node labels that its affinity wants and that
// nothing sets on the pool.
func drm022() Check {
	return Check{
		Code:       "DRM022",
		Title:      "The driver would not come to a node",
		Operations: []string{Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
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
