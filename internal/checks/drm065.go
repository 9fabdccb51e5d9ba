package checks

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm065() Check {
	return Check{
		Code:       "DRM065",
		Title:      "The kubelet's folder is not where the driver registers",
		Why:        "A DRA driver registers through a socket below the kubelet's root. Below another folder the kubelet never sees it: the pod is ready, and nothing is published. Distributions that move the root are k0s and MicroK8s, and any node whose kubelet runs with --root-dir. A plugin whose devices are advertised shows where the root is. The tool's own probe looks below /var/lib/kubelet.",
		Fix:        "Set the chart values kubeletPlugin.kubeletRegistrarDirectoryPath and kubeletPlugin.kubeletPluginsDirectoryPath; with NVIDIA's GPUCluster, hostPaths.kubeletRootDir.",
		Sources:    []string{"kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm, values.yaml", "kubernetes-sigs/dranet#250", "hetznercloud/csi-driver#536"},
		Operations: []string{Prepare, Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			drivers := in.Inventory.DriversFor(in.Driver)
			wrong, doubtful, own := nodeGroups{}, nodeGroups{}, nodeGroups{}
			for _, v := range in.targets() {
				root, why, proven := in.kubeletRoot(v)
				if root == "" {
					continue
				}
				if root != usualRoot {
					say := fmt.Sprintf("the kubelet's root is %s (%s)", root, why)
					if len(drivers) == 0 {
						say += ", and a driver has to be told"
					}
					own.add(say+"; the tool's probe mounts "+usualRoot+"/pod-resources", v.Node.Name)
				}
				for _, d := range drivers {
					registry := hostFolder(d.DaemonSet, gate.PluginsRegistry)
					if registry == "" || path.Dir(registry) == root {
						continue
					}
					say := fmt.Sprintf("%s registers in %s, and the kubelet's root is %s (%s)", daemonSetObject(d.DaemonSet), registry, root, why)
					if proven {
						wrong.add(say, v.Node.Name)
					} else {
						doubtful.add(say, v.Node.Name)
					}
				}
			}
			values := "set the chart values kubeletPlugin.kubeletRegistrarDirectoryPath=ROOT/" + gate.PluginsRegistry + " and kubeletPlugin.kubeletPluginsDirectoryPath=ROOT/plugins"
			return slices.Concat(
				wrong.findings(in, Finding{Code: "DRM065", Severity: in.stops(), Remedy: values}),
				doubtful.findings(in, Finding{Code: "DRM065", Severity: Warning, Remedy: values + ", unless the folder is a link to the other"}),
				own.findings(in, Finding{Code: "DRM065", Severity: Warning, Remedy: "see that " + usualRoot + " is a link to it on these nodes: the run probes each node and stops before it switches anything if it is not. For the driver, " + values}))
		},
	}
}

// usualRoot is the kubelet's root unless it runs with --root-dir.
const usualRoot = "/var/lib/kubelet"

// kubeletRoot is a node's kubelet root and by what that is seen; proven by a plugin that
// registered below it, else from what the distribution is known for. Empty if nothing
// tells.
func (in Input) kubeletRoot(v cluster.NodeView) (root, why string, proven bool) {
	for _, p := range in.Inventory.Plugins {
		folder := hostFolder(p.DaemonSet, gate.DevicePlugins)
		serves := slices.ContainsFunc(p.Resources, func(r string) bool { n, _ := v.Allocatable(r); return n > 0 })
		if folder != "" && serves && among(p.Nodes, v.Node.Name) {
			return path.Dir(folder), daemonSetObject(p.DaemonSet) + " registers in " + folder, true
		}
	}
	switch _, microk8s := v.Node.Labels["microk8s.io/cluster"]; {
	case strings.Contains(v.Node.Status.NodeInfo.KubeletVersion, "+k0s"):
		return "/var/lib/k0s/kubelet", "as k0s has it, kubelet " + v.Node.Status.NodeInfo.KubeletVersion, false
	case microk8s:
		return "/var/snap/microk8s/common/var/lib/kubelet", "as MicroK8s has it, label microk8s.io/cluster", false
	default:
		return "", "", false
	}
}
