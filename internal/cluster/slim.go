package cluster

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SlimNode is the node without what no rule reads: images, volumes, field managers.
func SlimNode(n *corev1.Node) corev1.Node {
	out := *n
	out.ObjectMeta = slimMeta(n.ObjectMeta)
	out.Status.Images = nil
	out.Status.VolumesInUse = nil
	out.Status.VolumesAttached = nil
	return out
}

// SlimDaemonSet is the DaemonSet without the bulk of its history. It keeps the
// names of the field managers and the fact that kubectl applied it: they tell who
// owns it.
func SlimDaemonSet(d *appsv1.DaemonSet) appsv1.DaemonSet {
	out := *d
	out.ObjectMeta = slimMeta(d.ObjectMeta)
	if _, ok := d.Annotations[corev1.LastAppliedConfigAnnotation]; ok {
		out.Annotations = maps.Clone(d.Annotations)
		out.Annotations[corev1.LastAppliedConfigAnnotation] = ""
	}
	for _, m := range d.ManagedFields {
		m.FieldsV1 = nil
		out.ManagedFields = append(out.ManagedFields, m)
	}
	return out
}

// SlimSlice is the ResourceSlice without its field managers. Devices stay whole: a
// DeviceClass may select by any attribute.
func SlimSlice(s *resourcev1.ResourceSlice) resourcev1.ResourceSlice {
	out := *s
	out.ObjectMeta = slimMeta(s.ObjectMeta)
	return out
}

// SlimClass is the DeviceClass without its field managers.
func SlimClass(c *resourcev1.DeviceClass) resourcev1.DeviceClass {
	out := *c
	out.ObjectMeta = slimMeta(c.ObjectMeta)
	return out
}

// SlimClaim is the ResourceClaim without the drivers' configuration and reports:
// who may use what, and who does, is kept.
func SlimClaim(c *resourcev1.ResourceClaim) resourcev1.ResourceClaim {
	out := *c
	out.ObjectMeta = slimMeta(c.ObjectMeta)
	out.Spec.Devices.Config = nil
	out.Status.Devices = nil
	if c.Status.Allocation != nil {
		a := *c.Status.Allocation
		a.Devices.Config = nil
		out.Status.Allocation = &a
	}
	return out
}

// SlimBudget is the PodDisruptionBudget without its field managers.
func SlimBudget(b *policyv1.PodDisruptionBudget) policyv1.PodDisruptionBudget {
	out := *b
	out.ObjectMeta = slimMeta(b.ObjectMeta)
	return out
}

func slimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	m.ManagedFields = nil
	if _, ok := m.Annotations[corev1.LastAppliedConfigAnnotation]; ok {
		m.Annotations = maps.Clone(m.Annotations)
		delete(m.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return m
}
