package cluster

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// IsExtended says whether a resource is handed out by a device plugin or by DRA
// rather than by the kubelet itself: its name has a domain that is not one of
// Kubernetes' own, or it is the implicit name of a DeviceClass
// (pkg/apis/core/v1/helper/helpers.go, IsExtendedResourceName, v1.37.2).
func IsExtended(name corev1.ResourceName) bool {
	n := string(name)
	if strings.HasPrefix(n, ImplicitResourcePrefix) {
		return true
	}
	return strings.Contains(n, "/") &&
		!strings.Contains(n, corev1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(n, corev1.DefaultResourceRequestsPrefix)
}
