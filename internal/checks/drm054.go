package checks

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm054() Check {
	return Check{
		Code:       "DRM054",
		Title:      "Evicted pods are admitted by no node of the other pool",
		Why:        "A pod's node selector, its required node affinity and its tolerations decide where its successor may go. One that names the pool it runs on, or does not tolerate a taint of the other, waits for ever once it is evicted.",
		Fix:        "Give the nodes of the other pool the labels that the workloads select, or change the workloads' selectors and tolerations first.",
		Sources:    []string{"k8s.io/component-helpers/scheduling/corev1, v0.37.2", "Kubernetes docs, \"Taints and Tolerations\""},
		Operations: []string{MigrateFrom, RollbackFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims},
		Run: func(in Input) []Finding {
			takers := in.takers()
			if len(takers) == 0 {
				return nil // DRM052 and DRM056 say so
			}
			g := ownerGroups{}
			for _, v := range in.targets() {
				for _, p := range in.evictions(v) {
					var why string
					if !slices.ContainsFunc(takers, func(t cluster.NodeView) bool { why = turnsAway(t.Node, &p); return why == "" }) {
						g.add(&p, fmt.Sprintf("no node of pool %s would have it: %s", in.Other.Name, why))
					}
				}
			}
			severity := Blocker
			if in.Operation == RollbackFrom { // whoever goes back in a hurry knows
				severity = Warning
			}
			return g.findings(Finding{
				Code: "DRM054", Severity: severity,
				Remedy: "give the nodes of pool " + in.Other.Name + " what it asks for by their node group, or change its node selector, affinity or tolerations first",
			})
		},
	}
}

// turnsAway says why an open node would not have the pod; empty if it would. The tool's
// own taint and cordon are not there then.
func turnsAway(n *corev1.Node, p *cluster.Pod) string {
	taints := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool {
		return gate.IsSwitchingTaint(t) || t.Key == corev1.TaintNodeUnschedulable
	})
	if p.Placement == nil {
		if !admits(n, p.NodeLabels) {
			return "its labels are not those that the pod asks for"
		}
		return ""
	}
	if !p.Placement.Admits(n) {
		return "its labels are not those that the pod asks for"
	}
	taint, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), taints, p.Placement.Tolerations,
		func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }, true)
	if found {
		return "the pod does not tolerate its taint " + taint.ToString()
	}
	return ""
}
