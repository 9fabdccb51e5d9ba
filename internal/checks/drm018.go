package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm018() Check {
	return Check{
		Code:       "DRM018",
		Title:      "A disruption budget allows no eviction now",
		Why:        "The drain asks the eviction API, which respects budgets. One that allows nothing now may allow something later, so this is no blocker: the drain waits for it, with a deadline.",
		Fix:        "Scale the workload up, or relax the budget for the time of the move.",
		Sources:    []string{"pkg/registry/core/pod/storage/eviction.go, v1.37.2"},
		Operations: []string{Migrate, Rollback},
		Needs:      []string{cluster.PartPods, cluster.PartBudgets, cluster.PartClaims},
		Run: func(in Input) []Finding {
			var out []Finding
			for _, v := range in.targets() {
				for _, p := range in.evictions(v) {
					budgets, err := in.Snapshot.BudgetsOf(&p)
					if err != nil {
						out = append(out, Finding{Code: "DRM018", Severity: Unknown, Object: podObject(&p), Message: err.Error()})
						continue
					}
					for _, b := range budgets {
						if cluster.Allows(b, &p) {
							continue
						}
						out = append(out, Finding{
							Code:     "DRM018",
							Severity: Warning,
							Object:   podObject(&p),
							Message: fmt.Sprintf("budget %s/%s allows no disruption now (%d of %d pods healthy, %d wanted)",
								b.Namespace, b.Name, b.Status.CurrentHealthy, b.Status.ExpectedPods, b.Status.DesiredHealthy),
							Remedy: "scale the workload up or relax the budget before node " + v.Node.Name + "'s turn; the drain waits for it until its deadline",
						})
					}
				}
			}
			return out
		},
	}
}
