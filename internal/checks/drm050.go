package checks

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm050() Check {
	return Check{
		Code:        "DRM050",
		Title:       "A node of the new pool does not offer devices by the driver",
		Why:         "Workloads are moved to nodes that serve them already. The run labels no node of the new pool: where the driver is kept to labelled nodes, the node group has to give the label, also to nodes that it makes later.",
		Fix:         "Give the node group of the new pool the label, and see that the driver's pod is ready and publishes the node's devices.",
		Sources:     []string{"k8s.io/dynamic-resource-allocation/structured, pools_stable.go, v0.37.2", "AKS docs, \"Use labels\"", "Amazon EKS API, UpdateNodegroupConfig"},
		Unskippable: true,
		Operations:  []string{MigrateInto},
		Needs:       []string{cluster.PartDaemonSets, cluster.PartPods, cluster.PartSlices},
		Run: func(in Input) []Finding {
			drivers := in.Inventory.DriversFor(in.Driver)
			if len(drivers) == 0 {
				return []Finding{{
					Code: "DRM050", Severity: Blocker, Object: "driver/" + in.Driver,
					Message: "no DaemonSet runs the driver " + in.Driver, Remedy: prepareRemedy(in),
				}}
			}
			serving := in.servingDriver()
			unlabelled, silent := nodeGroups{}, nodeGroups{}
			var bare []*corev1.Node
			for _, v := range in.targets() {
				ready, there := serving[v.Node.Name]
				devices, incomplete := cluster.DevicesOf(v.SlicesOf(in.Driver), in.Driver)
				switch {
				case cluster.ForeignCordon(v.Node): // it takes no workload
				case !there && in.keptOff(v.Node):
					unlabelled.add(fmt.Sprintf("lacks label %s=%s, without which the driver keeps off", gate.AllocationLabel, gate.ValueDRA), v.Node.Name)
					bare = append(bare, v.Node)
				case !there:
					silent.add("no pod of the driver runs there", v.Node.Name)
				case !ready:
					silent.add("the driver's pod is not ready", v.Node.Name)
				case incomplete != "":
					silent.add(incomplete, v.Node.Name)
				case len(devices) == 0:
					silent.add(in.Driver+" publishes a slice without devices", v.Node.Name)
				}
			}
			return append(
				unlabelled.findings(in, Finding{Code: "DRM050", Severity: Blocker, Remedy: labelRemedy(bare)}),
				silent.findings(in, Finding{Code: "DRM050", Severity: Blocker, Remedy: "see the driver's pod on the node and its log: `kubectl get pods -A -o wide --field-selector spec.nodeName=NODE`"})...)
		},
	}
}

// keptOff says that the gate's label is all that keeps the driver off a node.
func (in Input) keptOff(n *corev1.Node) bool {
	own := gate.OwnKey()
	now, known := own.StateOf(n.Labels)
	if known && now == gate.DRA {
		return false
	}
	for _, d := range in.Inventory.DriversFor(in.Driver) {
		asIs, _ := gate.Lands(d.DaemonSet, n)
		labelled, _ := gate.Lands(d.DaemonSet, own.With(n, gate.DRA))
		if labelled && !asIs {
			return true
		}
	}
	return false
}

// labelRemedy gives nodes the label by their node groups, and by hand where it is not
// known who makes them.
func labelRemedy(nodes []*corev1.Node) string {
	pairs := gate.AllocationLabel + "=" + gate.ValueDRA
	var commands []string
	groups := groupsOf(nodes)
	for _, name := range sortedKeys(groups) {
		all := groups[name]
		commands = append(commands, fmt.Sprintf("%s (%s)", forEach(all, all[0].label(pairs)), all[0].effect))
	}
	if len(commands) == 0 {
		return "give the node group the label " + pairs + "; for nodes that are there: `kubectl label node NODE " + pairs + "`"
	}
	return "give the node group the label: " + strings.Join(commands, "; ")
}
