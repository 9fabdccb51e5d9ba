package checks

import (
	"fmt"
	"path"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm038() Check {
	return Check{
		Code:       "DRM038",
		Title:      "Two plugins serve one resource on a node",
		Why:        "The kubelet keeps one plugin for a resource: the one that registered last. When either pod ends, the devices of the other may go with it, or stay advertised although the plugin is thought to be off. So a node does not get to zero when it is switched, or to its full number when it is put back, until the pod that is left restarts.",
		Fix:        "Keep one plugin for the resource on each node, by the node selectors of the two DaemonSets; end a pod that was started by hand.",
		Sources:    []string{"kubernetes/kubernetes#121994", "NVIDIA/k8s-device-plugin#455", "pkg/kubelet/cm/devicemanager/manager.go, v1.37.2"},
		Operations: []string{Prepare, Migrate, Rollback},
		Advises:    true,
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			two, maybe := nodeGroups{}, nodeGroups{}
			plugins := slices.DeleteFunc(in.Inventory.PluginsFor(in.Resource), func(p gate.PluginDaemonSet) bool { return p.Role != gate.DevicePlugin })
			for _, v := range in.seen() {
				var names []string
				guess := false
				for _, p := range plugins {
					for i := range v.Pods {
						if of(&v.Pods[i], p) {
							names = append(names, "pod/"+v.Pods[i].Ref())
							guess = guess || p.Guess
						}
					}
				}
				names = append(names, strayPlugins(v.Pods)...)
				switch {
				case len(names) < 2:
				case guess:
					maybe.add(fmt.Sprintf("%s each mount the folder of device plugins; which of them serves %s is not known", few(names), in.Resource), v.Node.Name)
				default:
					two.add(fmt.Sprintf("%s all serve %s there", few(names), in.Resource), v.Node.Name)
				}
			}
			return append(
				two.findings(in, Finding{Code: "DRM038", Severity: Warning, Remedy: "leave one of them on the node, and see that allocatable is what it was: `kubectl describe node`"}),
				maybe.findings(in, Finding{Code: "DRM038", Severity: Info, Remedy: "see what each of them is; one that only looks on does no harm"})...)
		},
	}
}

// of says that the pod is one of the plugin's DaemonSet and has not ended.
func of(p *cluster.Pod, plugin gate.PluginDaemonSet) bool {
	ds := plugin.DaemonSet
	return p.Owner.Kind == "DaemonSet" && p.Namespace == ds.Namespace && p.Owner.Name == ds.Name && !p.Finished()
}

// mountsPlugins says that a folder of the host is the kubelet's of device plugins.
func mountsPlugins(folder string) bool { return path.Base(path.Clean(folder)) == gate.DevicePlugins }

// strayPlugins names the pods that may be a plugin which no DaemonSet runs: those that
// mount the kubelet's folder of device plugins, as one does that somebody started by
// hand.
func strayPlugins(pods []cluster.Pod) []string {
	var out []string
	for i := range pods {
		p := &pods[i]
		if slices.ContainsFunc(p.HostPaths, mountsPlugins) && !p.Finished() && !p.IsHelper() && p.Owner.Kind != "DaemonSet" {
			out = append(out, "pod/"+p.Ref())
		}
	}
	return out
}
