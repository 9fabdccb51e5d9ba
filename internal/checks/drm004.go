package checks

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm004() Check {
	return Check{
		Code:        "DRM004",
		Title:       "Nodes advertise devices without a plugin DaemonSet",
		Why:         "Some platforms run the plugin as a service of the node (AKS managed GPU pools, Bottlerocket) or inside their node runtime (EKS Auto Mode). No label of a node switches that off, so both mechanisms would offer the same devices.",
		Fix:         "Make a new pool whose nodes bring no plugin, with the DRA driver, and move the workloads there: dramigrate plan POOL --into NEWPOOL.",
		Sources:     []string{"Azure/AgentBaker, cse_config.sh", "Bottlerocket, settings.kubelet-device-plugins", "Amazon EKS docs, \"Manage NVIDIA devices\""},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate},
		Needs:       []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			bare, hidden := nodeGroups{}, nodeGroups{}
			for _, v := range in.targets() {
				n, _ := v.Allocatable(in.Resource)
				at, _ := in.Gate.StateOf(v.Node.Labels)
				mark, _ := cluster.ParseNodeState(v.Node)
				switch own := builtIn(v.Node); {
				case n == 0:
				case at != gate.Plugin && mark != nil:
					// A run has just turned the plugin off: its pod goes some seconds before the
					// kubelet says so. The run itself waits for that, and stops if it never does.
				case in.withoutDaemonSet(v):
					bare.add("advertises "+in.Resource+", but no pod of a device plugin's DaemonSet runs there", v.Node.Name)
				case own != "":
					hidden.add(own+", which may run beside the DaemonSet: whether it is switched off cannot be seen", v.Node.Name)
				}
			}
			// Prepare brings the driver to labelled nodes alone, which these are not.
			severity, unseen := Blocker, Unknown
			if in.Operation == Prepare {
				severity, unseen = Warning, Warning
			}
			move := fmt.Sprintf("make a new pool whose nodes bring no plugin, with the label %s=%s, and move the workloads there: %s",
				gate.AllocationLabel, gate.ValueDRA, words.Command("plan", in.Pool.Name, "--into", "NEWPOOL"))
			return append(
				bare.findings(in, Finding{
					Code: "DRM004", Severity: severity,
					Remedy: "a plugin that is part of the node cannot be switched off in place: " + move,
				}),
				hidden.findings(in, Finding{Code: "DRM004", Severity: unseen, Remedy: move})...)
		},
	}
}

// withoutDaemonSet says that a node offers the resource by what is no DaemonSet.
func (in Input) withoutDaemonSet(v cluster.NodeView) bool {
	n, _ := v.Allocatable(in.Resource)
	return n > 0 && !slices.ContainsFunc(in.Inventory.PluginsFor(in.Resource), func(p gate.PluginDaemonSet) bool {
		_, runs := slices.BinarySearch(p.Nodes, v.Node.Name)
		return p.Role == gate.DevicePlugin && runs
	})
}

// builtIn says by what a node is known to be of a kind that brings a plugin of its
// own; empty if by nothing.
func builtIn(n *corev1.Node) string {
	image := n.Status.NodeInfo.OSImage
	switch {
	case strings.HasPrefix(image, "Bottlerocket") && strings.Contains(image, "nvidia"):
		return fmt.Sprintf("its image %q has the service nvidia-k8s-device-plugin", image)
	case n.Labels["eks.amazonaws.com/compute-type"] == "auto":
		return "label eks.amazonaws.com/compute-type=auto: EKS Auto Mode has a plugin in its node runtime"
	case n.Labels["kubernetes.azure.com/dcgm-exporter"] == "enabled":
		return "label kubernetes.azure.com/dcgm-exporter=enabled: AKS manages the node's GPUs, by the service nvidia-device-plugin"
	default:
		return ""
	}
}
