package cluster

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Labels by which others say how a pod is scheduled.
const (
	// QueueLabel names the LocalQueue that Kueue admits a pod or a workload by.
	QueueLabel = "kueue.x-k8s.io/queue-name"
	// The coscheduling plugin's label, and the one that it had before v0.23
	// (kubernetes-sigs/scheduler-plugins, apis/scheduling/v1alpha1/types.go).
	groupLabel    = "scheduling.x-k8s.io/pod-group"
	oldGroupLabel = "pod-group.scheduling.sigs.k8s.io"
)

// visibleDevicesVariable makes the NVIDIA container runtime inject devices.
const visibleDevicesVariable = "NVIDIA_VISIBLE_DEVICES"

// Limits on text that a cluster's users or controllers write, in bytes.
const (
	maxMessage = 2 << 10
	maxReason  = 256
	maxDevices = 1 << 10
)

// defaultGracePeriod is terminationGracePeriodSeconds where nobody sets it.
const defaultGracePeriod = corev1.DefaultTerminationGracePeriodSeconds

// bounded cuts text to a number of bytes, between two characters.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.Clone(text[:most]) // the whole may be megabytes
}

// created is a time as it comes back from a file.
func created(t metav1.Time) time.Time { return t.UTC().Truncate(time.Second) }

// putPolicies takes the fields of a spec that have a default, which is left out.
func (p *Pod) putPolicies(spec *corev1.PodSpec) {
	if spec.Priority != nil {
		p.Priority = ptr.To(*spec.Priority)
	}
	if v := spec.PreemptionPolicy; v != nil && *v != corev1.PreemptLowerPriority {
		p.PreemptionPolicy = *v
	}
	if v := spec.TerminationGracePeriodSeconds; v != nil && *v != defaultGracePeriod {
		p.GracePeriodSeconds = ptr.To(*v)
	}
	if spec.RestartPolicy != corev1.RestartPolicyAlways {
		p.RestartPolicy = spec.RestartPolicy
	}
	if v := spec.RuntimeClassName; v != nil {
		p.RuntimeClass = *v
	}
	for _, g := range spec.SchedulingGates {
		p.SchedulingGates = append(p.SchedulingGates, g.Name)
	}
	for i := range spec.ResourceClaims {
		if name := spec.ResourceClaims[i].ResourceClaimTemplateName; name != nil && *name != "" {
			p.ClaimTemplates = append(p.ClaimTemplates, *name)
		}
	}
}

// visibleDevices is the value that a container gives itself. One that comes from
// elsewhere is not known.
func visibleDevices(c *corev1.Container) string {
	for i := range c.Env {
		if c.Env[i].Name == visibleDevicesVariable {
			return bounded(c.Env[i].Value, maxDevices)
		}
	}
	return ""
}

// podGroup is the group that a pod is scheduled with. A field counts before a label:
// kube-scheduler reads the field alone.
func podGroup(p *corev1.Pod) string {
	if g := p.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil && *g.PodGroupName != "" {
		return *g.PodGroupName
	}
	return cmp.Or(p.Labels[groupLabel], p.Labels[oldGroupLabel])
}

// nodeLabels is what a pod requires of node labels.
func nodeLabels(spec *corev1.PodSpec) []corev1.NodeSelectorRequirement {
	var out []corev1.NodeSelectorRequirement
	for key, value := range spec.NodeSelector {
		out = append(out, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				if len(e.Values) == 0 {
					e.Values = nil
				}
				out = append(out, e)
			}
		}
	}
	compare := func(a, b corev1.NodeSelectorRequirement) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
	}
	slices.SortFunc(out, compare)
	return slices.CompactFunc(out, func(a, b corev1.NodeSelectorRequirement) bool { return compare(a, b) == 0 })
}

// scheduled is the condition of a pod that waits for a scheduler.
// tolerations leaves out what every pod has: the five minutes on a node that is not
// ready (plugin/pkg/admission/defaulttolerationseconds/admission.go, v1.37.2).
func tolerations(spec *corev1.PodSpec) []corev1.Toleration {
	var out []corev1.Toleration
	for _, t := range spec.Tolerations {
		outage := t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
		if !outage || t.Effect != corev1.TaintEffectNoExecute {
			out = append(out, t)
		}
	}
	return out
}

func scheduled(p *corev1.Pod) *Condition {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			return &Condition{Status: c.Status, Reason: bounded(c.Reason, maxReason), Message: bounded(c.Message, maxMessage)}
		}
	}
	return nil
}
