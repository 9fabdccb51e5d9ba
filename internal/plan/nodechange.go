package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// NodeChange is how nodes of the batches were when the plan was made and how the run
// leaves them, in the fields that it writes. Nodes that are alike stand together.
type NodeChange struct {
	Nodes  []string   `json:"nodes"`
	Before NodeFields `json:"before"`
	After  NodeFields `json:"after"`
}

// NodeFields are what a run writes of a node. What only the run knows stands in angle
// brackets.
type NodeFields struct {
	// Labels are the gate's; one that is not here is absent.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are the tool's record and those that keep autoscalers away.
	Annotations   map[string]string `json:"annotations,omitempty"`
	Unschedulable bool              `json:"unschedulable,omitempty"`
	// Taints has the tool's own and no other: those of others stay as they are.
	Taints []corev1.Taint `json:"taints,omitempty"`
}

// nodeChanges are those of the batches' nodes, groups in the order of their first node.
func (b *builder) nodeChanges() []NodeChange {
	var out []NodeChange
	for _, batch := range b.p.Batches {
		for _, name := range batch.Nodes {
			node, ok := b.s.Node(name)
			if !ok {
				continue
			}
			before, after := b.nodeFields(node)
			i := slices.IndexFunc(out, func(c NodeChange) bool {
				return reflect.DeepEqual(c.Before, before) && reflect.DeepEqual(c.After, after)
			})
			if i < 0 {
				out, i = append(out, NodeChange{Before: before, After: after}), len(out)
			}
			out[i].Nodes = append(out[i].Nodes, name)
		}
	}
	return out
}

// nodeFields follows what the engine does: a node that is closed goes back to what
// its record says it was before, one that is open to what it is now.
func (b *builder) nodeFields(node *corev1.Node) (before, after NodeFields) {
	before = NodeFields{
		Labels:        picked(node.Labels, slices.Sorted(maps.Keys(b.p.Gate.Labels[gate.Plugin]))),
		Annotations:   picked(node.Annotations, slices.Sorted(maps.Keys(gate.AutoscalerAnnotations()))),
		Unschedulable: node.Spec.Unschedulable,
	}
	after = NodeFields{
		Labels: map[string]string{}, Annotations: maps.Clone(before.Annotations),
		Unschedulable: before.Unschedulable,
	}
	if slices.ContainsFunc(node.Spec.Taints, gate.IsSwitchingTaint) {
		before.Taints = []corev1.Taint{gate.SwitchingTaint()}
	}
	state, err := cluster.ParseNodeState(node)
	switch {
	case err != nil:
		before.Annotations[gate.StateAnnotation] = "<a record that cannot be read>"
	case state != nil:
		before.Annotations[gate.StateAnnotation] = fmt.Sprintf("<record of run %s>", state.Run)
		if state.OpenedAt == nil {
			after.Unschedulable = state.Prior.Unschedulable
			restore(after.Annotations, state.Prior.Annotations)
		}
	}
	if role := b.p.RoleOf(node.Name); role != "" && !(b.p.Operation == Rollback && role == cluster.RoleOld) {
		after.Labels = maps.Clone(before.Labels)
		after.Annotations[gate.StateAnnotation] = "<record of this run>"
		if b.p.Leaves(node.Name) {
			after.Unschedulable, after.Taints = true, []corev1.Taint{gate.SwitchingTaint()}
		}
		return before, after
	}
	if b.p.Operation == Rollback {
		_, switched := node.Labels[gate.AllocationLabel]
		if state == nil && !switched {
			after.Labels = maps.Clone(before.Labels)
		} else {
			restore(after.Labels, b.p.Gate.Before(state))
		}
		if state == nil && len(before.Taints) > 0 {
			after.Unschedulable = false // the record was lost; whoever tainted it cordoned it
		}
		return before, after
	}
	for key, value := range b.p.Gate.Labels[gate.DRA] {
		if value != "" {
			after.Labels[key] = value
		}
	}
	after.Annotations[gate.StateAnnotation] = "<record of this run>"
	return before, after
}

// picked are the values of keys in m, those that are there.
func picked(m map[string]string, keys []string) map[string]string {
	out := map[string]string{}
	for _, k := range keys {
		if v, ok := m[k]; ok {
			out[k] = v
		}
	}
	return out
}

// restore puts recorded values back into m; nil means that there was none.
func restore(m map[string]string, recorded map[string]*string) {
	for k, v := range recorded {
		if v == nil {
			delete(m, k)
		} else {
			m[k] = *v
		}
	}
}
