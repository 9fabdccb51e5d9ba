package gate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOwnKeyStates(t *testing.T) {
	t.Parallel()
	g := OwnKey()
	for _, tt := range []struct {
		labels map[string]string
		want   State
		ok     bool
	}{
		{nil, Plugin, true},
		{map[string]string{"x": "y"}, Plugin, true},
		{map[string]string{"dramigrate.dev/allocation": "switching"}, Switching, true},
		{map[string]string{"dramigrate.dev/allocation": "dra"}, DRA, true},
		{map[string]string{"dramigrate.dev/allocation": "plugin"}, "", false},
	} {
		if got, ok := g.StateOf(tt.labels); got != tt.want || ok != tt.ok {
			t.Errorf("StateOf(%v) = %q, %t, want %q, %t", tt.labels, got, ok, tt.want, tt.ok)
		}
	}
	if named, ok := Named("own-key"); !ok || cmp.Diff(g, named) != "" {
		t.Error("the own gate is not found by its name")
	}
	if _, ok := Named("nope"); ok {
		t.Error("a gate that does not exist is found")
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	other := corev1.Taint{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a", AllocationLabel: "switching"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{SwitchingTaint(), other}},
	}
	before := node.DeepCopy()
	for _, tt := range []struct {
		state State
		want  map[string]string
	}{
		{Plugin, map[string]string{"zone": "a"}},
		{Switching, map[string]string{"zone": "a", "dramigrate.dev/allocation": "switching"}},
		{DRA, map[string]string{"zone": "a", "dramigrate.dev/allocation": "dra"}},
	} {
		got := OwnKey().With(node, tt.state)
		if diff := cmp.Diff(tt.want, got.Labels); diff != "" {
			t.Errorf("labels in state %s (-want +got):\n%s", tt.state, diff)
		}
		if diff := cmp.Diff([]corev1.Taint{other}, got.Spec.Taints); diff != "" {
			t.Errorf("taints in state %s (-want +got):\n%s", tt.state, diff)
		}
	}
	if diff := cmp.Diff(before, node); diff != "" {
		t.Errorf("With wrote into its argument:\n%s", diff)
	}
}
