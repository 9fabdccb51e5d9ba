package checks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm088() Check {
	return Check{
		Code:       "DRM088",
		Title:      "Nodes that the group adds later come with the plugin",
		Why:        "A run labels the nodes that are there. A node that the group adds, replaces or repairs afterwards comes without the gate's labels, gets the plugin, and makes the pool a mixed one. The node group's own configuration has to carry the labels once the whole pool is on DRA, and not earlier: some providers also put them on the nodes that are there, which would switch these under their pods.",
		Fix:        "When the pool is on DRA, add the labels to the configuration of its node group; take them out before a rollback.",
		Sources:    []string{"GKE docs, \"Update node labels and taints for existing node pools\"", "Amazon EKS API, UpdateNodegroupConfig", "AKS docs, \"Use labels\"", "Karpenter docs, \"Drift\"", "openshift/api, machine/v1beta1, MachineSet"},
		Operations: []string{Migrate, Verify},
		Advises:    true,
		Needs:      []string{cluster.PartDaemonSets, cluster.PartSlices}, // whose gate it is, and which nodes have devices
		Run: func(in Input) []Finding {
			var here []*corev1.Node
			var first time.Time // when the first node of the pool had been moved
			targets := in.targets()
			if len(targets) == 0 || !in.anyDevices() {
				return nil
			}
			for _, v := range in.seen() {
				if state, _ := in.Gate.StateOf(v.Node.Labels); state != gate.DRA {
					continue
				}
				st, err := cluster.ParseNodeState(v.Node)
				if err == nil && st != nil && st.Operation == Migrate && st.OpenedAt != nil && (first.IsZero() || st.OpenedAt.Time.Before(first)) {
					first = st.OpenedAt.Time
				}
			}
			late := nodeGroups{}
			for _, v := range targets {
				if !in.withoutDaemonSet(v) { // or else the label would not keep its plugin away (DRM004)
					here = append(here, v.Node)
				}
				if !first.IsZero() && unmarked(v.Node) && v.Node.CreationTimestamp.After(first) {
					late.add("came after the pool's first node had been moved, and without its labels", v.Node.Name)
				}
			}
			pairs := in.labelsOf(gate.DRA)
			var out []Finding
			var commands []string
			groups := groupsOf(here)
			for _, name := range sortedKeys(groups) {
				all := groups[name]
				command := forEach(all, all[0].label(pairs))
				commands = append(commands, command)
				out = append(out, Finding{
					Code: "DRM088", Severity: Info, Object: groupObject(all),
					Message: fmt.Sprintf("nodes that %s adds to %s later need %s; without, they come with the plugin", name, groupNames(all), pairs),
					Remedy:  "when the whole pool is on DRA, not earlier: " + command + " (" + all[0].effect + "); take it out before a rollback",
				})
			}
			remedy := "move them with this run, and give the node group's configuration the labels " + pairs
			if len(commands) > 0 {
				remedy += ": " + strings.Join(commands, "; ")
			}
			return slices.Concat(late.findings(in, Finding{Code: "DRM088", Severity: Warning, Remedy: remedy}), out)
		},
	}
}

// unmarked says that no run has begun with a node.
func unmarked(n *corev1.Node) bool {
	_, marked := n.Annotations[gate.StateAnnotation]
	return !marked
}

// labelsOf are the labels of a state of the gate, as "key=value,key=value".
func (in Input) labelsOf(state gate.State) string {
	var out []string
	labels := in.Gate.Labels[state]
	for _, key := range sortedKeys(labels) {
		if labels[key] != "" {
			out = append(out, key+"="+labels[key])
		}
	}
	return strings.Join(out, ",")
}
