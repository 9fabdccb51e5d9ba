package gate

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// Lands says whether the DaemonSet controller would put a pod on the node, and why
// not: node name, node selector, required node affinity, and taints of effect
// NoSchedule or NoExecute against the template's tolerations and those that every
// DaemonSet pod is given (pkg/controller/daemon/daemon_controller.go,
// nodeShouldRunDaemonPod, v1.37.2). A pod that runs already stays where an
// untolerated NoSchedule taint appears; Lands is about a new one.
func Lands(ds *appsv1.DaemonSet, node *corev1.Node) (lands bool, why string) {
	spec := &ds.Spec.Template.Spec
	if spec.NodeName != "" && spec.NodeName != node.Name {
		return false, fmt.Sprintf("its template is for node %s alone", spec.NodeName)
	}
	// Like the controller: a term that cannot be parsed matches nothing.
	if fits, _ := nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity).Match(node); !fits {
		return false, "its node selector or node affinity does not match the node's labels"
	}
	taint, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, daemonTolerations(spec),
		func(t *corev1.Taint) bool {
			return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
		}, false)
	if found {
		return false, "it does not tolerate the node's taint " + taint.ToString()
	}
	return true, ""
}

// daemonTolerations are the template's tolerations and those that the controller
// adds (pkg/controller/daemon/util/daemonset_util.go, AddOrUpdateDaemonPodTolerations).
func daemonTolerations(spec *corev1.PodSpec) []corev1.Toleration {
	out := append([]corev1.Toleration(nil), spec.Tolerations...)
	add := func(key string, effect corev1.TaintEffect) {
		out = append(out, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
	}
	add(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	if spec.HostNetwork {
		add(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
	return out
}
