package checks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm064() Check {
	return Check{
		Code:       "DRM064",
		Title:      "Pods of the plugin or the driver are not ready",
		Why:        "Prepare waits until each pod of the edited plugin is ready again, which a pod that crashes or cannot pull its image never is; the update does not go past it either. A driver that comes up nowhere will not come up on the next node. Where a driver's pod is down, pods with its devices cannot start, and those that run cannot end.",
		Fix:        "See the pod's events and its last log. A pod of the NVIDIA driver that stays in its init container does not find the GPU's driver (DRM063); an image that cannot be pulled needs its secret, or a mirror.",
		Sources:    []string{"pkg/controller/daemon/update.go, v1.37.2", "kubernetes-sigs/dra-driver-nvidia-gpu, hack/kubelet-plugin-prestart.sh", "eksctl-io/eksctl#8858"},
		Operations: []string{Prepare, Migrate, Rollback},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			var plugins, drivers []*appsv1.DaemonSet
			for _, p := range in.plugins() {
				if in.Operation != Rollback {
					plugins = append(plugins, p.DaemonSet)
				}
			}
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				drivers = append(drivers, d.DaemonSet)
			}
			target := map[string]bool{}
			for _, v := range in.targets() {
				target[v.Node.Name] = true
			}
			pods := in.daemonPods(slices.Concat(plugins, drivers)...)
			var out []Finding
			for _, ds := range plugins {
				ill := unready(pods[ds])
				if in.Operation == Migrate {
					ill = slices.DeleteFunc(ill, func(p *cluster.Pod) bool { return !target[p.Node] })
				}
				severity := Warning
				if in.Operation == Prepare && in.rollsOver(ds) && slices.ContainsFunc(ill, stuck) {
					severity = Blocker
				}
				out = append(out, in.unreadyFindings(ds, "plugin", ill, severity)...)
			}
			for _, ds := range drivers {
				ill := unready(pods[ds])
				severity := Warning
				if in.Operation == Rollback {
					ill = slices.DeleteFunc(ill, func(p *cluster.Pod) bool { return !target[p.Node] })
				} else if len(ill) == len(pods[ds]) && !slices.ContainsFunc(ill, func(p *cluster.Pod) bool { return !stuck(p) }) {
					severity = in.stops() // it comes up nowhere
				}
				out = append(out, in.unreadyFindings(ds, "driver", ill, severity)...)
			}
			return out
		},
	}
}

// rollsOver says that prepare edits the plugin's DaemonSet and its pods are restarted.
func (in Input) rollsOver(ds *appsv1.DaemonSet) bool {
	return !gate.Excluded(ds) && !gate.OwnerOf(ds).Owned() && ds.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType
}

// unready are the pods that do not serve, but for those that are on their way out.
func unready(pods []*cluster.Pod) []*cluster.Pod {
	var out []*cluster.Pod
	for _, p := range pods {
		if !p.Ready && !p.Terminating {
			out = append(out, p)
		}
	}
	return out
}

// stuck says that a pod will not become ready by waiting: the kubelet says what is wrong.
// A container that is being made, or whose init containers still run, is no such case.
func stuck(p *cluster.Pod) bool {
	return p.Waiting != "" && p.Waiting != "ContainerCreating" && p.Waiting != initializing
}

// initializing is how the kubelet calls the wait for an init container.
const initializing = "PodInitializing"

// unreadyFindings is one finding for each reason.
func (in Input) unreadyFindings(ds *appsv1.DaemonSet, what string, pods []*cluster.Pod, severity Severity) []Finding {
	by := map[string][]*cluster.Pod{}
	for _, p := range pods {
		by[p.Waiting] = append(by[p.Waiting], p)
	}
	var out []Finding
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		var nodes []string
		for _, p := range by[reason] {
			nodes = append(nodes, p.Node)
		}
		slices.Sort(nodes)
		first := by[reason][0]
		f := Finding{Code: "DRM064", Severity: severity, Object: daemonSetObject(ds)}
		if !stuck(first) && severity == Blocker {
			f.Severity = Warning // it may be coming up
		}
		f.Message = fmt.Sprintf("the %s's pod on %s is not ready (%s)", what, nodeList(nodes), cmp.Or(reason, "no reason is given"))
		f.Remedy = fmt.Sprintf("kubectl -n %s describe pod %s", first.Namespace, first.Name)
		switch {
		case reason == initializing && what == "driver":
			f.Remedy += "; an init container that goes on for minutes does not find the GPU's driver, see `dramigrate explain DRM063`"
		case stuck(first):
			f.Remedy += fmt.Sprintf(", kubectl -n %s logs %s --all-containers --previous", first.Namespace, first.Name)
		}
		if what == "plugin" && f.Severity == Blocker {
			f.Remedy += "; prepare waits for this pod unless it runs with --plugin-rollout on-delete"
		}
		out = append(out, f)
	}
	return out
}
