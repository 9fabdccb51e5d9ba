package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestBudgetsOf(t *testing.T) {
	t.Parallel()
	budget := func(ns, name string, sel *metav1.LabelSelector) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: sel}}
	}
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	s := &Snapshot{Budgets: []policyv1.PodDisruptionBudget{
		budget("other", "namespace", app),
		budget("team", "empty", &metav1.LabelSelector{}),
		budget("team", "matching", app),
		budget("team", "none", nil),
		budget("team", "not-matching", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "y"}}),
	}}
	p := Pod{Namespace: "team", Labels: map[string]string{"app": "x"}}
	got, err := s.BudgetsOf(&p)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range got {
		names = append(names, b.Name)
	}
	if diff := cmp.Diff([]string{"empty", "matching"}, names); diff != "" {
		t.Errorf("BudgetsOf (-want +got):\n%s", diff)
	}
	s.Budgets = append(s.Budgets, budget("team", "broken", &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Nonsense"}},
	}))
	if _, err := s.BudgetsOf(&p); err == nil {
		t.Error("a selector that cannot be read is no error")
	}
}

func TestAllows(t *testing.T) {
	t.Parallel()
	running := Pod{Phase: corev1.PodRunning, Ready: true}
	unready := Pod{Phase: corev1.PodRunning}
	status := func(allowed, current, desired int32) policyv1.PodDisruptionBudgetStatus {
		return policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: current, DesiredHealthy: desired}
	}
	for _, tt := range []struct {
		name   string
		pod    Pod
		status policyv1.PodDisruptionBudgetStatus
		policy *policyv1.UnhealthyPodEvictionPolicyType
		want   bool
	}{
		{"a disruption left", running, status(1, 3, 2), nil, true},
		{"none left", running, status(0, 2, 2), nil, false},
		{"pending", Pod{Phase: corev1.PodPending}, status(0, 0, 2), nil, true},
		{"terminating", Pod{Phase: corev1.PodRunning, Ready: true, Terminating: true}, status(0, 2, 2), nil, true},
		{"unready, budget healthy", unready, status(0, 2, 2), nil, true},
		{"unready, budget not healthy", unready, status(0, 1, 2), nil, false},
		{"unready, no health wanted", unready, status(0, 0, 0), nil, false},
		{"unready, always allowed", unready, status(0, 1, 2), ptr.To(policyv1.AlwaysAllow), true},
		{"ready, unready always allowed", running, status(0, 2, 2), ptr.To(policyv1.AlwaysAllow), false},
	} {
		b := policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{UnhealthyPodEvictionPolicy: tt.policy}, Status: tt.status}
		if got := Allows(&b, &tt.pod); got != tt.want {
			t.Errorf("%s: Allows = %t, want %t", tt.name, got, tt.want)
		}
	}
}
