package checks

import (
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// drm004: some platforms run the plugin as a service of the node (AKS managed GPU
// pools, Bottlerocket) or inside their node runtime (EKS Auto Mode). No label of a
// node switches that off.
func drm004() Check {
	return Check{
		Code:       "DRM004",
		Title:      "Nodes advertise devices without a plugin DaemonSet",
		Operations: []string{Prepare, Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			bare := nodeGroups{}
			for _, v := range in.targets() {
				n, _ := v.Allocatable(in.Resource)
				served := slices.ContainsFunc(in.Inventory.PluginsFor(in.Resource), func(p gate.PluginDaemonSet) bool {
					return p.Role == gate.DevicePlugin && slices.Contains(p.Nodes, v.Node.Name)
				})
				if n > 0 && !served {
					bare.add("advertises "+in.Resource+", but no pod of a device plugin's DaemonSet runs there", v.Node.Name)
				}
			}
			return bare.findings(in, Finding{
				Code:     "DRM004",
				Severity: Blocker,
				Remedy:   "a plugin that is part of the node cannot be switched off in place: make a new pool without it, with the DRA driver, and move the workloads there",
			})
		},
	}
}
