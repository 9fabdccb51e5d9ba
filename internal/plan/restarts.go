package plan

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// restart lists the DaemonSet's pods that a change of its template restarts or
// removes, and returns how many. why is the reason for all of them; with whyOn it
// is asked for each node, and "" means that the pod stays.
func (b *builder) restart(ds *appsv1.DaemonSet, why string, whyOn func(*corev1.Node) string) int {
	n := 0
	for _, p := range b.podsOf(ds) {
		reason := why
		if whyOn != nil {
			node, ok := b.s.Node(p.Node)
			if !ok {
				continue
			}
			if reason = whyOn(node); reason == "" {
				continue
			}
		}
		b.p.Restarts = append(b.p.Restarts, Restart{Pod: p.Ref(), Node: p.Node, Why: reason})
		n++
	}
	return n
}

// podsOf are the DaemonSet's pods, by node.
func (b *builder) podsOf(ds *appsv1.DaemonSet) []cluster.Pod {
	var out []cluster.Pod
	for i := range b.s.Pods {
		p := &b.s.Pods[i]
		if p.Namespace == ds.Namespace && p.Owner.Kind == "DaemonSet" && p.Owner.Name == ds.Name &&
			(ds.UID == "" || p.Owner.UID == ds.UID) {
			out = append(out, *p)
		}
	}
	slices.SortStableFunc(out, func(a, b cluster.Pod) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// Where the DaemonSet controller writes which template a pod is of; both go by the
// counter of template changes
// (k8s.io/api/apps/v1, DeprecatedTemplateGeneration; extensions/v1beta1,
// DaemonSetTemplateGenerationKey).
const (
	generationLabel      = "pod-template-generation"
	generationAnnotation = appsv1.DeprecatedTemplateGeneration
)

// ofCurrentTemplate says whether a pod was made from the template that its DaemonSet
// has now. One that was not, while the strategy is OnDelete, is of the template
// before the edit: when the edit is taken back the controller finds the former
// revision again and leaves the pod alone
// (pkg/controller/daemon/update.go, constructHistory, v1.37.2).
func ofCurrentTemplate(p *cluster.Pod, ds *appsv1.DaemonSet) bool {
	now, known := ds.Annotations[generationAnnotation]
	own, labelled := p.Labels[generationLabel]
	return !known || !labelled || own == now
}
