package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

const (
	record      = "dramigrate.dev/state"
	allocation  = "dramigrate.dev/allocation"
	scaleDown   = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	doNotDisrup = "karpenter.sh/do-not-disrupt"
)

// closedNode is a node where a run was killed: closed, between the mechanisms, with
// the record that the node had been cordoned and kept by its autoscaler before.
func closedNode(t *testing.T, node *corev1.Node) {
	t.Helper()
	text, err := cluster.NodeState{Pool: "gpu-a", Operation: "migrate", Run: "r0", Epoch: 1, Phase: "plugin-off",
		Prior: cluster.Prior{Unschedulable: true,
			Labels:      map[string]*string{allocation: nil},
			Annotations: map[string]*string{scaleDown: ptr.To("false"), doNotDisrup: nil}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	node.Labels[allocation] = "switching"
	node.Annotations = map[string]string{record: text, scaleDown: "true", doNotDisrup: "true"}
	node.Spec.Unschedulable = true
	node.Spec.Taints = []corev1.Taint{{Key: "theirs", Effect: corev1.TaintEffectNoExecute}, {Key: "dramigrate.dev/switching", Effect: corev1.TaintEffectNoSchedule}}
}

var closedFields = NodeFields{
	Labels:        map[string]string{allocation: "switching"},
	Annotations:   map[string]string{record: "<record of run r0>", scaleDown: "true", doNotDisrup: "true"},
	Unschedulable: true,
	Taints:        []corev1.Taint{{Key: "dramigrate.dev/switching", Effect: corev1.TaintEffectNoSchedule}},
}

// A fresh node gets label and record and nothing else in the end; a cordon of
// somebody else's stays; a killed run's node goes back to what it was before that run.
func TestNodeChangesOfMigrate(t *testing.T) {
	s, shared := prepared(t)
	a1, _ := s.Node("a-1")
	a1.Spec.Unschedulable = true
	a2, _ := s.Node("a-2")
	closedNode(t, a2)
	in := intent(Migrate)
	in.Shared = shared
	want := []NodeChange{
		{Nodes: []string{"a-2"}, Before: closedFields, After: NodeFields{
			Labels:        map[string]string{allocation: "dra"},
			Annotations:   map[string]string{record: "<record of this run>", scaleDown: "false"},
			Unschedulable: true}},
		{Nodes: []string{"a-1"}, Before: NodeFields{Unschedulable: true}, After: NodeFields{
			Labels: map[string]string{allocation: "dra"}, Annotations: map[string]string{record: "<record of this run>"}, Unschedulable: true}},
		{Nodes: []string{"a-3"}, After: NodeFields{
			Labels: map[string]string{allocation: "dra"}, Annotations: map[string]string{record: "<record of this run>"}}},
	}
	if diff := cmp.Diff(want, build(t, in, s).NodeChanges); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNodeChangesOfRollback(t *testing.T) {
	s, _ := prepared(t)
	a2, _ := s.Node("a-2")
	closedNode(t, a2)
	migrated(t, s, "a-3", true)
	a3, _ := s.Node("a-3")
	a3.Spec.Unschedulable = true // by somebody, after the migration
	want := []NodeChange{
		{Nodes: []string{"a-2"}, Before: closedFields, After: NodeFields{
			Annotations: map[string]string{scaleDown: "false"}, Unschedulable: true}},
		{Nodes: []string{"a-3"},
			Before: NodeFields{Labels: map[string]string{allocation: "dra"}, Annotations: map[string]string{record: "<record of run r1>"}, Unschedulable: true},
			After:  NodeFields{Unschedulable: true}},
	}
	if diff := cmp.Diff(want, build(t, intent(Rollback), s).NodeChanges); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
