package cluster

import (
	"fmt"
	"maps"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// BudgetsOf are the disruption budgets that cover a pod, in the Snapshot's order. A
// budget with an empty selector covers every pod of its namespace, one without a
// selector none (k8s.io/api/policy/v1, PodDisruptionBudgetSpec). For many pods use
// IndexBudgets.
func (s *Snapshot) BudgetsOf(p *Pod) ([]*policyv1.PodDisruptionBudget, error) {
	return IndexBudgets(s.Budgets).Of(p)
}

// BudgetIndex finds the budgets of many pods: thousands of pods against hundreds of
// budgets each would be millions of selectors.
type BudgetIndex struct {
	list []policyv1.PodDisruptionBudget
	// byLabel are the places in list of budgets that want a label, by one of those that
	// they want; rest are those that want none.
	byLabel map[budgetLabel][]int
	rest    map[string][]int // by namespace
}

type budgetLabel struct{ namespace, key, value string }

// IndexBudgets makes the index of a list, which must not change afterwards.
func IndexBudgets(list []policyv1.PodDisruptionBudget) *BudgetIndex {
	x := &BudgetIndex{list: list, byLabel: map[budgetLabel][]int{}, rest: map[string][]int{}}
	for i := range list {
		b := &list[i]
		switch sel := b.Spec.Selector; {
		case sel == nil:
		case len(sel.MatchLabels) == 0:
			x.rest[b.Namespace] = append(x.rest[b.Namespace], i)
		default:
			key := slices.Min(slices.Collect(maps.Keys(sel.MatchLabels)))
			at := budgetLabel{b.Namespace, key, sel.MatchLabels[key]}
			x.byLabel[at] = append(x.byLabel[at], i)
		}
	}
	return x
}

// Of is like Snapshot.BudgetsOf.
func (x *BudgetIndex) Of(p *Pod) ([]*policyv1.PodDisruptionBudget, error) {
	candidates := slices.Clone(x.rest[p.Namespace])
	for key, value := range p.Labels {
		candidates = append(candidates, x.byLabel[budgetLabel{p.Namespace, key, value}]...)
	}
	slices.Sort(candidates)
	var out []*policyv1.PodDisruptionBudget
	for _, i := range candidates {
		b := &x.list[i]
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
