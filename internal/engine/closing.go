package engine

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func closedAnnotationKeys() []string { return slices.Sorted(maps.Keys(gate.AutoscalerAnnotations())) }

// priorOf records what a node is like before the tool changes it.
func priorOf(node *corev1.Node, g gate.Gate) cluster.Prior {
	p := cluster.Prior{
		Unschedulable: node.Spec.Unschedulable,
		Labels:        map[string]*string{},
		Annotations:   map[string]*string{},
	}
	for _, k := range g.Keys() {
		p.Labels[k] = valueOf(node.Labels, k)
	}
	for _, k := range closedAnnotationKeys() {
		p.Annotations[k] = valueOf(node.Annotations, k)
	}
	return p
}

func valueOf(m map[string]string, k string) *string {
	if v, ok := m[k]; ok {
		return &v
	}
	return nil
}

// closeNode cordons and taints a node and tells the autoscalers. The taint is there
// because other controllers uncordon nodes that they did not cordon; lifted leaves
// it away for a DaemonSet pod to land.
func closeNode(node *corev1.Node, lifted bool) {
	node.Spec.Unschedulable = true
	if lifted {
		liftTaint(node)
	} else if !slices.ContainsFunc(node.Spec.Taints, gate.IsSwitchingTaint) {
		node.Spec.Taints = append(node.Spec.Taints, gate.SwitchingTaint())
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	maps.Copy(node.Annotations, gate.AutoscalerAnnotations())
}

func liftTaint(node *corev1.Node) {
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, gate.IsSwitchingTaint)
}

// openNode puts back what closeNode changed, and nothing else: a node that somebody
// else had cordoned stays cordoned.
func openNode(node *corev1.Node, p cluster.Prior) {
	liftTaint(node)
	node.Spec.Unschedulable = p.Unschedulable
	annotationsBack(node, p)
}

// annotationsBack gives the annotations for autoscalers the values that they had.
func annotationsBack(node *corev1.Node, p cluster.Prior) {
	for k, v := range p.Annotations {
		if v == nil {
			delete(node.Annotations, k)
		} else {
			node.Annotations[k] = *v
		}
	}
}
