package nodeprobe

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// APIView is what the API server has about one node. A nil list was not given, and what
// it would tell is unknown; an empty one says that there is none.
type APIView struct {
	// Slices are those of the node, of every driver.
	Slices []resourcev1.ResourceSlice
	// Claims are those that may be allocated on the node.
	Claims []resourcev1.ResourceClaim
	// Pods are those bound to the node.
	Pods []corev1.Pod
}
