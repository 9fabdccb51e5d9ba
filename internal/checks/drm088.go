package checks

import (
	"fmt"
	"slices"
	"strings"

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
		Operations: []string{Migrate},
		Advises:    true,
		Run: func(in Input) []Finding {
			var moved, here []*corev1.Node
			targets := in.targets()
			if len(targets) == 0 {
				return nil
			}
			for _, v := range in.seen() {
				if state, _ := in.Gate.StateOf(v.Node.Labels); state == gate.DRA {
					moved = append(moved, v.Node)
				}
			}
			late := nodeGroups{}
			for _, v := range targets {
				here = append(here, v.Node)
				if after(v.Node, moved) {
					late.add("came after the pool's other nodes had been moved, and without their labels", v.Node.Name)
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

// after says that a node that no run has touched is younger than the move of others.
func after(n *corev1.Node, moved []*corev1.Node) bool {
	if st, err := cluster.ParseNodeState(n); st != nil || err != nil || n.CreationTimestamp.IsZero() {
		return false
	}
	return slices.ContainsFunc(moved, func(m *corev1.Node) bool {
		st, err := cluster.ParseNodeState(m)
		return err == nil && st != nil && st.Operation == Migrate && st.OpenedAt != nil && n.CreationTimestamp.After(st.OpenedAt.Time)
	})
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
