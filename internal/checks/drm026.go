package checks

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// drm026: a plan passes over nodes that advertise nothing, as over those without
// GPUs. But a node can be silent for a while (its plugin is down, an operator reloads
// the driver, nobody deployed a plugin there) and come back on the plugin when the
// rest of the pool is on DRA.
func drm026() Check {
	return Check{
		Code:       "DRM026",
		Title:      "A node has devices that it does not advertise",
		Operations: []string{Migrate},
		Needs:      []string{cluster.PartSlices},
		Run: func(in Input) []Finding {
			away, silent := nodeGroups{}, nodeGroups{}
			for _, v := range in.targets() {
				if !in.idle(v) {
					continue
				}
				if n, _ := v.Capacity(in.Resource); n > 0 {
					away.add(fmt.Sprintf("has %d of %s and none of them allocatable: its plugin is away, or every device is unhealthy", n, in.Resource), v.Node.Name)
				} else if why := shows(v.Node, in.Resource); why != "" {
					silent.add(why+", but advertises no "+in.Resource+" now; it is left alone, and comes back on the plugin when that does", v.Node.Name)
				}
			}
			return append(
				away.findings(in, Finding{
					Code: "DRM026", Severity: Blocker,
					Remedy: "see the plugin's pod on the node, and plan again when the devices are back",
				}),
				silent.findings(in, Finding{
					Code: "DRM026", Severity: Warning,
					Remedy: "see why nothing advertises them; plan again when the node is back, or take it out of the pool",
				})...)
		},
	}
}

// idle says that neither mechanism offers anything on a node that no run has begun.
func (in Input) idle(v cluster.NodeView) bool {
	for _, r := range in.Resources {
		if n, _ := v.Allocatable(r); n > 0 {
			return false
		}
	}
	_, marked := v.Node.Annotations[gate.StateAnnotation]
	state, known := in.Gate.StateOf(v.Node.Labels)
	return !marked && known && state == gate.Plugin && len(v.SlicesOf(in.Driver)) == 0
}

const (
	// pluginSwitch is the GPU Operator's label for the plugin of a node. While it
	// reloads the driver it adds pausedFor to the value
	// (NVIDIA/k8s-driver-manager, cmd/driver-manager/main.go).
	pluginSwitch = "nvidia.com/gpu.deploy.device-plugin"
	pausedFor    = "paused-for-"
)

// shows says by which label a node shows that it has devices of the resource's
// vendor; empty if by none.
func shows(n *corev1.Node, resource string) string {
	switch vendor, _, _ := strings.Cut(resource, "/"); vendor {
	case "nvidia.com":
		if v := n.Labels[pluginSwitch]; strings.Contains(v, pausedFor) {
			return fmt.Sprintf("label %s=%s: the GPU Operator is at work on it", pluginSwitch, v)
		}
		if count, err := strconv.Atoi(n.Labels[gfdCount]); err == nil && count > 0 {
			return fmt.Sprintf("label %s=%d", gfdCount, count)
		}
		if v := n.Labels[gkeAccelerator]; strings.HasPrefix(v, "nvidia-") {
			return fmt.Sprintf("label %s=%s", gkeAccelerator, v)
		}
		return labelled(n, "nvidia.com/gpu.present", "true")
	case "amd.com":
		return labelled(n, "feature.node.kubernetes.io/amd-gpu", "true")
	default:
		return ""
	}
}

const gkeAccelerator = "cloud.google.com/gke-accelerator"

func labelled(n *corev1.Node, key, value string) string {
	if n.Labels[key] != value {
		return ""
	}
	return "label " + key + "=" + value
}
