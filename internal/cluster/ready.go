package cluster

import corev1 "k8s.io/api/core/v1"

// ReadyCondition is what a node's kubelet says of itself, by the condition Ready; nil if
// it has said nothing yet.
func ReadyCondition(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return nil
}

// Ready says that the node's kubelet reports that it is ready. One that says nothing is
// not.
func Ready(n *corev1.Node) bool {
	c := ReadyCondition(n)
	return c != nil && c.Status == corev1.ConditionTrue
}
