package engine

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/vendor"
	"github.com/dramigrate/dramigrate/internal/words"
)

// The conditions in this file are pure: each says why it does not hold yet, or ""
// if it holds. A step waits for the same function that confirms it.

// notClosed says what keeps a node open to pods. lifted tells that the tool's taint
// is away on purpose, for a DaemonSet pod to land.
func notClosed(node *corev1.Node, lifted bool) string {
	if !node.Spec.Unschedulable {
		return "the node is not cordoned"
	}
	if !lifted && !slices.ContainsFunc(node.Spec.Taints, gate.IsSwitchingTaint) {
		return "the taint " + gate.SwitchingTaintKey + " is missing"
	}
	return ""
}

// pluginHeld says which pods still hold the plugin's resources, static and
// DaemonSet pods included.
func pluginHeld(v cluster.NodeView, resources []string) string {
	return podsNamed("the device plugin still backs ", v.PluginBackedPods(resources))
}

// claimsHeld says which claims of the drivers still hold devices of the node, and
// which pods that use one are still terminating: the kubelet can only unprepare
// them while the driver runs (pkg/kubelet/kubelet_pods.go, v1.37.2).
func claimsHeld(v cluster.NodeView, drivers ...string) string {
	var held []string
	for _, use := range v.ClaimsOf(drivers...) {
		held = append(held, use.Ref())
	}
	if len(held) > 0 {
		return "claims still hold devices: " + few(held)
	}
	var ending []cluster.Pod
	for _, p := range v.Pods {
		if p.Terminating && (p.Bridge != nil || len(p.Claims) > 0) {
			ending = append(ending, p)
		}
	}
	return podsNamed("still terminating with a claim: ", ending)
}

// daemonPods are the pods on the node that one of the DaemonSets placed there.
func daemonPods(v cluster.NodeView, sets []plan.Object) []cluster.Pod {
	var out []cluster.Pod
	for _, p := range v.Pods {
		if p.Owner.Kind != "DaemonSet" {
			continue
		}
		for _, ds := range sets {
			if p.Namespace == ds.Namespace && p.Owner.Name == ds.Name {
				out = append(out, p)
			}
		}
	}
	return out
}

// daemonPodsLeft says which pods of the DaemonSets are still on the node.
func daemonPodsLeft(v cluster.NodeView, sets []plan.Object) string {
	return podsNamed("still there: ", daemonPods(v, sets))
}

// daemonPodsMissing says which of the DaemonSets has no pod on the node yet.
// A pod that ends does not count: its successor has still to land.
func daemonPodsMissing(v cluster.NodeView, sets []plan.Object) string {
	for _, ds := range sets {
		pods := daemonPods(v, []plan.Object{ds})
		if !slices.ContainsFunc(pods, func(p cluster.Pod) bool { return !p.Terminating }) {
			return fmt.Sprintf("daemonset/%s/%s has no pod on the node yet", ds.Namespace, ds.Name)
		}
	}
	return ""
}

// daemonPodsNotReady says which of the DaemonSets' pods is not ready, and why.
// An old pod that still ends is waited for as well: two plugins of one resource
// disconnect each other.
func daemonPodsNotReady(v cluster.NodeView, sets []plan.Object) string {
	if why := daemonPodsMissing(v, sets); why != "" {
		return why
	}
	for _, p := range daemonPods(v, sets) {
		switch {
		case p.Terminating:
			return "pod " + p.Ref() + " is still terminating"
		case p.Ready:
		case p.Waiting != "":
			return fmt.Sprintf("pod %s is not ready: %s", p.Ref(), p.Waiting)
		default:
			return fmt.Sprintf("pod %s is not ready (%s)", p.Ref(), p.Phase)
		}
	}
	return ""
}

// stillAllocatable says which of the resources the node still offers. The key never
// goes away once a plugin was there: "0" and absent both mean off
// (pkg/kubelet/nodestatus/setters.go, v1.37.2).
func stillAllocatable(v cluster.NodeView, resources []string) string {
	for _, r := range resources {
		if n, _ := v.Allocatable(r); n > 0 {
			return fmt.Sprintf("allocatable %s is still %d", r, n)
		}
	}
	return ""
}

// noPluginHint is for a plugin whose pod is ready and whose devices never come: a
// kubelet that still ends an earlier connection to the plugin's socket may drop the new
// one without telling the plugin (pkg/kubelet/cm/devicemanager/plugin/v1beta1,
// handler.go, runClient, v1.37.2).
const noPluginHint = "the plugin's pod is ready: delete it, so that it registers with the kubelet anew"

// notAdvertised says how many devices of the resource the node still lacks.
func notAdvertised(v cluster.NodeView, resource string, want int) string {
	n, _ := v.Allocatable(resource)
	if n == 0 || int(n) < want {
		return fmt.Sprintf("allocatable %s is %d of %d", resource, n, max(want, 1))
	}
	return ""
}

// slicesLeft says whether the driver still publishes devices of the node.
func slicesLeft(v cluster.NodeView, driver string) string {
	if n := len(v.SlicesOf(driver)); n > 0 {
		return fmt.Sprintf("%d ResourceSlice(s) of %s are still published", n, driver)
	}
	return ""
}

// devicesNotAs says how the published devices differ from the GPUs that the plugin
// advertised by the resources, by what both name them by. With no GPUs known it only
// asks for complete slices with at least one device: want is then reported as unknown
// by the caller.
func devicesNotAs(v cluster.NodeView, driver string, resources, want []string) string {
	if len(v.SlicesOf(driver)) == 0 {
		return "no ResourceSlice of " + driver + " yet"
	}
	devices, incomplete := cluster.DevicesOf(v.Slices, driver)
	if incomplete != "" {
		return incomplete
	}
	if len(devices) == 0 {
		return "the ResourceSlices of " + driver + " hold no device"
	}
	if len(want) == 0 {
		return ""
	}
	diff := devices.Diff(driver, resources, want)
	switch {
	case diff.Same():
		return ""
	case diff.Join.Key == vendor.NoKey:
		return fmt.Sprintf("%s published, and the plugin had %d", words.Count(diff.Now, "device"), diff.Before)
	}
	return fmt.Sprintf("published devices are not the node's GPUs: missing %s, unexpected %s",
		fewOrNone(diff.Missing), fewOrNone(diff.Unexpected))
}

func podsNamed(prefix string, pods []cluster.Pod) string {
	if len(pods) == 0 {
		return ""
	}
	var names []string
	for i := range pods {
		name := pods[i].Ref()
		if pods[i].Terminating {
			name += " (terminating)"
		}
		names = append(names, name)
	}
	return prefix + few(names)
}

// few names the first three and counts the rest, so that a reason fits a line.
func few(names []string) string {
	return words.Few(3, names)
}

func fewOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return few(names)
}
