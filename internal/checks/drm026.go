package checks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/vendor"
)

func drm026() Check {
	return Check{
		Code:        "DRM026",
		Title:       "A node has devices that it does not advertise",
		Why:         "A plan passes over nodes that advertise nothing, as over those without GPUs. But a node can be silent for a while (its plugin is down, an operator reloads the driver, nobody deployed a plugin there) and come back on the plugin when the rest of the pool is on DRA.",
		Fix:         "See why nothing advertises the devices, and plan again when the node is back.",
		Sources:     []string{"NVIDIA/k8s-driver-manager, cmd/driver-manager/main.go", "NVIDIA/k8s-device-plugin#58"},
		Unskippable: true,
		Operations:  []string{Migrate},
		Needs:       []string{cluster.PartDaemonSets, cluster.PartPods, cluster.PartSlices},
		Run: func(in Input) []Finding {
			away, young, silent := nodeGroups{}, nodeGroups{}, nodeGroups{}
			for _, v := range in.targets() {
				if !in.idle(v) {
					continue
				}
				n, _ := v.Capacity(in.Resource)
				if n > 0 && in.pluginReady(v) {
					young.add(fmt.Sprintf("has %d of %s and none of them allocatable, though a plugin's pod is ready: it has only just started, or every device is unhealthy", n, in.Resource), v.Node.Name)
				} else if n > 0 {
					away.add(fmt.Sprintf("has %d of %s and none of them allocatable, and no plugin's pod is ready", n, in.Resource), v.Node.Name)
				} else if why := shows(v.Node, in.Resource); why != "" {
					silent.add(why+", but advertises no "+in.Resource+" now; it is left alone, and comes back on the plugin when that does", v.Node.Name)
				}
			}
			with := func(s Severity, remedy string) Finding { return Finding{Code: "DRM026", Severity: s, Remedy: remedy} }
			return slices.Concat(
				away.findings(in, with(Blocker, "see the plugin's pod on the node, and plan again when the devices are back")),
				young.findings(in, with(Warning, "the run asks the kubelet for the devices before it switches anything off, and stops if there are none")),
				silent.findings(in, with(Warning, "see why nothing advertises them; plan again when the node is back, or take it out of the pool")))
		},
	}
}

// pluginReady says that a pod of a plugin for the resource is ready on the node. The
// kubelet reports its devices a moment later.
func (in Input) pluginReady(v cluster.NodeView) bool {
	return slices.ContainsFunc(in.Inventory.PluginsFor(in.Resource), func(d gate.PluginDaemonSet) bool {
		return d.Role == gate.DevicePlugin && slices.ContainsFunc(v.Pods, func(p cluster.Pod) bool {
			return p.Ready && p.Owner.Kind == "DaemonSet" && p.Namespace == d.DaemonSet.Namespace && p.Owner.Name == d.DaemonSet.Name
		})
	})
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
	pluginSwitch = vendor.DeployPlugin
	pausedFor    = "paused-for-"
)

// shows says by which label a node shows that it has devices of the resource's
// vendor; empty if by none.
func shows(n *corev1.Node, resource string) string {
	domain, _, _ := strings.Cut(resource, "/")
	if domain == nvidiaDomain {
		if v := n.Labels[pluginSwitch]; strings.Contains(v, pausedFor) {
			return fmt.Sprintf("label %s=%s: the GPU Operator is at work on it", pluginSwitch, v)
		}
		if count, err := strconv.Atoi(n.Labels[gfdCount]); err == nil && count > 0 {
			return fmt.Sprintf("label %s=%d", gfdCount, count)
		}
	}
	v, _ := vendor.OfDomain(domain)
	for _, l := range v.NodeLabels {
		if on := l.On(n.Labels); on != "" {
			return "label " + on
		}
	}
	return ""
}

const gkeAccelerator = vendor.GKEAccelerator
