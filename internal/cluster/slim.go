package cluster

import (
	"encoding/json"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/vendor"
)

// The results of the functions below are the same if they are slimmed again, and when
// they come back from a file: a plan from a snapshot is the plan made live.

// SlimNode is the node without what no rule reads: images, volumes, addresses. Of field
// managers it keeps, for a node that a run has marked, who wrote which label.
func SlimNode(n *corev1.Node) corev1.Node {
	out := *n
	out.ObjectMeta = slimMeta(n.ObjectMeta)
	if _, marked := n.Annotations[StateAnnotation]; marked {
		out.ManagedFields = labelManagers(n.ManagedFields)
	}
	out.Status.Images = nil
	out.Status.VolumesInUse = nil
	out.Status.VolumesAttached = nil
	out.Status.Addresses = nil
	return out
}

// SlimDaemonSet is the DaemonSet without the bulk of its history and without what its
// containers are told by their environment, but for what decides how devices are
// handed out: a value may be a password. It keeps the names of the field managers and
// the fact that kubectl applied it: they tell who owns it.
func SlimDaemonSet(d *appsv1.DaemonSet) appsv1.DaemonSet {
	out := *d
	out.ObjectMeta = slimMeta(d.ObjectMeta)
	out.Spec.Template.ObjectMeta = slimMeta(d.Spec.Template.ObjectMeta)
	out.Spec.Template.Spec.InitContainers = slimContainers(d.Spec.Template.Spec.InitContainers)
	out.Spec.Template.Spec.Containers = slimContainers(d.Spec.Template.Spec.Containers)
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

// SlimClass is the DeviceClass without its field managers and with the parameters of
// drivers in one form.
func SlimClass(c *resourcev1.DeviceClass) resourcev1.DeviceClass {
	out := *c
	out.ObjectMeta = slimMeta(c.ObjectMeta)
	out.Spec.Config = slices.Clone(c.Spec.Config)
	for i := range out.Spec.Config {
		if o := out.Spec.Config[i].Opaque; o != nil {
			plain := *o
			plain.Parameters.Raw = plainJSON(o.Parameters.Raw)
			out.Spec.Config[i].Opaque = &plain
		}
	}
	return out
}

// plainJSON writes JSON as Go does: a number such as 1.0 would not survive YAML, and
// the digest of the class would change.
func plainJSON(raw []byte) []byte {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
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

// SlimBudget is the PodDisruptionBudget without its field managers and its history.
func SlimBudget(b *policyv1.PodDisruptionBudget) policyv1.PodDisruptionBudget {
	out := *b
	out.ObjectMeta = slimMeta(b.ObjectMeta)
	out.Status.DisruptedPods = nil
	out.Status.Conditions = nil
	return out
}

// slimContainers drops what no rule reads of containers.
func slimContainers(list []corev1.Container) []corev1.Container {
	if list == nil {
		return nil
	}
	out := slices.Clone(list)
	for i := range out {
		c := &out[i]
		c.LivenessProbe, c.ReadinessProbe, c.StartupProbe, c.Lifecycle = nil, nil, nil, nil
		c.Ports, c.VolumeMounts = nil, nil
		c.Env = slices.Clone(c.Env)
		for j, e := range c.Env {
			c.Env[j] = corev1.EnvVar{Name: e.Name}
			if vendor.Behaviour(e.Name) {
				c.Env[j].Value = e.Value
			}
		}
	}
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
