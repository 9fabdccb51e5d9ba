package checks

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm086() Check {
	return Check{
		Code:       "DRM086",
		Title:      "Cluster Autoscaler works on the pool",
		Why:        "Cluster Autoscaler supposes that all nodes of a group have the same devices, which a pool that is half moved does not. A node with its provider's GPU label and nothing allocatable counts as not ready to it, so that it adds nodes for pods that wait; the label stays on a node on DRA. For DRA it is meant for production from 1.35 on. Of a group without nodes it knows the devices only where its provider tells: the AWS and Azure providers do not.",
		Fix:        "Pause the group for the move, run version 1.35 or later, and keep at least one node in each group on DRA.",
		Sources:    []string{"kubernetes/autoscaler, cluster-autoscaler/docs/dra_support.md", "kubernetes/autoscaler, cluster-autoscaler/processors/customresources/gpu_processor.go", "kubernetes/autoscaler#7780", "modelplaneai/modelplane#345"},
		Operations: []string{Migrate, Rollback, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto},
		Needs:      []string{cluster.PartPods},
		Advises:    true,
		Run: func(in Input) []Finding {
			var nodes []*corev1.Node
			labels := map[string]string{} // GPU label → a node's value
			for _, v := range in.targets() {
				nodes = append(nodes, v.Node)
				for _, key := range autoscalerLabels() {
					if value, ok := v.Node.Labels[key]; ok {
						labels[key] = value
					}
				}
			}
			if len(nodes) == 0 {
				return nil
			}
			groups := groupsOf(nodes)
			p := in.podOf(isAutoscaler)
			if p == nil {
				return in.hiddenAutoscaler(groups)
			}
			say := "Cluster Autoscaler runs here: " + in.autoscalerMeets()
			for _, key := range sortedKeys(labels) {
				if in.Operation == MigrateFrom || in.Operation == RollbackInto {
					break // these nodes have the plugin, and keep it
				}
				say += fmt.Sprintf("; a node with label %s=%s and nothing allocatable counts as not ready to it", key, labels[key])
			}
			out := []Finding{{Code: "DRM086", Severity: Warning, Object: podObject(p), Message: say, Remedy: pauses(groups, "set the group's smallest and largest size to the number of its nodes for the move")}}
			if v, tag := imageVersion(p.Images, "cluster-autoscaler"); in.Operation != MigrateFrom && in.Operation != RollbackInto && v != nil && v.LessThan(version.MajorMinor(1, 35)) {
				out = append(out, Finding{
					Code: "DRM086", Severity: Warning, Object: podObject(p) + "/version",
					Message: "Cluster Autoscaler " + tag + " is below 1.35, from which on its support of DRA is meant for production: it may not scale the pool for pods whose GPUs come by DRA",
					Remedy:  "upgrade it to the minor version of the cluster",
				})
			}
			if in.Operation == Migrate || in.Operation == MigrateInto {
				for _, name := range sortedKeys(groups) {
					if all := groups[name]; !all[0].fromZero {
						out = append(out, Finding{
							Code: "DRM086", Severity: Info, Object: groupObject(all),
							Message: fmt.Sprintf("once on DRA, Cluster Autoscaler cannot make the first node of %s (%s) for a pod that waits: without a node it does not know the devices", groupNames(all), name),
							Remedy:  "keep the group's smallest size at 1 or more",
						})
					}
				}
			}
			return out
		},
	}
}

// hiddenAutoscaler is about providers that run Cluster Autoscaler where its pods cannot
// be seen.
func (in Input) hiddenAutoscaler(groups map[string][]nodeGroup) []Finding {
	var out []Finding
	for _, name := range []string{"AKS", "GKE"} {
		if all := groups[name]; len(all) > 0 {
			out = append(out, Finding{
				Code: "DRM086", Severity: Info, Object: groupObject(all),
				Message: fmt.Sprintf("%s runs Cluster Autoscaler itself, and whether it works on %s cannot be seen from the API: %s", name, groupNames(all), in.autoscalerMeets()),
				Remedy:  "if it does, for the move: " + forEach(all, all[0].pause(all[0].size)),
			})
		}
	}
	return out
}

// autoscalerMeets is what an autoscaler would meet in the pool while the operation is
// under way.
func (in Input) autoscalerMeets() string {
	switch in.Operation {
	case MigrateFrom, RollbackFrom:
		return "while nodes of pool " + in.Pool.Name + " are closed it may add others to it for pods that wait, and these go there again"
	case MigrateInto, RollbackInto:
		return "nodes of pool " + in.Pool.Name + " that are open and still empty are unneeded to it, and it may remove them before the pods come"
	default:
		return "a half-moved group has two kinds of nodes, which it does not expect"
	}
}

// pauses are the commands that keep an autoscaler from the groups, or what to do without
// one.
func pauses(groups map[string][]nodeGroup, without string) string {
	var out []string
	for _, name := range sortedKeys(groups) {
		all := groups[name]
		out = append(out, forEach(all, all[0].pause(all[0].size)))
	}
	if len(out) == 0 {
		return without
	}
	return "for the move: " + strings.Join(out, "; ")
}

// autoscalerLabels are the labels by which Cluster Autoscaler's providers know nodes with
// GPUs (their GPULabel methods): AWS, GCE, Azure old and new, Cluster API, Alibaba,
// Hetzner.
func autoscalerLabels() []string {
	return []string{
		"k8s.amazonaws.com/accelerator", gkeAccelerator, "accelerator", "kubernetes.azure.com/accelerator",
		"cluster-api/accelerator", "aliyun.accelerator/nvidia_name", "hcloud/gpu",
	}
}

func isAutoscaler(p *cluster.Pod) bool {
	return hasImage(p.Images, "cluster-autoscaler") || p.Labels["k8s-app"] == "cluster-autoscaler" || p.Labels["app"] == "cluster-autoscaler" ||
		strings.HasSuffix(p.Labels["app.kubernetes.io/name"], "cluster-autoscaler")
}

// podOf is the first pod of the cluster, in its order, that runs and satisfies is.
func (in Input) podOf(is func(*cluster.Pod) bool) *cluster.Pod {
	for i := range in.Snapshot.Pods {
		if p := &in.Snapshot.Pods[i]; !p.Finished() && is(p) {
			return p
		}
	}
	return nil
}
