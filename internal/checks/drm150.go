package checks

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm150() Check {
	return Check{
		Code:       "DRM150",
		Title:      "The pool may have little to gain",
		Why:        "What DRA has over a plugin is choice between unlike devices, one device for several pods, and a second best when the best is taken. A pool of identical whole GPUs, whose workloads ask for a number of them and nothing else, uses none of that. It gives up preemption for devices, alignment with CPUs by the Topology Manager, the health of devices in pods' status, and autoscalers that know the resource.",
		Fix:        "Move it because other pools move, because new workloads need what DRA has, or because a plugin is to be retired; otherwise leave it.",
		Sources:    []string{"pkg/scheduler/framework/preemption/preemption.go, v1.37.2", "pkg/kubelet/cm/container_manager_linux.go, v1.37.2", "pkg/kubelet/cm/dra/manager.go, v1.37.2", "kubernetes/autoscaler, cluster-autoscaler/docs/dra_support.md", "KEP-4381"},
		Advises:    true,
		Operations: []string{Migrate},
		Needs:      append(workloadParts(), cluster.PartPods, cluster.PartClaims),
		Run: func(in Input) []Finding {
			by, same := in.identical()
			if !same || in.choosy() || !in.anyDevices() {
				return nil
			}
			pods, owners := in.movers(), map[string]bool{}
			if len(pods) == 0 {
				return nil // for whom there would be nothing to gain is not known
			}
			for _, p := range pods {
				owners[ownerObject(p)] = true
			}
			what := "GPUs, as far as the machine's type tells,"
			if !strings.HasPrefix(by, instanceType) {
				what = "whole GPUs"
			}
			return []Finding{{
				Code: "DRM150", Severity: Info, Object: in.poolObject(),
				Message: fmt.Sprintf("has identical %s (%s), and nothing in the cluster selects, shares or falls back among devices: %s of %s would be served unchanged. Gained: selection by attributes, claims shared by pods, alternatives, taints of single devices. Given up: preemption for devices, NUMA alignment by the Topology Manager, device health in pod status, autoscalers that know the resource",
					what, by, words.Count(len(pods), "pod"), words.Count(len(owners), "owner")),
				Remedy: "weigh it: `dramigrate explain DRM150`; a pool that keeps the plugin works beside pools on DRA",
			}}
		},
	}
}

// instanceType tells the machine, and so its GPUs, but not whether they are partitioned.
const instanceType = corev1.LabelInstanceTypeStable

// identical says by which label all nodes of the operation show to have the same whole
// GPUs. Without such a label it is not known, and nothing is said.
func (in Input) identical() (by string, same bool) {
	nodes := in.targets()
	if len(nodes) == 0 {
		return "", false
	}
	for _, v := range nodes {
		if sharing(v, in.Resource) != "" || mig(v) != "" {
			return "", false
		}
	}
	for _, key := range []string{gfdProduct, gkeAccelerator, "amd.com/gpu.product-name", instanceType} {
		value := nodes[0].Node.Labels[key]
		if value == "" {
			continue
		}
		return key + "=" + value, !slices.ContainsFunc(nodes, func(v cluster.NodeView) bool { return v.Node.Labels[key] != value })
	}
	return "", false
}

// choosy says that something in the cluster uses, or is about to use, what DRA has and a
// plugin has not.
func (in Input) choosy() bool {
	wants := func(p *cluster.Pod) bool {
		if len(p.Claims) > 0 || implicit(p) != "" {
			return true
		}
		return in.asks(p) && slices.ContainsFunc(p.NodeLabels, func(q corev1.NodeSelectorRequirement) bool {
			return discovered(q.Key) || q.Key == gkeAccelerator
		})
	}
	for i := range in.Snapshot.Pods {
		if p := &in.Snapshot.Pods[i]; !p.Finished() && wants(p) {
			return true
		}
	}
	for i := range in.Snapshot.Workloads {
		if w := &in.Snapshot.Workloads[i]; !w.Finished && wants(&w.Template) {
			return true
		}
	}
	return false
}
