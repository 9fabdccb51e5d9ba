package checks

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm023() Check {
	return Check{
		Code:        "DRM023",
		Title:       "Two disruption budgets cover one pod",
		Why:         "The eviction API answers 500 for a pod that two budgets cover, however many disruptions they allow. Such a pod is never evicted.",
		Fix:         "Leave one budget that covers the pod.",
		Sources:     []string{"pkg/registry/core/pod/storage/eviction.go, v1.37.2"},
		Unskippable: true,
		Operations:  []string{Migrate, Rollback},
		Needs:       []string{cluster.PartPods, cluster.PartBudgets, cluster.PartClaims},
		Run: func(in Input) []Finding {
			var out []Finding
			for _, v := range in.targets() {
				for _, p := range in.evictions(v) {
					budgets, err := in.Snapshot.BudgetsOf(&p)
					if err != nil || len(budgets) < 2 || p.Phase == corev1.PodPending {
						continue // DRM018 reports the error
					}
					var names []string
					for _, b := range budgets {
						names = append(names, b.Namespace+"/"+b.Name)
					}
					out = append(out, Finding{
						Code:     "DRM023",
						Severity: Blocker,
						Object:   podObject(&p),
						Message:  fmt.Sprintf("on node %s, is covered by budgets %s; no such pod can ever be evicted", v.Node.Name, few(names)),
						Remedy:   "leave one budget that covers the pod",
					})
				}
			}
			return out
		},
	}
}
