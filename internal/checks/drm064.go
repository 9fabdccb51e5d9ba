package checks

import (
	"cmp"
	"fmt"
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
		Operations: []string{Prepare, Migrate, Rollback, Verify, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			var plugins, drivers []*appsv1.DaemonSet
			for _, p := range in.plugins() {
				if in.Operation != Rollback && in.Operation != RollbackFrom {
					plugins = append(plugins, p.DaemonSet)
				}
			}
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				drivers = append(drivers, d.DaemonSet)
			}
			pods := in.daemonPods(slices.Concat(plugins, drivers)...)
			target, down := map[string]bool{}, in.down()
			for _, v := range in.targets() {
				target[v.Node.Name] = true
			}
			var out []Finding
			for _, ds := range plugins {
				ill := unready(pods[ds], func(node string) bool {
					// What is wrong with a node of the pool that is down is not its pods (DRM021).
					return in.Operation == Prepare || target[node] && !down[node]
				}, down)
				f := Finding{Severity: Warning}
				if in.Operation == Prepare && in.rollsOver(ds) {
					f.Severity, f.Remedy = Blocker, "; prepare waits for this pod unless it runs with --plugin-rollout on-delete"
				}
				out = append(out, ill.findings(ds, "plugin", f)...)
			}
			for _, ds := range drivers {
				ill := unready(pods[ds], func(node string) bool {
					return !down[node] && (target[node] || in.Operation == Prepare || in.Operation == Migrate || in.Operation == Verify)
				}, down)
				f := Finding{Severity: Warning}
				if (in.Operation == Migrate || in.Operation == MigrateInto) && ill.stuck() > 0 && ill.stuck() == len(pods[ds]) {
					f.Severity = Blocker // it comes up nowhere
				}
				out = append(out, ill.findings(ds, "driver", f)...)
			}
			return out
		},
	}
}

// rollsOver says that prepare edits the plugin's DaemonSet and its pods are restarted.
func (in Input) rollsOver(ds *appsv1.DaemonSet) bool {
	return !gate.Excluded(ds) && !gate.OwnerOf(ds).Owned() && ds.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType
}

// down are the nodes whose kubelet does not report, or reports that it is not ready.
func (in Input) down() map[string]bool {
	out := map[string]bool{}
	for i := range in.Snapshot.Nodes {
		if !cluster.Ready(&in.Snapshot.Nodes[i]) {
			out[in.Snapshot.Nodes[i].Name] = true
		}
	}
	return out
}

// illPods are pods that are not ready, by the reason.
type illPods map[string][]*cluster.Pod

// nodeDown is the reason for a pod of a node that is down.
const nodeDown = "its node is not ready"

// initializing is how the kubelet calls the wait for an init container.
const initializing = "PodInitializing"

// unready are the pods that do not serve, but for those that are on their way out.
func unready(pods []*cluster.Pod, concerned func(node string) bool, down map[string]bool) illPods {
	out := illPods{}
	for _, p := range pods {
		if p.Ready || p.Terminating || !concerned(p.Node) {
			continue
		}
		reason := p.Waiting
		if down[p.Node] {
			reason = nodeDown
		}
		out[reason] = append(out[reason], p)
	}
	return out
}

// lasting says that a pod will not become ready by waiting. A container that is being
// made, or whose init containers still run, may.
func lasting(reason string) bool {
	return reason != "" && reason != "ContainerCreating" && reason != initializing
}

// stuck is how many of them will not become ready by waiting.
func (ill illPods) stuck() int {
	n := 0
	for reason, pods := range ill {
		if lasting(reason) {
			n += len(pods)
		}
	}
	return n
}

// findings is one finding for each reason. The severity of base is that of pods that
// will not become ready by waiting; its remedy is added to theirs.
func (ill illPods) findings(ds *appsv1.DaemonSet, what string, base Finding) []Finding {
	var out []Finding
	for _, reason := range sortedKeys(ill) {
		var nodes []string
		for _, p := range ill[reason] {
			nodes = append(nodes, p.Node)
		}
		slices.Sort(nodes)
		first := ill[reason][0]
		f := Finding{
			Code: "DRM064", Severity: Warning, Object: daemonSetObject(ds),
			Message: fmt.Sprintf("the %s's pod on %s is not ready (%s)", what, nodeList(nodes), cmp.Or(reason, "no reason is given")),
			Remedy:  fmt.Sprintf("`kubectl -n %s describe pod %s`", first.Namespace, first.Name),
		}
		switch {
		case reason == nodeDown:
			f.Severity, f.Remedy = base.Severity, "bring the node back, or remove it: `kubectl get node "+nodes[0]+"`"+base.Remedy
		case lasting(reason):
			f.Severity = base.Severity
			f.Remedy += fmt.Sprintf(", `kubectl -n %s logs %s --all-containers --previous`", first.Namespace, first.Name) + base.Remedy
		case reason == initializing && what == "driver":
			f.Remedy += "; an init container that goes on for minutes does not find the GPU's driver, see `dramigrate explain DRM063`"
		}
		out = append(out, f)
	}
	return out
}
