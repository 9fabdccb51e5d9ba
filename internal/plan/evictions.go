package plan

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// evictions are the pods that the drain of the batches' nodes would meet now, in
// the order of the batches. Pods that no drain evicts (of DaemonSets, static ones,
// those that are going already) are left out; if one of them is in the way, a
// finding says so.
func (b *builder) evictions() []Eviction {
	var out []Eviction
	for _, batch := range b.p.Batches {
		views := b.s.Views(batch.Nodes...)
		for _, name := range batch.Nodes {
			v, ok := views[name]
			if !ok || !b.p.Leaves(name) {
				continue
			}
			for i := range v.Pods {
				p := &v.Pods[i]
				if p.IsHelper() || p.Finished() || p.Static || p.Terminating || p.Owner.Kind == "DaemonSet" {
					continue
				}
				if why := b.reason(v, p); why != "" {
					out = append(out, Eviction{Pod: p.Ref(), Node: name, Owner: p.Owner, Budgets: b.budgets(p), Why: why})
				}
			}
		}
	}
	return out
}

// reason says why a pod has to leave its node, or "".
func (b *builder) reason(v cluster.NodeView, p *cluster.Pod) string {
	if b.in.Operation == Migrate {
		// Nothing is drained again on a node that a run has opened: it has only to settle.
		if mark, err := cluster.ParseNodeState(v.Node); err == nil && mark != nil && mark.Operation == string(Migrate) && mark.OpenedAt != nil {
			return ""
		}
		var held []string
		for _, r := range b.p.Resources {
			if cluster.PluginBacked(p, []string{r}, v.Claims) {
				held = append(held, r)
			}
		}
		if len(held) > 0 {
			return "holds " + strings.Join(held, ", ") + " by the device plugin"
		}
	}
	for _, use := range v.ClaimsOf(b.p.Driver.Names...) {
		if use.Namespace == p.Namespace && slices.Contains(use.Users, p.Name) {
			if use.Generated {
				return "holds " + b.in.Resource + " by claim " + use.Name
			}
			return "holds claim " + use.Name
		}
	}
	if b.in.Settings.Drain == DrainAll {
		return "the whole node is drained"
	}
	return ""
}

// budgets are the PodDisruptionBudgets that cover the pod. One whose selector cannot
// be read is listed: it may be in the way.
func (b *builder) budgets(p *cluster.Pod) []string {
	var out []string
	for i := range b.s.Budgets {
		budget := &b.s.Budgets[i]
		if budget.Namespace != p.Namespace || budget.Spec.Selector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || selector.Matches(labels.Set(p.Labels)) {
			out = append(out, budget.Namespace+"/"+budget.Name)
		}
	}
	slices.SortFunc(out, cmp.Compare)
	return out
}
