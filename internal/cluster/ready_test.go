package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestReady(t *testing.T) {
	node := func(status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: status},
		}}}
	}
	for status, want := range map[corev1.ConditionStatus]bool{
		corev1.ConditionTrue: true, corev1.ConditionFalse: false, corev1.ConditionUnknown: false,
	} {
		if got := Ready(node(status)); got != want {
			t.Errorf("Ready %s: %t", status, got)
		}
	}
	silent := &corev1.Node{}
	if Ready(silent) || ReadyCondition(silent) != nil {
		t.Error("a node that says nothing is ready")
	}
}
