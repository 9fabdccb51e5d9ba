package helperpod

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// TestSweep removes what a killed run has left for the node, and nothing else.
func TestSweep(t *testing.T) {
	pod := func(name, run, node string, helper bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tool", Name: name,
			Labels: map[string]string{RunLabel: run}, Annotations: map[string]string{cluster.HelperNodeAnnotation: node}}}
		if helper {
			p.Labels[PurposeLabel] = string(ForCanary)
		}
		return p
	}
	client := fake.NewClientset(
		pod("left", "killed", "gpu-1", true), pod("ours", "now", "gpu-1", true),
		pod("elsewhere", "killed", "gpu-2", true), pod("theirs", "killed", "gpu-1", false))
	r := New(client, clock.RealClock{}, Config{Namespace: "tool", Run: "now", Image: "x"})
	if err := r.Sweep(t.Context(), "gpu-1"); err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Pods("tool").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	if want := []string{"elsewhere", "ours", "theirs"}; !slices.Equal(names, want) {
		t.Errorf("left are %q, want %q", names, want)
	}
}
