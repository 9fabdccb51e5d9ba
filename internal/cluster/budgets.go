package cluster

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// BudgetsOf are the disruption budgets that cover a pod, in the Snapshot's order. A
// budget with an empty selector covers every pod of its namespace, one without a
// selector none (k8s.io/api/policy/v1, PodDisruptionBudgetSpec).
func (s *Snapshot) BudgetsOf(p *Pod) ([]*policyv1.PodDisruptionBudget, error) {
	var out []*policyv1.PodDisruptionBudget
	for i := range s.Budgets {
		b := &s.Budgets[i]
		if b.Namespace != p.Namespace {
			continue
		}
		sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			return nil, fmt.Errorf("poddisruptionbudget/%s/%s: selector: %w", b.Namespace, b.Name, err)
		}
		if sel.Matches(labels.Set(p.Labels)) {
			out = append(out, b)
		}
	}
	return out, nil
}

// Allows says whether the eviction API would let the pod go now, as far as this one
// budget is concerned: it has disruptions left, or the pod is one that the budget
// does not guard: not running yet, on its way out, or unready under a policy that
// lets unready pods go (pkg/registry/core/pod/storage/eviction.go, v1.37.2).
func Allows(b *policyv1.PodDisruptionBudget, p *Pod) bool {
	if b.Status.DisruptionsAllowed > 0 || p.Phase == "Pending" || p.Finished() || p.Terminating {
		return true
	}
	if p.Ready {
		return false
	}
	if policy := b.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		return true
	}
	return b.Status.DesiredHealthy > 0 && b.Status.CurrentHealthy >= b.Status.DesiredHealthy
}
