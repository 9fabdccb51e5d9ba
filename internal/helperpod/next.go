package helperpod

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/dramigrate/dramigrate/internal/words"
)

// next is what a person can type to see more or to go on. The pod itself is gone by
// then, so it names what stays: events, nodes, slices.
func (j *job) next(kind Kind, err error) string {
	namespace, name, _ := strings.Cut(j.ref(), "/")
	slices := words.Shell("kubectl", "get", "resourceslices", "--field-selector", "spec.driver="+j.driver+",spec.nodeName="+j.node, "-o", "yaml")
	driverPods := fmt.Sprintf("kubectl get pods --all-namespaces -o wide --field-selector spec.nodeName=%s", j.node)
	switch kind {
	case Interrupted:
		return ""
	case Refused:
		switch {
		case err != nil && strings.Contains(err.Error(), "violates PodSecurity"):
			return fmt.Sprintf("kubectl label namespace %s pod-security.kubernetes.io/enforce=privileged", namespace)
		case apierrors.IsNotFound(err):
			return "kubectl create namespace " + namespace
		case apierrors.IsForbidden(err):
			return "kubectl auth can-i create pods -n " + namespace
		}
		return "run the same command again"
	case NoAnswer:
		if apierrors.IsForbidden(err) {
			return "kubectl auth can-i get pods --subresource=log -n " + namespace
		}
	case Foreign, Leftover:
		return fmt.Sprintf("kubectl -n %s describe pod %s", namespace, name)
	case NotScheduled:
		if j.driver != "" {
			return slices
		}
		return "kubectl describe node " + j.node
	case ServedByPlugin:
		return fmt.Sprintf("kubectl get node %s -o jsonpath='{.status.allocatable}'", j.node)
	case NotAllocated:
		return fmt.Sprintf("kubectl -n %s get resourceclaims -o yaml", namespace)
	case NoImage:
		if j.purpose == ForCanary {
			return "name another image for the canary, or its pull secret, and run the same command again"
		}
		return "name another image with --helper-image, or its pull secret; a saved plan is made anew for that"
	case NotPrepared, DevicesDiffer:
		return driverPods + " (the driver's pod, and its log)"
	case Unverifiable:
		return slices
	case RemnantOfPlugin:
		return "run the same command again: it makes a PodResources List call on the node, which clears this"
	case Deleted, Incomplete:
		return "run the same command again"
	}
	return fmt.Sprintf("kubectl -n %s get events --field-selector involvedObject.name=%s", namespace, name)
}
