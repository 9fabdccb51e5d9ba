package gate

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLands(t *testing.T) {
	t.Parallel()
	taint := func(key string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Effect: effect}
	}
	gpuTaint := taint("nvidia.com/gpu", corev1.TaintEffectNoSchedule)
	tolerating := func(spec *corev1.PodSpec) {
		spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	}
	for _, tt := range []struct {
		name   string
		spec   func(*corev1.PodSpec)
		taints []corev1.Taint
		why    string // a part of the reason; empty if it lands
	}{
		{"nothing in the way", nil, nil, ""},
		{"a node selector that matches", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"gpu": "true"} }, nil, ""},
		{"a node selector that does not", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"gpu": "false"} }, nil, "node selector"},
		{"an affinity that does not match", func(s *corev1.PodSpec) { s.Affinity = requiring(term(in("gpu", "false"))) }, nil, "node affinity"},
		{"an empty term matches nothing", func(s *corev1.PodSpec) { s.Affinity = requiring(corev1.NodeSelectorTerm{}) }, nil, "node affinity"},
		{"one of two terms matches", func(s *corev1.PodSpec) { s.Affinity = requiring(term(in("x", "y")), term(in("gpu", "true"))) }, nil, ""},
		{"another node by name", func(s *corev1.PodSpec) { s.NodeName = "n2" }, nil, "for node n2"},
		{"cordoned", nil, []corev1.Taint{taint("node.kubernetes.io/unschedulable", corev1.TaintEffectNoSchedule)}, ""},
		{"not ready", nil, []corev1.Taint{taint("node.kubernetes.io/not-ready", corev1.TaintEffectNoExecute)}, ""},
		{"unreachable", nil, []corev1.Taint{taint("node.kubernetes.io/unreachable", corev1.TaintEffectNoExecute)}, ""},
		{"pressure", nil, []corev1.Taint{
			taint("node.kubernetes.io/disk-pressure", corev1.TaintEffectNoSchedule),
			taint("node.kubernetes.io/memory-pressure", corev1.TaintEffectNoSchedule),
			taint("node.kubernetes.io/pid-pressure", corev1.TaintEffectNoSchedule),
		}, ""},
		{"no network, own network namespace", nil, []corev1.Taint{taint("node.kubernetes.io/network-unavailable", corev1.TaintEffectNoSchedule)}, "network-unavailable"},
		{"no network, the host's", func(s *corev1.PodSpec) { s.HostNetwork = true },
			[]corev1.Taint{taint("node.kubernetes.io/network-unavailable", corev1.TaintEffectNoSchedule)}, ""},
		{"the tool's taint", nil, []corev1.Taint{SwitchingTaint()}, "dramigrate.dev/switching"},
		{"a taint that it does not tolerate", nil, []corev1.Taint{gpuTaint}, "nvidia.com/gpu:NoSchedule"},
		{"a taint that it tolerates", tolerating, []corev1.Taint{gpuTaint}, ""},
		{"a stronger taint of that key", tolerating, []corev1.Taint{taint("nvidia.com/gpu", corev1.TaintEffectNoExecute)}, "NoExecute"},
		{"a taint that only asks", nil, []corev1.Taint{taint("x", corev1.TaintEffectPreferNoSchedule)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ds := &appsv1.DaemonSet{}
			if tt.spec != nil {
				tt.spec(&ds.Spec.Template.Spec)
			}
			n := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"gpu": "true"}},
				Spec:       corev1.NodeSpec{Taints: tt.taints},
			}
			lands, why := Lands(ds, n)
			if lands != (tt.why == "") || !strings.Contains(why, tt.why) || lands && why != "" {
				t.Errorf("Lands = %t, %q, want a reason with %q", lands, why, tt.why)
			}
		})
	}
}
