package cluster

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// Namespace is what the tool needs of a namespace.
type Namespace struct {
	Name string
	// Labels tell the pod security level, among others.
	Labels      map[string]string
	Terminating bool
}

// ProjectNamespace takes from a namespace what the tool needs of it.
func ProjectNamespace(n *corev1.Namespace) Namespace {
	return Namespace{
		Name: n.Name, Labels: n.Labels,
		Terminating: n.DeletionTimestamp != nil || n.Status.Phase == corev1.NamespaceTerminating,
	}
}

// Object is a namespace that ProjectNamespace makes n of again.
func (n *Namespace) Object() *corev1.Namespace {
	out := &corev1.Namespace{
		TypeMeta:   typeOf(corev1.SchemeGroupVersion.WithKind("Namespace")),
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels},
	}
	if n.Terminating {
		out.Status.Phase = corev1.NamespaceTerminating
	}
	return out
}

// PriorityClass is what the tool needs of a PriorityClass.
type PriorityClass struct {
	Name  string
	Value int32
	// PreemptionPolicy is empty for PreemptLowerPriority, the default.
	PreemptionPolicy corev1.PreemptionPolicy
}

// ProjectPriorityClass takes from a PriorityClass what the tool needs of it.
func ProjectPriorityClass(c *schedulingv1.PriorityClass) PriorityClass {
	out := PriorityClass{Name: c.Name, Value: c.Value}
	if p := c.PreemptionPolicy; p != nil && *p != corev1.PreemptLowerPriority {
		out.PreemptionPolicy = *p
	}
	return out
}

// Object is a PriorityClass that ProjectPriorityClass makes c of again.
func (c *PriorityClass) Object() *schedulingv1.PriorityClass {
	out := &schedulingv1.PriorityClass{
		TypeMeta:   typeOf(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass")),
		ObjectMeta: metav1.ObjectMeta{Name: c.Name},
		Value:      c.Value,
	}
	if c.PreemptionPolicy != "" {
		out.PreemptionPolicy = ptr.To(c.PreemptionPolicy)
	}
	return out
}

// SlimQuota is the ResourceQuota without its field managers.
func SlimQuota(q *corev1.ResourceQuota) corev1.ResourceQuota {
	out := *q
	out.ObjectMeta = slimMeta(q.ObjectMeta)
	return out
}

// SlimLimitRange is the LimitRange without its field managers.
func SlimLimitRange(l *corev1.LimitRange) corev1.LimitRange {
	out := *l
	out.ObjectMeta = slimMeta(l.ObjectMeta)
	return out
}

func typeOf(gvk schema.GroupVersionKind) metav1.TypeMeta {
	version, kind := gvk.ToAPIVersionAndKind()
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}
