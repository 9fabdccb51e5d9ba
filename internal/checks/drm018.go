package checks

import (
	"fmt"
	"maps"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm018() Check {
	return Check{
		Code:       "DRM018",
		Title:      "A disruption budget allows no eviction now",
		Why:        "The drain asks the eviction API, which respects budgets. One that allows nothing now may allow something later, when all of its pods are healthy: the drain waits for it, with a deadline. One that wants every pod at all times (maxUnavailable 0, minAvailable as many as there are or 100%) never does: the run would stop at that node with the pods of earlier nodes moved already, so such a budget is a blocker, and one that may pass a warning.",
		Fix:        "Scale the workload up, or relax the budget for the time of the move. If it is to be relaxed only while the run waits for it, skip the finding: the drain then waits until its deadline, names the budget, and goes on as soon as that lets it.",
		Sources:    []string{"pkg/registry/core/pod/storage/eviction.go, v1.37.2", "pkg/controller/disruption/disruption.go, v1.37.2", "kubernetes/kubectl#172"},
		Operations: []string{Migrate, Rollback, MigrateFrom, RollbackFrom},
		Needs:      []string{cluster.PartPods, cluster.PartBudgets, cluster.PartClaims},
		Run: func(in Input) []Finding {
			now, never := map[string]ownerGroups{}, map[string]ownerGroups{} // by remedy
			var out []Finding
			for _, v := range in.targets() {
				for _, p := range in.evictions(v) {
					budgets, err := in.budgets.Of(&p)
					if err != nil {
						out = append(out, Finding{Code: "DRM018", Severity: Unknown, Object: podObject(&p), Message: err.Error(), Remedy: "correct the selector of the budget: `kubectl get pdb -n " + p.Namespace + " -o yaml`"})
						continue
					}
					for _, b := range budgets {
						if cluster.Allows(b, &p) {
							continue
						}
						if why, remedy := neverAllows(b); why != "" {
							put(never, remedy, &p, fmt.Sprintf("budget %s/%s can never allow an eviction: %s", b.Namespace, b.Name, why))
							continue
						}
						put(now, "scale the workload up or relax the budget before its nodes' turn; the drain waits for it until its deadline", &p,
							fmt.Sprintf("budget %s/%s allows no disruption now (%d of %d pods healthy, %d wanted)",
								b.Namespace, b.Name, b.Status.CurrentHealthy, b.Status.ExpectedPods, b.Status.DesiredHealthy))
					}
				}
			}
			out = append(out, byRemedy(never, Finding{Code: "DRM018", Severity: Blocker})...)
			return append(out, byRemedy(now, Finding{Code: "DRM018", Severity: Warning})...)
		},
	}
}

func byRemedy(groups map[string]ownerGroups, base Finding) []Finding {
	var out []Finding
	for _, remedy := range slices.Sorted(maps.Keys(groups)) {
		base.Remedy = remedy
		out = append(out, groups[remedy].findings(base)...)
	}
	return out
}

func put(groups map[string]ownerGroups, remedy string, p *cluster.Pod, evidence string) {
	if groups[remedy] == nil {
		groups[remedy] = ownerGroups{}
	}
	groups[remedy].add(p, evidence)
}

// neverAllows says why a budget allows no eviction however long one waits, and what to
// change; empty if it may allow one when all of its pods are healthy. It counts as the
// disruption controller does (pkg/controller/disruption/disruption.go,
// getExpectedPodCount, v1.37.2), from the number of pods that this one saw last.
func neverAllows(b *policyv1.PodDisruptionBudget) (why, remedy string) {
	expected := int(b.Status.ExpectedPods)
	counted := expected > 0 && b.Status.ObservedGeneration >= b.Generation
	patch := func(field string) string {
		return fmt.Sprintf("`kubectl patch pdb %s -n %s --type merge -p '{\"spec\":{%s}}'`, or end the pods yourself; the drain would wait until its deadline and the run stop there", b.Name, b.Namespace, field)
	}
	switch most, least := b.Spec.MaxUnavailable, b.Spec.MinAvailable; {
	case most != nil:
		// Shares of pods are rounded up: only a share of nothing is none, of any number.
		if n, err := intstr.GetScaledValueFromIntOrPercent(most, 100, true); err == nil && n == 0 {
			return "maxUnavailable is " + most.String(), patch(`"maxUnavailable":1`)
		}
	case least != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(least, expected, true)
		whole := least.Type == intstr.String && least.StrVal == "100%"
		if err != nil || !whole && (!counted || n < expected) {
			return "", ""
		}
		why = "minAvailable is " + least.String()
		if counted {
			why += ", and it covers " + words.Count(expected, "pod")
		}
		if least.Type == intstr.Int && n == expected {
			return why, fmt.Sprintf("scale the workload to %d pods, or %s", expected+1, patch(fmt.Sprintf(`"minAvailable":%d`, expected-1)))
		}
		return why, patch(`"minAvailable":null,"maxUnavailable":1`)
	}
	return "", ""
}
