package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// KeepsClaimState says that the node's kubelet has a record of claims on its disk from
// its first start on: DRA is on by default since Kubernetes 1.34
// (pkg/features/kube_features.go, DynamicResourceAllocation).
func KeepsClaimState(n *corev1.Node) bool {
	v, err := version.ParseGeneric(n.Status.NodeInfo.KubeletVersion)
	return err == nil && v.AtLeast(version.MajorMinor(1, 34))
}
