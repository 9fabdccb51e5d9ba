package checks

import (
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
		Operations:  []string{Migrate, Rollback, MigrateFrom, RollbackFrom},
		Needs:       []string{cluster.PartPods, cluster.PartBudgets, cluster.PartClaims},
		Run: func(in Input) []Finding {
			g := ownerGroups{}
			for _, v := range in.targets() {
				for _, p := range in.evictions(v) {
					budgets, err := in.budgets.Of(&p)
					if err != nil || len(budgets) < 2 || p.Phase == corev1.PodPending {
						continue // DRM018 reports the error
					}
					var names []string
					for _, b := range budgets {
						names = append(names, b.Namespace+"/"+b.Name)
					}
					g.add(&p, "is covered by budgets "+few(names)+"; no such pod can ever be evicted")
				}
			}
			return g.findings(Finding{
				Code: "DRM023", Severity: Blocker,
				Remedy: "leave one budget that covers the pod",
			})
		},
	}
}
