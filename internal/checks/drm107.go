package checks

import "github.com/dramigrate/dramigrate/internal/cluster"

func drm107() Check {
	return Check{
		Code:       "DRM107",
		Title:      "Pods are scheduled as a group",
		Why:        "The generated claim of an extended resource belongs to one pod. kube-scheduler shares what it is about to allocate among the pods of a group only for the group's own claims, so that a part of a gang can hold devices while the rest waits.",
		Fix:        "Admit whole groups by a queue with a quota of devices, and try one group on the first node that is switched.",
		Sources:    []string{"pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, PodGroupPostFilter, v1.37.2", "KEP-4671"},
		Advises:    true,
		Operations: []string{Migrate, MigrateFrom},
		Needs:      append(workloadParts(), cluster.PartPods, cluster.PartClaims),
		Run: func(in Input) []Finding {
			return in.askers(func(p *cluster.Pod) string {
				if p.Group == "" {
					return ""
				}
				return "is scheduled as part of a group, and claims for extended resources are allocated pod by pod"
			}).findings(Finding{
				Code: "DRM107", Severity: Warning,
				Remedy: "try one whole group when the first nodes are switched; see `kubectl get pods -l scheduling.x-k8s.io/pod-group=GROUP` for pods that wait",
			})
		},
	}
}
