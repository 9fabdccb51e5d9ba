package pending

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// shut says why a node takes no pod; empty if it does. mends is true for a cordon and
// for the taint of this tool: a person, or a run, opens the node again.
func shut(n *corev1.Node, p *cluster.Placement) (why string, mends bool) {
	var tolerations []corev1.Toleration
	if p != nil {
		tolerations = p.Tolerations
	}
	untolerated := func(taints ...corev1.Taint) string {
		t, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), taints, tolerations, func(t *corev1.Taint) bool {
			return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
		}, false)
		if !found {
			return ""
		}
		return t.ToString()
	}
	if untolerated(gate.SwitchingTaint()) != "" {
		for _, t := range n.Spec.Taints {
			if gate.IsSwitchingTaint(t) {
				return "closed by the taint " + gate.SwitchingTaintKey, true
			}
		}
	}
	if n.Spec.Unschedulable && untolerated(corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) != "" {
		return "cordoned", true
	}
	if p == nil { // what it tolerates is not known
		return "", false
	}
	if t := untolerated(n.Spec.Taints...); t != "" {
		return "tainted " + t + ", which the pod does not tolerate", false
	}
	return "", false
}

// taintsOf are the taints of a driver's devices that the slices tell. Those of a
// DeviceTaintRule are not among them.
func taintsOf(list []resourcev1.ResourceSlice, driver string) map[device][]resourcev1.DeviceTaint {
	out := map[device][]resourcev1.DeviceTaint{}
	for i := range list {
		spec := &list[i].Spec
		if spec.Driver != driver {
			continue
		}
		for j := range spec.Devices {
			if d := &spec.Devices[j]; len(d.Taints) > 0 {
				out[device{driver, spec.Pool.Name, d.Name}] = d.Taints
			}
		}
	}
	return out
}

// untolerated is the first taint that keeps a device from a request; empty if none does
// (k8s.io/dynamic-resource-allocation/resourceclaim, ToleratesTaint, v0.37.2).
func untolerated(taints []resourcev1.DeviceTaint, tolerations []resourcev1.DeviceToleration) string {
	for _, t := range taints {
		if cluster.ClosesDevice(t) && !tolerated(t, tolerations) {
			return t.Key + "=" + t.Value + ":" + string(t.Effect)
		}
	}
	return ""
}

func tolerated(t resourcev1.DeviceTaint, tolerations []resourcev1.DeviceToleration) bool {
	for i := range tolerations {
		if resourceclaim.ToleratesTaint(tolerations[i], t) {
			return true
		}
	}
	return false
}
