package checks

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm017() Check {
	return Check{
		Code:        "DRM017",
		Title:       "The plugin would not come back to a node",
		Why:         "After a rollback the plugin has to come back to every node. A taint or a label that has changed meanwhile would keep it away, and the node without GPUs.",
		Fix:         "Make the plugin's DaemonSet fit the node again.",
		Sources:     []string{"k8s.io/component-helpers/scheduling/corev1/nodeaffinity", "pkg/controller/daemon/daemon_controller.go, v1.37.2"},
		Unskippable: true,
		Operations:  []string{Rollback},
		Needs:       []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			var plugins []*appsv1.DaemonSet
			for _, p := range in.Inventory.PluginsFor(in.Resource) {
				if p.Role == gate.DevicePlugin {
					plugins = append(plugins, p.DaemonSet)
				}
			}
			return in.stranded(plugins, gate.Plugin, "no DaemonSet of a device plugin for "+in.Resource+" is left").findings(in, Finding{
				Code:     "DRM017",
				Severity: Blocker,
				Remedy:   "make the plugin's DaemonSet fit the node again: its node selector, affinity and tolerations against the node's labels and taints",
			})
		},
	}
}

// stranded are the nodes on which none of the DaemonSets would run once the node is
// in the state.
func (in Input) stranded(daemonSets []*appsv1.DaemonSet, state gate.State, none string) nodeGroups {
	out := nodeGroups{}
	for _, v := range in.targets() {
		node := in.Gate.With(v.Node, state)
		var reasons []string
		landed := false
		for _, ds := range daemonSets {
			lands, why := gate.Lands(ds, node)
			landed = landed || lands
			reasons = append(reasons, daemonSetObject(ds)+": "+why)
		}
		switch {
		case landed:
		case len(daemonSets) == 0:
			out.add(none, v.Node.Name)
		default:
			out.add(strings.Join(reasons, "; "), v.Node.Name)
		}
	}
	return out
}
