package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Wants says what a DaemonSet asks of node labels that the node has not, as selectors
// are written ("gpu-mode=dra"); none if its labels fit. Of alternative terms of an
// affinity it is the one that lacks the least, the first of several.
func Wants(ds *appsv1.DaemonSet, node *corev1.Node) []string {
	var out []string
	spec := &ds.Spec.Template.Spec
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		if value, has := node.Labels[key]; !has || value != spec.NodeSelector[key] {
			out = append(out, key+"="+spec.NodeSelector[key])
		}
	}
	return append(out, wantsByAffinity(required(spec.Affinity), node)...)
}

func wantsByAffinity(sel *corev1.NodeSelector, node *corev1.Node) []string {
	if sel == nil {
		return nil
	}
	var least []string
	for i := range sel.NodeSelectorTerms {
		t := &sel.NodeSelectorTerms[i]
		if blank(t) {
			continue
		}
		lacking := []string{}
		for _, e := range t.MatchExpressions {
			if !fitsNode(e, node) {
				lacking = append(lacking, written(e))
			}
		}
		if len(lacking) == 0 && len(t.MatchFields) == 0 {
			return nil
		}
		if least == nil || len(lacking) > 0 && len(lacking) < len(least) {
			least = lacking
		}
	}
	return least
}

// fitsNode says whether the node fits one expression, as the scheduler takes it.
func fitsNode(e corev1.NodeSelectorRequirement, node *corev1.Node) bool {
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{e}},
	}})
	return err == nil && selector.Match(node)
}

// written is an expression as a selector is typed.
func written(e corev1.NodeSelectorRequirement) string {
	values := strings.Join(e.Values, ",")
	switch e.Operator {
	case corev1.NodeSelectorOpIn:
		if len(e.Values) == 1 {
			return e.Key + "=" + values
		}
		return fmt.Sprintf("%s in (%s)", e.Key, values)
	case corev1.NodeSelectorOpNotIn:
		if len(e.Values) == 1 {
			return e.Key + "!=" + values
		}
		return fmt.Sprintf("%s notin (%s)", e.Key, values)
	case corev1.NodeSelectorOpExists:
		return e.Key
	case corev1.NodeSelectorOpDoesNotExist:
		return "!" + e.Key
	case corev1.NodeSelectorOpGt:
		return e.Key + ">" + values
	case corev1.NodeSelectorOpLt:
		return e.Key + "<" + values
	default:
		return fmt.Sprintf("%s %s %s", e.Key, e.Operator, values)
	}
}
