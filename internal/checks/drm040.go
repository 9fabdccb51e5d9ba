package checks

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm040() Check {
	return Check{
		Code:       "DRM040",
		Title:      "A node advertises extended resources that no plugin there serves",
		Why:        "What a node advertises outlives its plugin: numbers that are not zero stay after MIG was reconfigured, and somebody may have patched a resource in by hand. Pods are placed by such numbers and get no device, or the same one as others. A kubelet that restarts sets them to zero and may end the pods that use them.",
		Fix:        "Find what put the number there. A stale one goes when the plugin and then the kubelet of that one node are restarted, with the node drained; never restart the kubelets of a whole pool at once.",
		Sources:    []string{"NVIDIA/k8s-device-plugin#240", "kubernetes/kubernetes#52510, #64632", "pkg/kubelet/kubelet_node_status.go, v1.37.2"},
		Operations: []string{Prepare, Migrate, Rollback, Verify},
		Advises:    true,
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			stale, unserved, patched := nodeGroups{}, nodeGroups{}, nodeGroups{}
			for _, v := range in.seen() {
				if why := contradiction(v); why != "" {
					stale.add(why, v.Node.Name)
				}
				for _, name := range slices.Sorted(maps.Keys(v.Node.Status.Allocatable)) {
					r := string(name)
					n, _ := v.Allocatable(r)
					// That the resource itself has no plugin is what DRM004 is about.
					if !cluster.IsExtended(name) || n == 0 || r == in.Resource || in.served(r, v.Node.Name) {
						continue
					}
					if ofGPU(r, in.Resource) {
						unserved.add(fmt.Sprintf("advertises %d of %s, and no plugin that is known to serve it runs there", n, r), v.Node.Name)
					} else if users := askers(v.Pods, r); len(users) > 0 && !in.othersPlug(v.Pods) {
						patched.add(fmt.Sprintf("advertises %d of %s without a plugin that is known, and %s use it", n, r, few(users)), v.Node.Name)
					}
				}
			}
			with := func(s Severity, remedy string) Finding { return Finding{Code: "DRM040", Severity: s, Remedy: remedy} }
			return slices.Concat(
				stale.findings(in, with(Warning, "see what the GPUs are: `nvidia-smi -L` on the node; then restart plugin and kubelet of this node alone, drained")),
				unserved.findings(in, with(Warning, "find what put it there; the run neither moves it nor waits for it to go")),
				patched.findings(in, with(Info, "nothing restarts a kubelet in a run; should you restart one, do it node by node, as these pods may be ended")))
		},
	}
}

// contradiction says how a node's numbers of whole and partitioned GPUs cannot both be
// true: with every GPU whole there are no partitions.
func contradiction(v cluster.NodeView) string {
	count, err := strconv.ParseInt(v.Node.Labels[gfdCount], 10, 64)
	whole, _ := v.Allocatable("nvidia.com/gpu")
	if err != nil || count == 0 || whole < count {
		return ""
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(v.Node.Status.Allocatable)) {
		if n, _ := v.Allocatable(string(name)); n > 0 && strings.HasPrefix(string(name), migPrefix) {
			parts = append(parts, fmt.Sprintf("%d of %s", n, name))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("advertises all of its %d GPUs as nvidia.com/gpu and %s besides: one of these is stale", count, few(parts))
}

// ofGPU says that a resource is one that a plugin for wanted would advertise. The
// domain nvidia.com is that of NVIDIA's network plugins, too.
func ofGPU(resource, wanted string) bool {
	if strings.HasPrefix(wanted, "nvidia.com/") {
		return strings.HasPrefix(resource, "nvidia.com/gpu") || strings.HasPrefix(resource, migPrefix)
	}
	domain, _, _ := strings.Cut(wanted, "/")
	return strings.HasPrefix(resource, domain+"/")
}

// othersPlug says that a plugin runs on the node of which it is not known what it
// serves.
func (in Input) othersPlug(pods []cluster.Pod) bool {
	ours := in.infrastructure()
	return slices.ContainsFunc(pods, func(p cluster.Pod) bool {
		return !p.Finished() && !ours[ownerObject(&p)] && slices.ContainsFunc(p.HostPaths, mountsPlugins)
	})
}

// served says that a plugin which serves the resource runs on the node.
func (in Input) served(resource, node string) bool {
	return slices.ContainsFunc(in.Inventory.Plugins, func(p gate.PluginDaemonSet) bool {
		_, here := slices.BinarySearch(p.Nodes, node)
		return here && p.Serves(resource)
	})
}

// askers name the pods that ask for a resource, by what a person edits.
func askers(pods []cluster.Pod, resource string) []string {
	count := map[string]int{}
	for i := range pods {
		if p := &pods[i]; !p.Finished() && p.Asks(resource) {
			count[ownerObject(p)]++
		}
	}
	return counted(count)
}
